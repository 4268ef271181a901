// Newer than the papers: version 7's squares one after the other, but while one is filtered the next one's
// tile is copied into a second buffer by the copy unit, past the registers.
#include <cuda_pipeline.h>

#include "study/bilateral/constant_table.cuh"
#include "study/bilateral/rungs.h"

namespace ungrain::study {
namespace {

// load_tile() that returns before the pixels are there; one batch of copies.
__device__ void start_tile(const Picture& picture, int x0, int y0, int tile_side, float* tile,
                           int tile_stride) {
  for (int y = thread_y(); y < tile_side; y += block_side()) {
    for (int x = thread_x(); x < tile_side; x += block_side()) {
      __pipeline_memcpy_async(tile + y * tile_stride + x,
                              picture.pixels + held_offset(picture, x0 + x, y0 + y), sizeof(float));
    }
  }
  __pipeline_commit();
}

__global__ void async_copies_kernel(Picture picture, int radius, float range_factor, int tile_stride,
                                    int tiling) {
  extern __shared__ float tiles[];
  const int tile_side = block_side() + 2 * radius;
  const int x0 = first_column(tiling);
  const int y0 = first_row();
  float* now = tiles;
  float* next = tiles + tile_stride * tile_side;
  start_tile(picture, x0 - radius, y0 - radius, tile_side, now, tile_stride);
  for (int square = 0; square < tiling; ++square) {
    const int square_x0 = x0 + square * block_side();
    const bool more = square + 1 < tiling;
    if (more) {
      start_tile(picture, square_x0 + block_side() - radius, y0 - radius, tile_side, next, tile_stride);
    }
    __pipeline_wait_prior(more ? 1 : 0);  // all batches but the one just started
    __syncthreads();                      // and the other threads' copies
    const int x = square_x0 + thread_x();
    const int y = y0 + thread_y();
    if (in_picture(picture, x, y)) {
      picture.out[y * picture.width + x] =
          filter_in_tile(now, tile_stride, thread_x(), thread_y(), radius, range_factor);
    }
    __syncthreads();  // before the next copies overwrite this tile
    float* const done = now;
    now = next;
    next = done;
  }
}

}  // namespace

Rung bilateral_async_copies() {
  return {.name = "asynchronous copies",
          .paper = "discussion",
          .idea = "1xN tiling, the next square's tile copied while this one is filtered",
          .shapes = Shapes::tilings,
          .prepare = [](const RungCall& call) {
            upload_constant(spatial_weights, spatial_table(call.strengths));
            const int radius = call.strengths.radius;
            const int stride = padded_stride(call.shape.side, 1, radius);
            return one_launch(async_copies_kernel, call, 2 * tile_bytes(stride, call.shape.side, radius), {},
                              radius, gaussian_factor(call.strengths.sigma_range), stride, call.shape.tiling);
          }};
}

}  // namespace ungrain::study
