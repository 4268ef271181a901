// What the nlm rungs share: the weights, and a pixel's own one.
#pragma once

#include "study/nlm/patches.cuh"

namespace ungrain::study {

struct NlmFactors {
  int radius;    // of the search
  int patch;     // how far a patch reaches, for the kernels that do not know it beforehand
  float factor;  // sums of squared differences over a patch times this are exponents

  explicit NlmFactors(const Strengths& strengths)
      : radius(strengths.radius),
        patch(patch_reach),
        factor(static_cast<float>(-1 / (strengths.h * strengths.h * patch_side * patch_side))) {}

  __device__ float weight(float distance) const { return expf(factor * distance); }
};

// The mean of the pixels that are searched. The pixel itself is added last, with the largest weight of the
// others ([004] §5).
struct SearchMean {
  float weights = 0;
  float values = 0;
  float largest = 0;

  __device__ void add(float weight, float value) {
    weights += weight;
    values += weight * value;
    largest = fmaxf(largest, weight);
  }
  __device__ float value(float own) const {
    const float self = largest > 0 ? largest : 1.0F;
    return (values + self * own) / (weights + self);
  }
};

// The definition, pixel by pixel of the search; value_at as patch_distance()'s.
template <class ValueAt>
__device__ float filter_nlm(const NlmFactors& factors, ValueAt value_at) {
  SearchMean mean;
  for (int dy = -factors.radius; dy <= factors.radius; ++dy) {
    for (int dx = -factors.radius; dx <= factors.radius; ++dx) {
      if (dx == 0 && dy == 0) continue;
      mean.add(factors.weight(patch_distance(value_at, dx, dy, factors.patch)), value_at(dx, dy));
    }
  }
  return mean.value(value_at(0, 0));
}

}  // namespace ungrain::study
