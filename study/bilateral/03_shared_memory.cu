// [001] version 3: a block first reads its pixels and their surroundings into shared memory.
#include "study/bilateral/constant_table.cuh"
#include "study/bilateral/rungs.h"

namespace ungrain::study {
namespace {

__global__ void shared_memory_kernel(Picture picture, int radius, float range_factor) {
  extern __shared__ float tile[];
  const int tile_side = block_side() + 2 * radius;
  load_tile(picture, first_column() - radius, first_row() - radius, tile_side, tile_side, tile, tile_side);
  __syncthreads();
  const int x = first_column() + thread_x();
  const int y = first_row() + thread_y();
  if (!in_picture(picture, x, y)) return;
  picture.out[y * picture.width + x] =
      filter_in_tile(tile, tile_side, thread_x(), thread_y(), radius, range_factor);
}

}  // namespace

Rung bilateral_shared_memory() {
  return {.name = "3 shared memory",
          .paper = "[001] version 3",
          .idea = "the block's pixels and their surroundings in shared memory",
          .prepare = [](const RungCall& call) {
            upload_constant(spatial_weights, spatial_table(call.strengths));
            const int radius = call.strengths.radius;
            const int side = call.shape.side;
            return one_launch(shared_memory_kernel, call,
                              tile_bytes(plain_stride(side, 1, radius), side, radius), {}, radius,
                              gaussian_factor(call.strengths.sigma_range));
          }};
}

}  // namespace ungrain::study
