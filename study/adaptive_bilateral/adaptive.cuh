// What the adaptive rungs share: both passes over the window of one pixel.
#pragma once

#include "study/kernels.cuh"

namespace ungrain::study {

struct AdaptiveFactors {
  int radius;
  float space;
  float range;  // of the first pass
  float factor;
  float epsilon;

  explicit AdaptiveFactors(const Strengths& strengths)
      : radius(strengths.radius),
        space(gaussian_factor(strengths.sigma_space)),
        range(gaussian_factor(strengths.sigma_range)),
        factor(static_cast<float>(strengths.factor)),
        epsilon(static_cast<float>(strengths.epsilon)) {}
};

// value_at(dx, dy) and spatial_at(dx, dy) say where the pixels and the spatial weights come from.
template <class ValueAt, class SpatialAt>
__device__ float filter_adaptively(const AdaptiveFactors& factors, ValueAt value_at, SpatialAt spatial_at) {
  const int radius = factors.radius;
  const float centre = value_at(0, 0);
  WeightedMean square;  // the variance around the pixel itself
  for (int dy = -radius; dy <= radius; ++dy) {
    for (int dx = -radius; dx <= radius; ++dx) {
      const float difference = value_at(dx, dy) - centre;
      square.add(spatial_at(dx, dy) * gaussian(difference, factors.range), difference * difference);
    }
  }
  const float sigma = factors.factor * sqrtf(fmaxf(square.value() + factors.epsilon, factors.epsilon));
  const float range = -0.5F / (sigma * sigma);
  WeightedMean mean;
  for (int dy = -radius; dy <= radius; ++dy) {
    for (int dx = -radius; dx <= radius; ++dx) {
      const float value = value_at(dx, dy);
      mean.add(spatial_at(dx, dy) * gaussian(value - centre, range), value);
    }
  }
  return mean.value();
}

}  // namespace ungrain::study
