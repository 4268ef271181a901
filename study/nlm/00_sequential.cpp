// [004] §5, "basic NLM": one thread, pixel by pixel.
#include <algorithm>
#include <cmath>

#include "study/nlm/rungs.h"
#include "study/patch_distance.h"
#include "study/sequential.h"

namespace ungrain::study {
namespace {

float filter_pixel(const Picture& picture, const Strengths& strengths, int x, int y) {
  const float* middle = picture.pixels + static_cast<std::ptrdiff_t>(y) * picture.stride + x;
  const auto factor = static_cast<float>(-1 / (strengths.h * strengths.h * patch_side * patch_side));
  float weights = 0;
  float values = 0;
  float largest = 0;
  for (int dy = -strengths.radius; dy <= strengths.radius; ++dy) {
    for (int dx = -strengths.radius; dx <= strengths.radius; ++dx) {
      if (dx == 0 && dy == 0) continue;
      const float* other = middle + static_cast<std::ptrdiff_t>(dy) * picture.stride + dx;
      const float weight = std::exp(factor * patch_distance(middle, other, picture.stride));
      weights += weight;
      values += weight * *other;
      largest = std::max(largest, weight);
    }
  }
  const float self = largest > 0 ? largest : 1.0F;
  return (values + self * *middle) / (weights + self);
}

}  // namespace

Rung nlm_sequential() {
  return {.name = "sequential",
          .paper = "[004] basic NLM",
          .idea = "one thread of the processor",
          .shapes = Shapes::none,
          .gpu = false,
          .prepare = [](const RungCall& call) { return by_pixels(call, filter_pixel); }};
}

}  // namespace ungrain::study
