// The moments of Gaussian noise that was cut off, of many areas at once: an area a lane. Every lane computes
// in the same order, without fused multiply-adds: the same bits on every set of instructions.
#pragma once

#include <cstddef>

namespace ungrain {

inline constexpr std::size_t cut_areas = 144;  // at most; a multiple of what is computed at a time

// Of each area.
struct alignas(64) CutMoments {
  double mean[cut_areas];
  double second[cut_areas];  // about the mean, as the fourth
  double fourth[cut_areas];
};

// A Gaussian as `count` weights at these distances from its centre.
struct GaussianWeights {
  const double* weights = nullptr;
  const double* offsets = nullptr;
  int count = 0;
};

// `centres` holds cut_areas means before the cut at 0 and white.
void find_cut_moments(const double* centres, const GaussianWeights& gaussian, double white,
                      CutMoments& moments);

}  // namespace ungrain
