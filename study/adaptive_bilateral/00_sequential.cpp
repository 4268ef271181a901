// [000] Algorithm 2, one thread. Its slips are put right: the weight where it multiplies by the running sum,
// sums started afresh for the second pass, the maximum inside the root.
#include <algorithm>
#include <cmath>

#include "study/adaptive_bilateral/rungs.h"
#include "study/sequential.h"

namespace ungrain::study {
namespace {

float filter_pixel(const Picture& picture, const Strengths& strengths, int x, int y) {
  const float* middle = picture.pixels + static_cast<std::ptrdiff_t>(y) * picture.stride + x;
  const auto space_factor = static_cast<float>(-0.5 / (strengths.sigma_space * strengths.sigma_space));
  const auto for_window = [&](float range_factor, auto visit) {
    for (int dy = -strengths.radius; dy <= strengths.radius; ++dy) {
      for (int dx = -strengths.radius; dx <= strengths.radius; ++dx) {
        const float value = middle[static_cast<std::ptrdiff_t>(dy) * picture.stride + dx];
        const float difference = value - *middle;
        visit(value, std::exp(space_factor * static_cast<float>(dx * dx + dy * dy)) *
                         std::exp(range_factor * difference * difference));
      }
    }
  };
  float weights = 0;
  float squares = 0;
  for_window(static_cast<float>(-0.5 / (strengths.sigma_range * strengths.sigma_range)),
             [&](float value, float weight) {
               weights += weight;
               squares += weight * (value - *middle) * (value - *middle);
             });
  const auto epsilon = static_cast<float>(strengths.epsilon);
  const float sigma =
      static_cast<float>(strengths.factor) * std::sqrt(std::max(squares / weights + epsilon, epsilon));
  weights = 0;
  float values = 0;
  for_window(-0.5F / (sigma * sigma), [&](float value, float weight) {
    weights += weight;
    values += weight * value;
  });
  return values / weights;
}

}  // namespace

Rung adaptive_bilateral_sequential() {
  return {.name = "sequential",
          .paper = "[000] sequential",
          .idea = "one thread of the processor",
          .shapes = Shapes::none,
          .gpu = false,
          .prepare = [](const RungCall& call) { return by_pixels(call, filter_pixel); }};
}

}  // namespace ungrain::study
