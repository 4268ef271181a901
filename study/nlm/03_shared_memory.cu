// The naive kernel with the block's pixels, and all that their searches read, in shared memory.
#include "study/nlm/nlm.cuh"
#include "study/nlm/rungs.h"

namespace ungrain::study {
namespace {

__global__ void nlm_shared_memory_kernel(Picture picture, NlmFactors factors) {
  extern __shared__ float tile[];
  const int reach = factors.radius + factors.patch;
  const int stride = block_side() + 2 * reach;
  load_tile(picture, first_column() - reach, first_row() - reach, stride, stride, tile, stride);
  __syncthreads();
  const int x = first_column() + thread_x();
  const int y = first_row() + thread_y();
  if (!in_picture(picture, x, y)) return;
  const float* middle = tile + (thread_y() + reach) * stride + thread_x() + reach;
  picture.out[y * picture.width + x] =
      filter_nlm(factors, [&](int dx, int dy) { return middle[dy * stride + dx]; });
}

}  // namespace

Rung nlm_shared_memory() {
  return {.name = "shared memory",
          .paper = "ours, as [003] v2",
          .idea = "the block's pixels and their surroundings in shared memory",
          .prepare = [](const RungCall& call) {
            const int reach = search_reach(call.strengths);
            const int side = call.shape.side;
            return one_launch(nlm_shared_memory_kernel, call,
                              tile_bytes(plain_stride(side, 1, reach), side, reach), {},
                              NlmFactors(call.strengths));
          }};
}

}  // namespace ungrain::study
