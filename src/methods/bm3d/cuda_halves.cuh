// Pairs of halves in a word, and instructions without a C++ intrinsic.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

namespace ungrain::cuda {

// The first in the low half.
__device__ inline std::uint32_t pack_halves(float first, float second) {
  const __half2 both = __floats2half2_rn(first, second);
  return *reinterpret_cast<const std::uint32_t*>(&both);
}

__device__ inline float2 unpack_halves(std::uint32_t both) {
  return __half22float2(*reinterpret_cast<const __half2*>(&both));
}

// The larger magnitude of each half; NaN where either is NaN.
__device__ inline std::uint32_t larger_halves(std::uint32_t a, std::uint32_t b) {
  const __half2 larger = __hmax2_nan(__habs2(*reinterpret_cast<const __half2*>(&a)),
                                     __habs2(*reinterpret_cast<const __half2*>(&b)));
  return *reinterpret_cast<const std::uint32_t*>(&larger);
}

__device__ inline float approximate_reciprocal(float value) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
  return result;
}

// 1 where the value is above the limit, else 0, in one instruction.
__device__ inline float one_above(float value, float limit) {
  float result;
  asm("set.gt.f32.f32 %0, %1, %2;" : "=f"(result) : "f"(value), "f"(limit));
  return result;
}

}  // namespace ungrain::cuda
