// Products of small matrices of halves, computed by a warp on tensor cores (mma.sync, compute capability
// 8.0).
//
// c (16 x 8) = a (16 x 16) b (16 x 8), two halves in a word, sums in float. With g = lane / 4 and t = lane %
// 4 a lane holds of a: rows g and g + 8 at columns 2t and 2t + 1 (a0, a1), at columns 2t + 8 and 2t + 9 (a2,
// a3); of b: rows 2t and 2t + 1 (b0), 2t + 8 and 2t + 9 (b1) of column g; of c: columns 2t and 2t + 1 of row
// g, then of row g + 8. Where a is 16 x 8 and b is 8 x 8, a2, a3 and b1 are left out.
#pragma once

#include <cstdint>

namespace ungrain::cuda {

// c += a b
__device__ inline void add_product(float (&c)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2,
                                   std::uint32_t a3, std::uint32_t b0, std::uint32_t b1) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#endif
}
__device__ inline void add_product(float (&c)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t b) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(b));
#endif
}

// c = a b
__device__ inline void multiply(float (&c)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2,
                                std::uint32_t a3, std::uint32_t b0, std::uint32_t b1) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%10,%10,%10,%10};"
      : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "f"(0.0F));
#endif
}
__device__ inline void multiply(float (&c)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t b) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%7,%7,%7};"
      : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
      : "r"(a0), "r"(a1), "r"(b), "f"(0.0F));
#endif
}
// c = a b, rounded to halves: a word has two neighbouring columns, those of row g or of row g + 8.
__device__ inline void multiply(std::uint32_t (&c)[2], std::uint32_t a0, std::uint32_t a1, std::uint32_t b) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3}, {%4}, {%5,%5};"
      : "=r"(c[0]), "=r"(c[1])
      : "r"(a0), "r"(a1), "r"(b), "r"(0U));
#endif
}
// c = a b + d, d likewise.
__device__ inline void multiply_add(std::uint32_t (&c)[2], const std::uint32_t (&a)[4], std::uint32_t b0,
                                    std::uint32_t b1, const std::uint32_t (&d)[2]) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%8,%9};"
      : "=r"(c[0]), "=r"(c[1])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(d[0]), "r"(d[1]));
#endif
}

// ---- Floats, nearly exact: c (16 x 8) += a (16 x 8) b (8 x 8). A lane holds of a: rows g and g + 8 at
// column t, then at column t + 4; of b: rows t and t + 4 of column g; of c: as above.

// A float as two numbers of 11 bits, whose sum is at most 2^-20 of it away. Tensor cores ignore the lower
// bits.
struct FloatParts {
  float high;
  float low;

  __device__ explicit FloatParts(float value) {
    high = __uint_as_float(__float_as_uint(value) & 0xFFFFE000U);
    low = value - high;
  }
};

__device__ inline void add_product_of_parts(float (&c)[4], float a0, float a1, float a2, float a3, float b0,
                                            float b1) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(__float_as_uint(a0)), "r"(__float_as_uint(a1)), "r"(__float_as_uint(a2)),
        "r"(__float_as_uint(a3)), "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));
#endif
}

// The small products first.
__device__ inline void add_product(float (&c)[4], const FloatParts& a0, const FloatParts& a1,
                                   const FloatParts& a2, const FloatParts& a3, const FloatParts& b0,
                                   const FloatParts& b1) {
  add_product_of_parts(c, a0.low, a1.low, a2.low, a3.low, b0.high, b1.high);
  add_product_of_parts(c, a0.high, a1.high, a2.high, a3.high, b0.low, b1.low);
  add_product_of_parts(c, a0.high, a1.high, a2.high, a3.high, b0.high, b1.high);
}

}  // namespace ungrain::cuda
