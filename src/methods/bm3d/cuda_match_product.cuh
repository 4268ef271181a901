// The product that the search on tensor cores is made of.
#pragma once

#include <cstdint>

namespace ungrain::cuda {

// Adds to a lane's sums the product of 16 x 16 and 16 x 8 halves. Of lane 4 g + t: rows g and g + 8, columns
// 2 t and 2 t + 1 of the sums; a[0], a[1]: rows g and g + 8, numbers 2 t and 2 t + 1; a[2], a[3]: the numbers
// 8 further on; b[0], b[1]: column g, the same numbers.
__device__ inline void add_product(float (&sums)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2,
                                   std::uint32_t a3, std::uint32_t b0, std::uint32_t b1) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#endif
}

}  // namespace ungrain::cuda
