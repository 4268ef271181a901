#include "methods/ridge/settings.h"

#include <algorithm>
#include <cmath>

#include "core/channel_noise.h"
#include "noise/noise_model.h"

namespace ungrain {

RidgeSettings ridge_settings(const RidgeParams& params, const ImageSpec& spec) {
  RidgeSettings settings;
  settings.passes = params.passes.value();
  settings.start = params.start.value();
  settings.keep = params.keep.value();
  settings.noise_factor = params.noise_factor.value();
  settings.patch = params.patch.value();
  settings.spacing = params.spacing.value();
  settings.search = params.search.value();
  settings.group = params.group.value();
  settings.opponent = spec.colour == Colour::rgb;
  settings.sigma_map = params.sigma_map;
  settings.spec = spec;
  // Luminance reaches sqrt 3 times white.
  settings.white = spec.white() * (settings.opponent ? std::sqrt(3.0) : 1);
  const std::vector<double> sigma = channel_deviations(params.sigma, spec.colour_channels());
  settings.sigma = settings.opponent ? opponent_deviations(sigma, params.correlation.value_or(0)) : sigma;
  if (params.noise_model != nullptr) {
    const double level_scale = settings.opponent ? std::sqrt(3.0) : 1;
    for (int plane = 0; plane < settings.planes(); ++plane) {
      settings.model.push_back(plane_noise(params.noise_model->channels[plane], level_scale));
      settings.sigma[plane] = mean_deviation(*params.noise_model, plane);
    }
  }
  return settings;
}

double variance_at(const RidgeSettings& settings, int plane, double level) {
  const PlaneNoise& noise = settings.model[plane];
  return noise.variance(level) * mean_share(noise);
}

bool is_identity(const RidgeSettings& settings) {
  return std::all_of(settings.sigma.begin(), settings.sigma.end(), [](double sigma) { return sigma == 0; });
}

// From black to white and a margin beyond, for noise: 8 bits, or up to 12 where their steps are coarse beside
// the noise.
MatchScale match_scale(const RidgeSettings& settings, int plane) {
  constexpr float most_of_8_bits = 127;
  constexpr float most_of_12_bits = 2047;
  constexpr double coarsest = 0.5;  // largest step of 8 bits, as a share of the noise
  constexpr double finest = 1.0 / 8;
  const double sigma = settings.sigma[plane];
  const double half = settings.white * 9 / 16 + 3 * sigma;
  MatchScale scale;
  scale.most = most_of_8_bits;
  double step = half / scale.most;
  if (step > coarsest * sigma) {
    scale.deep = true;
    scale.most = most_of_12_bits;
    step = std::max(half / scale.most, finest * sigma);
  }
  scale.middle = static_cast<float>(settings.white / 2);
  scale.inverse_step = static_cast<float>(1 / step);
  return scale;
}

MatchScale match_scale_beyond(const RidgeSettings& settings, int plane) {
  return {
      .middle = 0, .inverse_step = static_cast<float>(8 / settings.sigma[plane]), .deep = true, .most = 2047};
}

}  // namespace ungrain
