// What a noise model says of one plane of the image that is filtered.
#pragma once

#include <memory>
#include <vector>

#include "noise/correlation.h"
#include "ungrain/noise_model.h"

namespace ungrain {

// The noise of one plane by the level of a group and by the coefficient of its patches.
struct PlaneNoise {
  std::vector<double> levels;     // of the matched plane, ascending
  std::vector<double> variances;  // at these levels
  NoiseModel::Spectrum shares{};  // of each coefficient: its variance over the level's
  double strength = 1;            // factor on the deviation for thresholds and shrinkage, kappa
  // Covariances of neighbouring pixels' noise, if known; else null. With them a group's coefficients have
  // variances that follow from the places of its patches. Shares are 1 on average.
  std::shared_ptr<const PatchCovariances> covariances = {};

  double variance(double level) const;
};
// Lower bound of the share of a group's coefficient. Noise that patches share cancels in their differences,
// and the filter divides by shares.
inline constexpr double least_share = 1e-4;
// At level_scale times the levels of the model.
PlaneNoise plane_noise(const NoiseModel::Channel& channel, double level_scale);
double mean_share(const PlaneNoise& noise);      // a pixel's variance over the level's
double least_variance(const PlaneNoise& noise);  // of any coefficient at any level

}  // namespace ungrain
