#include "cuda/discovery.h"

#include <cuda_runtime_api.h>

#include <fmt/format.h>

namespace ungrain::cuda {
namespace {

DeviceInfo unusable(int index, std::string reason) {
  return {{Device::Kind::cuda, index}, "NVIDIA GPU", false, std::move(reason)};
}

DeviceInfo describe_gpu(int index) {
  cudaDeviceProp properties{};
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, index); error != cudaSuccess) {
    return unusable(index, cudaGetErrorString(error));
  }
  constexpr double gib = 1024.0 * 1024 * 1024;
  return {{Device::Kind::cuda, index},
          fmt::format("{}, {} multiprocessors, {:.0f} GiB, compute capability {}.{}", properties.name,
                      properties.multiProcessorCount, static_cast<double>(properties.totalGlobalMem) / gib,
                      properties.major, properties.minor),
          true,
          ""};
}

}  // namespace

std::vector<DeviceInfo> discover() {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    // To a user both mean the same: no GPU to run on. The driver's own message follows.
    return {unusable(0, fmt::format("no usable NVIDIA GPU or driver ({})", cudaGetErrorString(error)))};
  }
  if (count == 0) return {unusable(0, "no NVIDIA GPU")};
  std::vector<DeviceInfo> list;
  for (int index = 0; index < count; ++index) list.push_back(describe_gpu(index));
  return list;
}

}  // namespace ungrain::cuda
