// [001] version 5: 1 × N tiling. A block filters N squares side by side from one wide tile, so that the
// surroundings between two squares are read once.
#include "study/bilateral/constant_table.cuh"
#include "study/bilateral/rungs.h"

namespace ungrain::study {
namespace {

__global__ void tiling_kernel(Picture picture, int radius, float range_factor, int tile_stride, int tiling) {
  extern __shared__ float tile[];
  const int x0 = first_column(tiling);
  load_tile(picture, x0 - radius, first_row() - radius, block_side() * tiling + 2 * radius,
            block_side() + 2 * radius, tile, tile_stride);
  __syncthreads();
  const int y = first_row() + thread_y();
  for (int square = 0; square < tiling; ++square) {
    const int in_tile = square * block_side() + thread_x();
    if (!in_picture(picture, x0 + in_tile, y)) return;
    picture.out[y * picture.width + x0 + in_tile] =
        filter_in_tile(tile, tile_stride, in_tile, thread_y(), radius, range_factor);
  }
}

}  // namespace

Rung bilateral_tiling() {
  return {.name = "5 1xN tiling",
          .paper = "[001] version 5",
          .idea = "each thread N pixels, a block side apart; one wide tile",
          .shapes = Shapes::tilings,
          .prepare = [](const RungCall& call) {
            upload_constant(spatial_weights, spatial_table(call.strengths));
            const int radius = call.strengths.radius;
            const int stride = plain_stride(call.shape.side, call.shape.tiling, radius);
            return one_launch(tiling_kernel, call, tile_bytes(stride, call.shape.side, radius), {}, radius,
                              gaussian_factor(call.strengths.sigma_range), stride, call.shape.tiling);
          }};
}

}  // namespace ungrain::study
