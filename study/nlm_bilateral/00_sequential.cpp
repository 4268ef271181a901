// [000] Algorithm 4, one thread. Its slips are put right: the sign and the square in line 12, and P² where it
// divides by P. A window is searched; the paper's program searches the whole image.
#include <cmath>

#include "study/nlm_bilateral/rungs.h"
#include "study/patch_distance.h"
#include "study/sequential.h"

namespace ungrain::study {
namespace {

float filter_pixel(const Picture& picture, const Strengths& strengths, int x, int y) {
  const float* middle = picture.pixels + static_cast<std::ptrdiff_t>(y) * picture.stride + x;
  const auto factor = [](double sigma) { return static_cast<float>(-0.5 / (sigma * sigma)); };
  const float patches = factor(strengths.sigma_h * patch_side);
  const float space = factor(strengths.sigma_space);
  const float range = factor(strengths.sigma_range);
  float weights = 0;
  float values = 0;
  for (int dy = -strengths.radius; dy <= strengths.radius; ++dy) {
    for (int dx = -strengths.radius; dx <= strengths.radius; ++dx) {
      const float* other = middle + static_cast<std::ptrdiff_t>(dy) * picture.stride + dx;
      const float difference = *other - *middle;
      const float weight = std::exp(patches * patch_distance(middle, other, picture.stride)) *
                           std::exp(range * difference * difference) *
                           std::exp(space * static_cast<float>(dx * dx + dy * dy));
      weights += weight;
      values += weight * *other;
    }
  }
  return values / weights;
}

}  // namespace

Rung nlm_bilateral_sequential() {
  return {.name = "sequential",
          .paper = "[000] sequential",
          .idea = "one thread of the processor",
          .shapes = Shapes::none,
          .gpu = false,
          .prepare = [](const RungCall& call) { return by_pixels(call, filter_pixel); }};
}

}  // namespace ungrain::study
