// The first of two stages of a block's patch sums, for one shift.
#pragma once

#include "study/nlm/nlm.cuh"

namespace ungrain::study {

// Sums of squared differences along the rows of the patches, for all pixels of a side × side block and the
// rows above and below that their patches reach. `corner` is the tile's pixel where the patch of the block's
// first pixel begins; `shift` leads from a pixel to the one it is compared with.
__device__ inline void sum_rows(const float* corner, int stride, int shift, float* sums) {
  const int side = block_side();
  for (int row = thread_y(); row < side + 2 * patch_reach; row += side) {
    const float* own = corner + row * stride + thread_x();
    float sum = 0;
#pragma unroll
    for (int k = 0; k < patch_side; ++k) {
      const float difference = own[k + shift] - own[k];
      sum += difference * difference;
    }
    sums[row * side + thread_x()] = sum;
  }
}

// The second stage, when all threads have done the first: this thread's patch.
__device__ inline float sum_of_rows(const float* sums) {
  float sum = 0;
#pragma unroll
  for (int k = 0; k < patch_side; ++k) sum += sums[(thread_y() + k) * block_side() + thread_x()];
  return sum;
}

inline std::size_t row_sums_bytes(int side) {
  return sizeof(float) * static_cast<std::size_t>(side) * static_cast<std::size_t>(side + 2 * patch_reach);
}

}  // namespace ungrain::study
