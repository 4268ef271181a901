// [000] Algorithm 9, its naive kernel: one thread a pixel, both Gaussians computed for every pair of pixels.
#include "study/bilateral/rungs.h"
#include "study/kernels.cuh"

namespace ungrain::study {
namespace {

__global__ void no_tables_kernel(Picture picture, int radius, float space_factor, float range_factor) {
  const int x = first_column() + thread_x();
  const int y = first_row() + thread_y();
  if (!in_picture(picture, x, y)) return;
  const float centre = pixel(picture, x, y);
  WeightedMean mean;
  for (int dy = -radius; dy <= radius; ++dy) {
    for (int dx = -radius; dx <= radius; ++dx) {
      const float value = pixel(picture, x + dx, y + dy);
      const float distance = sqrtf(static_cast<float>(dx * dx + dy * dy));
      mean.add(gaussian(value - centre, range_factor) * gaussian(distance, space_factor), value);
    }
  }
  picture.out[y * picture.width + x] = mean.value();
}

}  // namespace

Rung bilateral_no_tables() {
  return {.name = "no tables",
          .paper = "[000] naive",
          .idea = "both Gaussians computed for every pair of pixels",
          .prepare = [](const RungCall& call) {
            return one_launch(no_tables_kernel, call, 0, {}, call.strengths.radius,
                              gaussian_factor(call.strengths.sigma_space),
                              gaussian_factor(call.strengths.sigma_range));
          }};
}

}  // namespace ungrain::study
