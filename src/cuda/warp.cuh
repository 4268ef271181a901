// Sums, least and greatest values over the lanes of a warp.
#pragma once

#include <cuda_runtime.h>

namespace ungrain::cuda {

constexpr unsigned all_lanes = 0xffffffffU;

__device__ inline int warp_sum(int value) {
#if __CUDA_ARCH__ >= 800
  return __reduce_add_sync(all_lanes, value);
#else
  for (int apart = 16; apart > 0; apart /= 2) value += __shfl_xor_sync(all_lanes, value, apart);
  return value;
#endif
}

__device__ inline float warp_sum(float value) {
  for (int apart = 16; apart > 0; apart /= 2) value += __shfl_xor_sync(all_lanes, value, apart);
  return value;
}

__device__ inline unsigned warp_least(unsigned value) {
#if __CUDA_ARCH__ >= 800
  return __reduce_min_sync(all_lanes, value);
#else
  for (int apart = 16; apart > 0; apart /= 2) value = min(value, __shfl_xor_sync(all_lanes, value, apart));
  return value;
#endif
}

__device__ inline int warp_least(int value) {
#if __CUDA_ARCH__ >= 800
  return __reduce_min_sync(all_lanes, value);
#else
  for (int apart = 16; apart > 0; apart /= 2) value = min(value, __shfl_xor_sync(all_lanes, value, apart));
  return value;
#endif
}

__device__ inline int warp_greatest(int value) {
#if __CUDA_ARCH__ >= 800
  return __reduce_max_sync(all_lanes, value);
#else
  for (int apart = 16; apart > 0; apart /= 2) value = max(value, __shfl_xor_sync(all_lanes, value, apart));
  return value;
#endif
}

}  // namespace ungrain::cuda
