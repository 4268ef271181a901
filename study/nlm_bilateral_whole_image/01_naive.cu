// [000] §5.3.2, naive: one thread a pixel, the image in global memory, both Gaussians computed.
#include "study/nlm_bilateral_whole_image/rungs.h"
#include "study/nlm_bilateral_whole_image/whole_image.cuh"

namespace ungrain::study {
namespace {

__global__ void nlm_bilateral_whole_image_kernel(Picture picture, WholeImageFactors factors) {
  const int x = first_column() + thread_x();
  const int y = first_row() + thread_y();
  if (!in_picture(picture, x, y)) return;
  picture.out[y * picture.width + x] = filter_whole_image(
      picture, factors, x, y, [&](float difference) { return gaussian(difference, factors.range); });
}

}  // namespace

Rung nlm_bilateral_whole_image_naive() {
  return {.name = "naive",
          .paper = "[000] naive",
          .idea = "one thread a pixel; both Gaussians computed for every pair of pixels",
          .prepare = [](const RungCall& call) {
            const WholeImageFactors factors(call);
            auto prepared = one_launch(nlm_bilateral_whole_image_kernel, call, 0, {}, factors);
            if (prepared) prepared->share = factors.share(call.device);
            return prepared;
          }};
}

}  // namespace ungrain::study
