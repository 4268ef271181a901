// [001] version 4: rows of shared memory padded (equation 5.3), so that the two rows of a 16 × 16 block that
// make up a warp read from different banks.
#include "study/bilateral/constant_table.cuh"
#include "study/bilateral/rungs.h"

namespace ungrain::study {
namespace {

__global__ void padded_shared_kernel(Picture picture, int radius, float range_factor, int tile_stride) {
  extern __shared__ float tile[];
  const int tile_side = block_side() + 2 * radius;
  load_tile(picture, first_column() - radius, first_row() - radius, tile_side, tile_side, tile, tile_stride);
  __syncthreads();
  const int x = first_column() + thread_x();
  const int y = first_row() + thread_y();
  if (!in_picture(picture, x, y)) return;
  picture.out[y * picture.width + x] =
      filter_in_tile(tile, tile_stride, thread_x(), thread_y(), radius, range_factor);
}

}  // namespace

Rung bilateral_padded_shared() {
  return {.name = "4 padded shared",
          .paper = "[001] version 4",
          .idea = "rows of shared memory padded against bank conflicts",
          .prepare = [](const RungCall& call) {
            upload_constant(spatial_weights, spatial_table(call.strengths));
            const int radius = call.strengths.radius;
            const int stride = padded_stride(call.shape.side, 1, radius);
            return one_launch(padded_shared_kernel, call, tile_bytes(stride, call.shape.side, radius), {},
                              radius, gaussian_factor(call.strengths.sigma_range), stride);
          }};
}

}  // namespace ungrain::study
