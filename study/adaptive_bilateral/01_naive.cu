// [000] §5.2.2, naive: one thread a pixel, the image in global memory, every Gaussian computed.
#include "study/adaptive_bilateral/adaptive.cuh"
#include "study/adaptive_bilateral/rungs.h"

namespace ungrain::study {
namespace {

__global__ void adaptive_naive_kernel(Picture picture, AdaptiveFactors factors) {
  const int x = first_column() + thread_x();
  const int y = first_row() + thread_y();
  if (!in_picture(picture, x, y)) return;
  picture.out[y * picture.width + x] = filter_adaptively(
      factors, [&](int dx, int dy) { return pixel(picture, x + dx, y + dy); },
      [&](int dx, int dy) { return gaussian(sqrtf(static_cast<float>(dx * dx + dy * dy)), factors.space); });
}

}  // namespace

Rung adaptive_bilateral_naive() {
  return {.name = "naive",
          .paper = "[000] naive",
          .idea = "one thread a pixel; both Gaussians computed for every pair of pixels",
          .prepare = [](const RungCall& call) {
            return one_launch(adaptive_naive_kernel, call, 0, {}, AdaptiveFactors(call.strengths));
          }};
}

}  // namespace ungrain::study
