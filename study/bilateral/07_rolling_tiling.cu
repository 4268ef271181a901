// [001] version 7: the N squares one after the other through a tile for one (padded as version 4's): what the
// next square shares with this one moves left in shared memory, only new columns are read.
#include "study/bilateral/constant_table.cuh"
#include "study/bilateral/rungs.h"

namespace ungrain::study {
namespace {

// A thread owns every side-th column and row of the tile: what it moves, no other thread reads or writes, and
// it moves from left to right, so a column is read before it is overwritten.
__device__ void roll_tile(const Picture& picture, int x0, int y0, int radius, float* tile, int tile_stride) {
  const int side = block_side();
  const int tile_side = side + 2 * radius;
  for (int y = thread_y(); y < tile_side; y += side) {
    float* row = tile + y * tile_stride;
    for (int x = thread_x(); x < tile_side; x += side) {
      row[x] = x < 2 * radius ? row[x + side] : held_pixel(picture, x0 + x, y0 + y);
    }
  }
}

__global__ void rolling_tiling_kernel(Picture picture, int radius, float range_factor, int tile_stride,
                                      int tiling) {
  extern __shared__ float tile[];
  const int tile_side = block_side() + 2 * radius;
  const int x0 = first_column(tiling);
  const int y0 = first_row();
  load_tile(picture, x0 - radius, y0 - radius, tile_side, tile_side, tile, tile_stride);
  __syncthreads();
  for (int square = 0; square < tiling; ++square) {
    const int square_x0 = x0 + square * block_side();
    if (square > 0) {
      __syncthreads();  // the square before is done with the tile
      roll_tile(picture, square_x0 - radius, y0 - radius, radius, tile, tile_stride);
      __syncthreads();
    }
    const int x = square_x0 + thread_x();
    const int y = y0 + thread_y();
    if (!in_picture(picture, x, y)) continue;
    picture.out[y * picture.width + x] =
        filter_in_tile(tile, tile_stride, thread_x(), thread_y(), radius, range_factor);
  }
}

}  // namespace

Rung bilateral_rolling_tiling() {
  return {.name = "7 rolling tiling",
          .paper = "[001] version 7",
          .idea = "1xN tiling through a tile for one square; shared columns move, new ones are read",
          .shapes = Shapes::tilings,
          .prepare = [](const RungCall& call) {
            upload_constant(spatial_weights, spatial_table(call.strengths));
            const int radius = call.strengths.radius;
            const int stride = padded_stride(call.shape.side, 1, radius);
            return one_launch(rolling_tiling_kernel, call, tile_bytes(stride, call.shape.side, radius), {},
                              radius, gaussian_factor(call.strengths.sigma_range), stride, call.shape.tiling);
          }};
}

}  // namespace ungrain::study
