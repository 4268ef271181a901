// [001] version 1: one thread a pixel, the image and the table of spatial weights in global memory.
#include "study/bilateral/rungs.h"
#include "study/kernels.cuh"

namespace ungrain::study {
namespace {

__global__ void naive_kernel(Picture picture, const float* spatial_weights, int radius, float range_factor) {
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

Rung bilateral_naive() {
  return {.name = "1 naive",
          .paper = "[001] version 1",
          .idea = "one thread a pixel; image and spatial weights in global memory",
          .prepare = [](const RungCall& call) {
            const auto spatial = upload(spatial_table(call.strengths));
            return one_launch(naive_kernel, call, 0, {spatial}, static_cast<const float*>(spatial->data()),
                              call.strengths.radius, gaussian_factor(call.strengths.sigma_range));
          }};
}

}  // namespace ungrain::study
