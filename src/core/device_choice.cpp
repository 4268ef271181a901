#include "core/device_choice.h"

#include <algorithm>
#include <thread>

#include <fmt/format.h>

#include "core/device.h"
#include "core/ycbcr.h"
#include "device/backends.h"

namespace ungrain {
namespace {

constexpr double transfer_bytes_per_ms = 8e6;  // between an application's memory and a GPU's, both ways
constexpr double launch_ms = 0.1;              // of one run
constexpr double threads_start_ms = 0.05;
// Two threads of a core share its units: on 8 cores with 16 threads bm3d is 10.7 times as fast as with one.
constexpr double thread_efficiency = 0.65;
// Page-locked memory for the copies, once: as much as the image, at the rate at which it can be had.
constexpr double page_locking_bytes_per_ms = 2.5e6;

std::string ms_text(double ms) {
  return ms < 10     ? fmt::format("{:.1f} ms", ms)
         : ms < 1000 ? fmt::format("{:.0f} ms", ms)
                     : fmt::format("{:.1f} s", ms / 1000);
}

Cost cost_of(const Method& method, const void* params, const ImageSpec& spec) {
  if (!is_split(method, spec)) return method.cost(params, spec);
  const Cost luma = method.cost(params, luma_spec(spec));
  const Cost chroma = method.cost(params, chroma_spec(spec));
  const double pixels = 1.0 / (spec.chroma.x * spec.chroma.y);
  return {.cpu_ns = luma.cpu_ns + pixels * chroma.cpu_ns, .gpu_ns = luma.gpu_ns + pixels * chroma.gpu_ns};
}

}  // namespace

PredictedTimes predict_times(const Cost& cost, const ImageSpec& spec, int images, const Machine& machine) {
  const double pixels = static_cast<double>(spec.width) * spec.height;
  const double bytes = 2 * pixels * spec.channels * static_cast<double>(bytes_per_sample(spec.type));
  const double threads = 1 + thread_efficiency * (machine.threads - 1);
  const double count = std::max(1, images);
  PredictedTimes times;
  times.cpu_ms = count * (threads_start_ms + pixels * cost.cpu_ns * 1e-6 / (threads * machine.cpu_speed));
  const Machine::Gpu gpu = machine.gpu.value_or(Machine::Gpu{});
  times.gpu_ms =
      count * (launch_ms + bytes / transfer_bytes_per_ms + pixels * cost.gpu_ns * 1e-6 / gpu.speed);
  if (images != 0) times.gpu_ms += (gpu.started ? 0 : gpu_start_ms) + bytes / 2 / page_locking_bytes_per_ms;
  return times;
}

DeviceChoice choose_by_time(const Method& method, const void* params, const ImageSpec& spec,
                            const Options& options) {
  if (options.device.kind != Device::Kind::automatic) return {choose_device(method, options.device), ""};
  if (!method.cpu) return {choose_device(method, options.device), "the method has no fast CPU version"};
  const Device cpu{Device::Kind::cpu};
  if (!method.cuda) return {cpu, "the method runs on the CPU only"};
  const Cost cost = cost_of(method, params, spec);
  Machine machine{.threads = options.threads > 0
                                 ? options.threads
                                 : std::max(1, static_cast<int>(std::thread::hardware_concurrency())),
                  .cpu_speed = cpu_thread_speed()};
  const bool started = gpu_is_started();
  // To look for a GPU is a part of starting one.
  const PredictedTimes before = predict_times(cost, spec, options.images, machine);
  if (!started && options.images != 0 && before.cpu_ms < gpu_start_ms)
    return {cpu, fmt::format("about {}: sooner than a GPU starts", ms_text(before.cpu_ms))};
  const std::vector<DeviceInfo> gpus = discover_gpus();
  const auto usable =
      std::find_if(gpus.begin(), gpus.end(), [](const DeviceInfo& gpu) { return gpu.usable; });
  if (usable == gpus.end()) return {cpu, gpus.front().reason};
  machine.gpu = Machine::Gpu{usable->device, usable->speed, started};
  const PredictedTimes times = predict_times(cost, spec, options.images, machine);
  const Device device = times.gpu_ms < times.cpu_ms ? usable->device : cpu;
  return {device, fmt::format("{} about {}, cpu about {}{}", name(usable->device), ms_text(times.gpu_ms),
                              ms_text(times.cpu_ms),
                              started || options.images == 0 ? "" : ", the GPU's start counted in")};
}

}  // namespace ungrain
