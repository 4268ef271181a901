// [000] Algorithm 4 with its whole-image search, one thread; its slips are put right as in nlm_bilateral, and
// distance does not count (§5.3.2).
#include <cmath>

#include "study/nlm_bilateral_whole_image/rungs.h"
#include "study/whole_image.h"

namespace ungrain::study {
namespace {

class WholeSearch {
 public:
  explicit WholeSearch(const RungCall& call)
      : picture_(call.host),
        reach_(call.strengths.radius),
        patches_(factor(call.strengths.sigma_h * (2 * reach_ + 1))),
        range_(factor(call.strengths.sigma_range)) {}

  float filtered(int x, int y) const {
    const float* middle = pixel(x, y);
    double weights = 0;
    double values = 0;
    for (int j = 0; j < picture_.height; ++j) {
      for (int i = 0; i < picture_.width; ++i) {
        const float* other = pixel(i, j);
        const float difference = *other - *middle;
        const float weight =
            std::exp(patches_ * distance(middle, other)) * std::exp(range_ * difference * difference);
        weights += weight;
        values += static_cast<double>(weight) * *other;
      }
    }
    return static_cast<float>(values / weights);
  }

 private:
  static float factor(double sigma) { return static_cast<float>(-0.5 / (sigma * sigma)); }
  const float* pixel(int x, int y) const {
    return picture_.pixels + static_cast<std::ptrdiff_t>(y) * picture_.stride + x;
  }
  float distance(const float* first, const float* second) const {
    float sum = 0;
    for (int y = -reach_; y <= reach_; ++y) {
      for (int x = -reach_; x <= reach_; ++x) {
        const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(y) * picture_.stride + x;
        const float difference = first[at] - second[at];
        sum += difference * difference;
      }
    }
    return sum;
  }

  Picture picture_;
  int reach_;
  float patches_;
  float range_;
};

Prepared prepare(const RungCall& call) {
  const WholeSearch search(call);
  const double work = static_cast<double>(pixels_of(call.host)) * patch_entries(call.strengths);
  return one_pixel_after_the_other(
      call,
      [search, picture = call.host](int i) {
        picture.out[i] = search.filtered(i % picture.width, i / picture.width);
      },
      [work](int n) { return n * work; });
}

}  // namespace

Rung nlm_bilateral_whole_image_sequential() {
  return {.name = "sequential",
          .paper = "[000] sequential",
          .idea = "one thread of the processor",
          .shapes = Shapes::none,
          .gpu = false,
          .prepare = prepare};
}

}  // namespace ungrain::study
