// [001] version 2: the spatial weights in constant memory, which sends one value to all threads of a warp.
#include "study/bilateral/rungs.h"
#include "study/kernels.cuh"

namespace ungrain::study {
namespace {

__constant__ float spatial_weights[most_spatial_entries];

__global__ void constant_memory_kernel(Picture picture, int radius, float range_factor) {
  const int x = first_column() + thread_x();
  const int y = first_row() + thread_y();
  if (!in_picture(picture, x, y)) return;
  const int side = 2 * radius + 1;
  const float centre = pixel(picture, x, y);
  WeightedMean mean;
  for (int dy = -radius; dy <= radius; ++dy) {
    for (int dx = -radius; dx <= radius; ++dx) {
      const float value = pixel(picture, x + dx, y + dy);
      const float spatial = spatial_weights[(dy + radius) * side + dx + radius];
      mean.add(spatial * gaussian(value - centre, range_factor), value);
    }
  }
  picture.out[y * picture.width + x] = mean.value();
}

}  // namespace

Rung bilateral_constant_memory() {
  return {.name = "2 constant memory",
          .paper = "[001] version 2",
          .idea = "spatial weights in constant memory",
          .prepare = [](const RungCall& call) {
            upload_constant(spatial_weights, spatial_table(call.strengths));
            return one_launch(constant_memory_kernel, call, 0, {}, call.strengths.radius,
                              gaussian_factor(call.strengths.sigma_range));
          }};
}

}  // namespace ungrain::study
