// What the nlm-bilateral-whole-image rungs share: the search of one pixel.
#pragma once

#include "study/nlm/patches.cuh"
#include "study/whole_image.h"

namespace ungrain::study {

struct WholeImageFactors {
  int patch;      // how far a patch reaches
  int rows;       // of the picture that are searched; all of them but where a part is timed
  float patches;  // sums of squared differences over a patch times this are exponents
  float range;

  explicit WholeImageFactors(const RungCall& call)
      : patch(call.strengths.radius),
        rows(searched_rows(call, pixels_of(call.device))),
        patches(gaussian_factor(call.strengths.sigma_h * (2 * patch + 1))),
        range(gaussian_factor(call.strengths.sigma_range)) {}

  double share(const Picture& picture) const { return static_cast<double>(rows) / picture.height; }
};

// The pixel at (x, y) from the image in global memory; range_weight(difference) says where the weights of
// differences in value come from.
template <class RangeWeight>
__device__ float filter_whole_image(const Picture& picture, const WholeImageFactors& factors, int x, int y,
                                    RangeWeight range_weight) {
  const auto value_at = [&](int dx, int dy) { return pixel(picture, x + dx, y + dy); };
  const float own = value_at(0, 0);
  WeightedMean mean;
  for (int row = 0; row < factors.rows; ++row) {
    WeightedMean of_row;  // a sum of tens of thousands of floats forgets the small ones
    for (int column = 0; column < picture.width; ++column) {
      const int dx = column - x;
      const int dy = row - y;
      const float value = value_at(dx, dy);
      const float similarity = expf(factors.patches * patch_distance(value_at, dx, dy, factors.patch));
      of_row.add(similarity * range_weight(value - own), value);
    }
    mean.weights += of_row.weights;
    mean.values += of_row.values;
  }
  return mean.value();
}

}  // namespace ungrain::study
