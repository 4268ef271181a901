// One thread a pixel, the image in global memory.
#include "study/nlm/nlm.cuh"
#include "study/nlm/rungs.h"

namespace ungrain::study {
namespace {

__global__ void nlm_naive_kernel(Picture picture, NlmFactors factors) {
  const int x = first_column() + thread_x();
  const int y = first_row() + thread_y();
  if (!in_picture(picture, x, y)) return;
  picture.out[y * picture.width + x] =
      filter_nlm(factors, [&](int dx, int dy) { return pixel(picture, x + dx, y + dy); });
}

}  // namespace

Rung nlm_naive() {
  return {.name = "naive",
          .paper = "ours, as [003] v1",
          .idea = "one thread a pixel; the image in global memory",
          .prepare = [](const RungCall& call) {
            return one_launch(nlm_naive_kernel, call, 0, {}, NlmFactors(call.strengths));
          }};
}

}  // namespace ungrain::study
