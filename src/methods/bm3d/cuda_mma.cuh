// Pairs of halves and the products of matrices made of them, for one warp.
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

// The larger one's size of either half.
__device__ inline std::uint32_t larger_halves(std::uint32_t a, std::uint32_t b) {
  const __half2 larger =
      __hmax2(__habs2(*reinterpret_cast<const __half2*>(&a)), __habs2(*reinterpret_cast<const __half2*>(&b)));
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

// c (16 x 8) = a (16 x 16) b (16 x 8). With g = lane / 4 and t = lane % 4 a lane holds of a: rows g, g + 8,
// g, g + 8 at columns 2t and 2t + 1 (the first two), 2t + 8 and 2t + 9; of b: rows 2t, 2t + 1 and 2t + 8, 2t
// + 9 of column g; of c: columns 2t, 2t + 1 of rows g and g + 8.
__device__ inline void multiply_16x8x16(float (&c)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2,
                                        std::uint32_t a3, std::uint32_t b0, std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%10,%10,%10,%10};"
      : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "f"(0.0F));
}

// c (16 x 8) = a (16 x 8) b (8 x 8): the same places, without the upper half of the inner dimension.
__device__ inline void multiply_16x8x8(float (&c)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t b) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%7,%7,%7};"
      : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
      : "r"(a0), "r"(a1), "r"(b), "f"(0.0F));
}

}  // namespace ungrain::cuda
