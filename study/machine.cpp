#include "study/machine.h"

#include <chrono>
#include <ctime>
#include <stdexcept>

#include "ungrain/denoiser.h"
#include "ungrain/version.h"

#if UNGRAIN_HAVE_CUDA
#include "cuda/check.h"
#endif

namespace ungrain::study {

Machine find_machine(Wanted wanted) {
  Machine machine;
  machine.why_not = UNGRAIN_HAVE_CUDA ? "no GPU found" : "built without CUDA";
  for (const DeviceInfo& info : devices()) {
    if (info.device.kind == Device::Kind::cpu) machine.processor = info.description;
    if (info.device.kind != Device::Kind::cuda) continue;
    if (!info.usable) {
      machine.why_not = info.reason;
    } else if (info.device.index == 0) {
      machine.gpu = info.description;
    }
  }
  if (wanted == Wanted::gpu && machine.gpu.empty())
    throw std::runtime_error("--device cuda: " + machine.why_not);
  if (wanted == Wanted::processor) {
    machine.gpu.clear();
    machine.why_not = "--device cpu";
  }
#if UNGRAIN_HAVE_CUDA
  if (!machine.gpu.empty()) {
    cuda::check(cudaDriverGetVersion(&machine.driver_cuda), "asking for the driver");
    machine.toolkit_cuda = CUDART_VERSION;
  }
#endif
  return machine;
}

nlohmann::json machine_json(const Machine& machine) {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  char date[11] = {};
  std::tm utc = {};
  gmtime_r(&now, &utc);
  std::strftime(date, sizeof(date), "%Y-%m-%d", &utc);
  nlohmann::json document = {{"version", UNGRAIN_VERSION},
                             {"processor", machine.processor},
                             {"compiler", __VERSION__},
                             {"date", date}};
  if (machine.gpu.empty()) {
    document["no_gpu"] = machine.why_not;
  } else {
    document["gpu"] = machine.gpu;
    document["driver_cuda_version"] = machine.driver_cuda;
    document["toolkit_cuda_version"] = machine.toolkit_cuda;
  }
  return document;
}

}  // namespace ungrain::study
