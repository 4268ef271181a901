#include "cuda/discovery.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <fmt/format.h>

#include "cuda/memory.h"

namespace ungrain::cuda {
namespace {

DeviceInfo unusable(int index, std::string reason) {
  return {{Device::Kind::cuda, index}, "NVIDIA GPU", false, std::move(reason)};
}

// An H200's multiprocessors at the clock that it has.
double speed_of(const cudaDeviceProp& properties, int index) {
  constexpr double h200 = 132 * 1.98e6;  // multiprocessors x kHz
  int clock = 0;
  if (cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, index) != cudaSuccess || clock == 0) return 1;
  return properties.multiProcessorCount * static_cast<double>(clock) / h200;
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
          "",
          speed_of(properties, index)};
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

bool is_started() {
  // The runtime loads the driver's library with its first call.
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) return false;
  // CUresult (CUdevice device, unsigned* flags, int* active)
  using GetState = int (*)(int, unsigned*, int*);
  const auto get_state = reinterpret_cast<GetState>(dlsym(driver, "cuDevicePrimaryCtxGetState"));
  int active = 0;
  bool started = false;
  unsigned flags = 0;
  for (int gpu = 0; get_state != nullptr && get_state(gpu, &flags, &active) == 0 && !started; ++gpu)
    started = active != 0;
  dlclose(driver);
  return started;
}

void start(int gpu) {
  const CurrentDevice current(gpu);
  check(cudaFree(nullptr), "starting the GPU");
}

}  // namespace ungrain::cuda
