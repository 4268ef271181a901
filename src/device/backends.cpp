#include "device/backends.h"

#include "core/device.h"
#include "cpu/cpu_backend.h"
#include "cpu/pointwise.h"
#include "cpu/simd.h"
#include "cuda/cuda_backend.h"
#include "cuda/discovery.h"
#include "cuda/noise_pass.h"
#include "cuda/pointwise.h"
#include "ungrain/error.h"

namespace ungrain {

std::vector<DeviceInfo> discover_gpus() { return cuda::discover(); }

bool gpu_is_started() { return cuda::is_started(); }

void start_gpu(Device device) {
  for (const int gpu : gpus_of(device)) cuda::start(gpu);
}

// By the simd table of docs/results/cpu.md.
double cpu_thread_speed() {
  const std::vector<std::string> targets = simd_targets();
  const std::string best = targets.empty() ? "" : targets.front();
  if (best.starts_with("AVX3") || best.starts_with("AVX10")) return 1;
  return best.starts_with("AVX2") ? 0.6 : 0.3;
}

std::unique_ptr<Backend> make_backend(Device device, const Options& options) {
  switch (device.kind) {
    case Device::Kind::reference:
      return make_cpu_backend(1);
    case Device::Kind::cuda:
      return cuda::make_backend(gpus_of(device), options.threads);
    default:
      return make_cpu_backend(options.threads);
  }
}

std::unique_ptr<NoisePass> make_noise_pass(const ConstImageView& image) {
  return cuda::make_noise_pass(image);
}

PointwiseStages pointwise_stages(Device::Kind kind) {
  return kind == Device::Kind::cuda ? cuda::pointwise_stages() : cpu_pointwise_stages();
}

bool Queue::run_direct(const Direct&, const DirectData&, const Memory&) {
  throw Error(ErrorCode::internal, "this device filters no samples directly");
}

void Queue::launch_direct(const Direct&, const DeviceDirectCall&) {
  throw Error(ErrorCode::internal, "this device filters float planes only");
}

std::unique_ptr<Queue> Backend::queue_on(Stream) {
  throw Error(ErrorCode::unsupported, "run_async() needs a GPU; run() is what the CPU has");
}

}  // namespace ungrain
