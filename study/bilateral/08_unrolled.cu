// [001] version 8: version 6 with the tiling factor known to the compiler. The loop over the N pixels of a
// thread is written out inside the loop over the window, and one spatial weight serves all of them.
#include "study/bilateral/constant_table.cuh"
#include "study/bilateral/rungs.h"

namespace ungrain::study {
namespace {

template <int Tiling>
__global__ void unrolled_kernel(Picture picture, int radius, float range_factor, int tile_stride) {
  extern __shared__ float tile[];
  const int x0 = first_column(Tiling);
  load_tile(picture, x0 - radius, first_row() - radius, block_side() * Tiling + 2 * radius,
            block_side() + 2 * radius, tile, tile_stride);
  __syncthreads();
  const int side = 2 * radius + 1;
  const float* window = tile + thread_y() * tile_stride + thread_x();
  float centre[Tiling];
  WeightedMean mean[Tiling];
#pragma unroll
  for (int k = 0; k < Tiling; ++k) centre[k] = window[radius * tile_stride + radius + k * block_side()];
  for (int dy = 0; dy < side; ++dy) {
    for (int dx = 0; dx < side; ++dx) {
      const float spatial = spatial_weights[dy * side + dx];
#pragma unroll
      for (int k = 0; k < Tiling; ++k) {
        const float value = window[dy * tile_stride + dx + k * block_side()];
        mean[k].add(spatial * gaussian(value - centre[k], range_factor), value);
      }
    }
  }
  const int y = first_row() + thread_y();
#pragma unroll
  for (int k = 0; k < Tiling; ++k) {
    const int x = x0 + k * block_side() + thread_x();
    if (in_picture(picture, x, y)) picture.out[y * picture.width + x] = mean[k].value();
  }
}

using Kernel = void (*)(Picture, int, float, int);
Kernel kernel_for(int tiling) {
  switch (tiling) {
    case 2:
      return unrolled_kernel<2>;
    case 3:
      return unrolled_kernel<3>;
    case 4:
      return unrolled_kernel<4>;
    case 5:
      return unrolled_kernel<5>;
    default:
      return unrolled_kernel<6>;
  }
}

}  // namespace

Rung bilateral_unrolled() {
  return {.name = "8 unrolled",
          .paper = "[001] version 8",
          .idea = "version 6 with the tiling factor known to the compiler, its loop written out",
          .shapes = Shapes::tilings,
          .prepare = [](const RungCall& call) {
            upload_constant(spatial_weights, spatial_table(call.strengths));
            const int radius = call.strengths.radius;
            const int stride = padded_stride(call.shape.side, call.shape.tiling, radius);
            return one_launch(kernel_for(call.shape.tiling), call,
                              tile_bytes(stride, call.shape.side, radius), {}, radius,
                              gaussian_factor(call.strengths.sigma_range), stride);
          }};
}

}  // namespace ungrain::study
