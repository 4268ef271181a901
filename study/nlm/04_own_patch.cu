// The pixel's own patch is the same for every shift: it stays in registers, which takes a patch whose side
// the compiler knows, and halves what is read from shared memory.
#include "study/nlm/nlm.cuh"
#include "study/nlm/rungs.h"

namespace ungrain::study {
namespace {

__global__ void nlm_own_patch_kernel(Picture picture, NlmFactors factors) {
  extern __shared__ float tile[];
  const int radius = factors.radius;
  const int reach = radius + patch_reach;
  const int stride = block_side() + 2 * reach;
  load_tile(picture, first_column() - reach, first_row() - reach, stride, stride, tile, stride);
  __syncthreads();
  const int x = first_column() + thread_x();
  const int y = first_row() + thread_y();
  if (!in_picture(picture, x, y)) return;
  // The first corner of the patch around this pixel.
  const float* corner = tile + (thread_y() + radius) * stride + thread_x() + radius;
  float own[patch_side][patch_side];
#pragma unroll
  for (int row = 0; row < patch_side; ++row) {
#pragma unroll
    for (int column = 0; column < patch_side; ++column) own[row][column] = corner[row * stride + column];
  }
  SearchMean mean;
  for (int dy = -radius; dy <= radius; ++dy) {
    for (int dx = -radius; dx <= radius; ++dx) {
      if (dx == 0 && dy == 0) continue;
      const float* other = corner + dy * stride + dx;
      float distance = 0;
#pragma unroll
      for (int row = 0; row < patch_side; ++row) {
#pragma unroll
        for (int column = 0; column < patch_side; ++column) {
          const float difference = other[row * stride + column] - own[row][column];
          distance += difference * difference;
        }
      }
      mean.add(factors.weight(distance), other[patch_reach * stride + patch_reach]);
    }
  }
  picture.out[y * picture.width + x] = mean.value(own[patch_reach][patch_reach]);
}

}  // namespace

Rung nlm_own_patch() {
  return {.name = "own patch in registers",
          .paper = "ours",
          .idea = "the patch's side known to the compiler, the pixel's own patch in registers",
          .prepare = [](const RungCall& call) {
            const int reach = search_reach(call.strengths);
            const int side = call.shape.side;
            return one_launch(nlm_own_patch_kernel, call,
                              tile_bytes(plain_stride(side, 1, reach), side, reach), {},
                              NlmFactors(call.strengths));
          }};
}

}  // namespace ungrain::study
