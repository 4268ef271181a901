#include "methods/nlm3d/settings.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>

namespace ungrain {
namespace {

// The correlation of the copy's noise at a distance along one axis, for noise of 1.
double correlation(double prefilter, int distance) {
  const double own = 1 - 2 * prefilter;
  switch (distance) {
    case 0:
      return own * own + 2 * prefilter * prefilter;
    case 1:
      return 2 * own * prefilter;
    case 2:
      return prefilter * prefilter;
    default:
      return 0;
  }
}

// Summed over all pairs of a patch's voxels along one axis.
double squared_correlations(int patch, double prefilter) {
  double sum = 0;
  for (int k = 1 - patch; k < patch; ++k) {
    sum += (patch - std::abs(k)) * std::pow(correlation(prefilter, std::abs(k)), 2);
  }
  return sum;
}

}  // namespace

double NlmVolumeSettings::exponent_scale() const {
  return std::sqrt(std::numbers::log2e / patch_voxels()) / h;
}

double NlmVolumeSettings::noise_exponent() const { return 2 * std::pow(noise / h, 2) * std::numbers::log2e; }

double prefilter_along_z(double prefilter, double aspect, int depth) {
  // One slice is its own neighbour: smoothing would leave the noise as it is.
  return depth > 1 ? std::min(prefilter / (aspect * aspect), largest_prefilter) : 0;
}

double noise_after_prefilter(double prefilter, double prefilter_z) {
  return correlation(prefilter, 0) * std::sqrt(correlation(prefilter_z, 0));
}

double distance_deviation(int patch, int patch_z, double prefilter, double prefilter_z) {
  const double squares =
      std::pow(squared_correlations(patch, prefilter), 2) * squared_correlations(patch_z, prefilter_z);
  return std::pow(squares, 0.25) / std::sqrt(patch * patch * patch_z);
}

NlmVolumeSettings nlm3d_settings(const NlmVolumeParams& params, const ImageSpec& spec) {
  NlmVolumeSettings settings;
  settings.spec = spec;
  settings.radius = params.search / 2;
  settings.radius_z = params.search_z.value() / 2;
  settings.around = params.patch / 2;
  settings.around_z = params.patch_z.value() / 2;
  settings.prefilter = params.prefilter.value();
  settings.prefilter_z = prefilter_along_z(settings.prefilter, params.aspect, spec.height);
  settings.noise = params.sigma.value_or(0) * noise_after_prefilter(settings.prefilter, settings.prefilter_z);
  settings.h = params.h.value();
  settings.self = params.self;
  return settings;
}

bool is_identity(const NlmVolumeSettings& settings) {
  return settings.h == 0 || (settings.radius == 0 && settings.radius_z == 0);
}

}  // namespace ungrain
