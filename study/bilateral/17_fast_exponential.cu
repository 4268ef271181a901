// Not in the papers, which find the filter bound by its arithmetic ([001] §7.1): version 4 with both
// Gaussians in one exponent and the GPU's own approximate exponential.
#include "study/bilateral/rungs.h"
#include "study/kernels.cuh"

namespace ungrain::study {
namespace {

__constant__ float spatial_exponents[most_spatial_entries];

__global__ void fast_exponential_kernel(Picture picture, int radius, float range_factor, int tile_stride) {
  extern __shared__ float tile[];
  const int tile_side = block_side() + 2 * radius;
  load_tile(picture, first_column() - radius, first_row() - radius, tile_side, tile_side, tile, tile_stride);
  __syncthreads();
  const int x = first_column() + thread_x();
  const int y = first_row() + thread_y();
  if (!in_picture(picture, x, y)) return;
  const int side = 2 * radius + 1;
  const float* window = tile + thread_y() * tile_stride + thread_x();
  const float centre = window[radius * tile_stride + radius];
  WeightedMean mean;
  for (int dy = 0; dy < side; ++dy) {
    for (int dx = 0; dx < side; ++dx) {
      const float value = window[dy * tile_stride + dx];
      const float difference = value - centre;
      mean.add(__expf(fmaf(range_factor * difference, difference, spatial_exponents[dy * side + dx])), value);
    }
  }
  picture.out[y * picture.width + x] = mean.value();
}

}  // namespace

Rung bilateral_fast_exponential() {
  return {.name = "fast exponential",
          .paper = "ours",
          .idea = "version 4 with one approximate exponential for both Gaussians",
          .prepare = [](const RungCall& call) {
            std::vector<float> exponents = spatial_table(call.strengths);
            for (float& value : exponents) value = std::log(value);
            upload_constant(spatial_exponents, exponents);
            const int radius = call.strengths.radius;
            const int stride = padded_stride(call.shape.side, 1, radius);
            return one_launch(fast_exponential_kernel, call, tile_bytes(stride, call.shape.side, radius), {},
                              radius, gaussian_factor(call.strengths.sigma_range), stride);
          }};
}

}  // namespace ungrain::study
