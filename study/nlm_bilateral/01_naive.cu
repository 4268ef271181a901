// [000] §5.3.2, naive: one thread a pixel, the image in global memory, every Gaussian computed.
#include "study/nlm_bilateral/nlm_bilateral.cuh"
#include "study/nlm_bilateral/rungs.h"

namespace ungrain::study {
namespace {

__global__ void nlm_bilateral_naive_kernel(Picture picture, NlmBilateralFactors factors) {
  const int x = first_column() + thread_x();
  const int y = first_row() + thread_y();
  if (!in_picture(picture, x, y)) return;
  picture.out[y * picture.width + x] = filter_nlm_bilateral(
      factors, [&](int dx, int dy) { return pixel(picture, x + dx, y + dy); },
      [&](int dx, int dy, float difference) {
        const float distance = sqrtf(static_cast<float>(dx * dx + dy * dy));
        return gaussian(difference, factors.range) * gaussian(distance, factors.space);
      });
}

}  // namespace

Rung nlm_bilateral_naive() {
  return {.name = "naive",
          .paper = "[000] naive",
          .idea = "one thread a pixel; all three Gaussians computed for every pair of pixels",
          .prepare = [](const RungCall& call) {
            return one_launch(nlm_bilateral_naive_kernel, call, 0, {}, NlmBilateralFactors(call.strengths));
          }};
}

}  // namespace ungrain::study
