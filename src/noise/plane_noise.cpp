#include "noise/plane_noise.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "noise/noise_model.h"

namespace ungrain {
namespace {

// kappa. Patches of a group overlap or lie close, so noise with few high frequencies is correlated between
// them: it adds up in the group's low coefficients, and patches with the same noise look similar. The filter
// must therefore assume more noise than one patch's spectrum says: 1 for white noise, about 1.6 for camera
// noise, up to 2 after JPEG. methods/bm3d/LOG.md has the
// figures.
double strength_of(const NoiseModel::Spectrum& spectrum) {
  const double high = band_rms(spectrum, high_band);
  const double ratio = high > 0 ? band_rms(spectrum, low_band) / high : 1;
  return 1 + std::clamp(0.25 * (std::log2(ratio) - 0.5), 0.0, 1.0);
}

}  // namespace

PlaneNoise plane_noise(const NoiseModel::Channel& channel, double level_scale) {
  PlaneNoise noise;
  for (std::size_t n = 0; n < channel.levels.size(); ++n) {
    noise.levels.push_back(channel.levels[n] * level_scale);
    noise.variances.push_back(channel.deviations[n] * channel.deviations[n]);
  }
  for (std::size_t i = 0; i < noise.shares.size(); ++i) {
    noise.shares[i] = channel.spectrum[i] * channel.spectrum[i];
  }
  noise.strength = strength_of(channel.spectrum);
  return noise;
}

double PlaneNoise::variance(double level) const {
  const auto above = std::upper_bound(levels.begin(), levels.end(), level);
  if (above == levels.begin()) return variances.front();
  if (above == levels.end()) return variances.back();
  const auto i = static_cast<std::size_t>(above - levels.begin());
  return variances[i - 1] +
         (level - levels[i - 1]) / (levels[i] - levels[i - 1]) * (variances[i] - variances[i - 1]);
}

double mean_share(const PlaneNoise& noise) {
  return std::accumulate(noise.shares.begin(), noise.shares.end(), 0.0) /
         static_cast<double>(noise.shares.size());
}

double least_variance(const PlaneNoise& noise) {
  return *std::min_element(noise.variances.begin(), noise.variances.end()) *
         *std::min_element(noise.shares.begin(), noise.shares.end());
}

}  // namespace ungrain
