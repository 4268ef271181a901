#include "core/device.h"

#include <algorithm>
#include <charconv>
#include <thread>

#include <fmt/format.h>

#include "device/backends.h"
#include "platform/machine.h"
#include "ungrain/error.h"

namespace ungrain {
namespace {

std::string processor_description() {
  const std::string model = platform::processor_name();
  return fmt::format("{}, {} threads", model.empty() ? "processor" : model,
                     std::max(1U, std::thread::hardware_concurrency()));
}

constexpr Device every_gpu{Device::Kind::cuda, Device::all_gpus};

// With one GPU, cuda:all uses two queues, as with two GPUs.
constexpr int queues_of_one_gpu = 2;

// Each of several usable GPUs once; a single one twice.
std::vector<Device> queues_over(const std::vector<DeviceInfo>& gpus) {
  std::vector<Device> list;
  for (const DeviceInfo& gpu : gpus) {
    if (gpu.usable) list.push_back(gpu.device);
  }
  if (list.size() == 1) list.resize(queues_of_one_gpu, list.front());
  return list;
}

DeviceInfo describe_every_gpu(const std::vector<DeviceInfo>& gpus) {
  const auto usable =
      std::count_if(gpus.begin(), gpus.end(), [](const DeviceInfo& gpu) { return gpu.usable; });
  if (usable == 0) return {every_gpu, "all GPUs", false, gpus.front().reason};
  if (usable == 1) {
    return {every_gpu,
            fmt::format("the GPU in {} queues; spreads files and bands over several where they are",
                        queues_of_one_gpu),
            true, ""};
  }
  return {every_gpu, fmt::format("files and bands spread over {} GPUs", usable), true, ""};
}

}  // namespace

std::string name(Device device) {
  switch (device.kind) {
    case Device::Kind::automatic:
      return "auto";
    case Device::Kind::reference:
      return "reference";
    case Device::Kind::cpu:
      return "cpu";
    case Device::Kind::cuda:
      if (device == every_gpu) return "cuda:all";
      return device.index == 0 ? "cuda" : fmt::format("cuda:{}", device.index);
  }
  return "?";
}

Device parse_device(std::string_view text) {
  if (text == "auto") return {Device::Kind::automatic};
  if (text == "reference") return {Device::Kind::reference};
  if (text == "cpu") return {Device::Kind::cpu};
  if (text == "cuda") return {Device::Kind::cuda};
  if (text == "cuda:all") return every_gpu;
  constexpr std::string_view prefix = "cuda:";
  if (text.starts_with(prefix)) {
    int index = -1;
    const char* end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data() + prefix.size(), end, index);
    if (error == std::errc{} && stopped == end && index >= 0) return {Device::Kind::cuda, index};
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("device takes auto, cpu, cuda, cuda:N, cuda:all or reference, got '{}'", text));
}

std::vector<DeviceInfo> devices() {
  std::vector<DeviceInfo> list;
  list.push_back({{Device::Kind::cpu}, processor_description(), true, ""});
  const std::vector<DeviceInfo> gpus = discover_gpus();
  list.insert(list.end(), gpus.begin(), gpus.end());
  // Without a GPU, the entry above already says so.
  if (const DeviceInfo all = describe_every_gpu(gpus); all.usable) list.push_back(all);
  list.push_back({{Device::Kind::reference}, "the readable definition of each method, one thread", true, ""});
  return list;
}

std::vector<Device> queues(Device device) {
  if (device != every_gpu) return {device};
  const std::vector<DeviceInfo> gpus = discover_gpus();
  std::vector<Device> list = queues_over(gpus);
  if (list.empty()) {
    throw Error(ErrorCode::no_device, fmt::format("no device {}: {}", name(device), gpus.front().reason));
  }
  return list;
}

std::vector<int> gpus_of(Device device) {
  std::vector<int> list;
  for (const Device& queue : queues(device)) list.push_back(queue.index);
  return list;
}

const Method::Build& build_for(const Method& method, Device device) {
  switch (device.kind) {
    case Device::Kind::reference:
      return method.reference;
    case Device::Kind::cuda:
      return method.cuda;
    default:
      return method.cpu;
  }
}

Device choose_device(const Method& method, Device wanted) {
  std::vector<DeviceInfo> gpus =
      wanted.kind == Device::Kind::cuda || (wanted.kind == Device::Kind::automatic && method.cuda)
          ? discover_gpus()
          : std::vector<DeviceInfo>{};
  if (wanted.kind == Device::Kind::automatic) {
    for (const DeviceInfo& gpu : gpus) {
      if (gpu.usable) return gpu.device;
    }
    return {method.cpu ? Device::Kind::cpu : Device::Kind::reference};
  }
  if (wanted.kind == Device::Kind::cuda) {
    gpus.push_back(describe_every_gpu(gpus));
    const DeviceInfo* found = nullptr;
    for (const DeviceInfo& gpu : gpus) {
      if (gpu.device == wanted) found = &gpu;
    }
    if (found == nullptr) {
      throw Error(ErrorCode::no_device, fmt::format("there is no device {}", name(wanted)));
    }
    if (!found->usable) {
      throw Error(ErrorCode::no_device, fmt::format("no device {}: {}", name(wanted), found->reason));
    }
  }
  if (!build_for(method, wanted)) {
    throw Error(ErrorCode::unsupported, fmt::format("{} has no {} version", method.name, name(wanted)));
  }
  return wanted;
}

}  // namespace ungrain
