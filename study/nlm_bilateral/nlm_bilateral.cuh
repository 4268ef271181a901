// What the nlm-bilateral rungs share: the search of one pixel.
#pragma once

#include "study/nlm/patches.cuh"

namespace ungrain::study {

struct NlmBilateralFactors {
  int radius;     // of the search
  int patch;      // how far a patch reaches
  float patches;  // sums of squared differences over a patch times this are exponents
  float space;
  float range;

  explicit NlmBilateralFactors(const Strengths& strengths)
      : radius(strengths.radius),
        patch(patch_reach),
        patches(gaussian_factor(strengths.sigma_h * patch_side)),
        space(gaussian_factor(strengths.sigma_space)),
        range(gaussian_factor(strengths.sigma_range)) {}
};

// value_at(dx, dy) and bilateral_weight(dx, dy, difference) say where the pixels, and the weights of distance
// and difference in value, come from.
template <class ValueAt, class BilateralWeight>
__device__ float filter_nlm_bilateral(const NlmBilateralFactors& factors, ValueAt value_at,
                                      BilateralWeight bilateral_weight) {
  const float own = value_at(0, 0);
  WeightedMean mean;
  for (int dy = -factors.radius; dy <= factors.radius; ++dy) {
    for (int dx = -factors.radius; dx <= factors.radius; ++dx) {
      const float value = value_at(dx, dy);
      const float similarity = expf(factors.patches * patch_distance(value_at, dx, dy, factors.patch));
      mean.add(similarity * bilateral_weight(dx, dy, value - own), value);
    }
  }
  return mean.value();
}

}  // namespace ungrain::study
