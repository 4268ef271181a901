#include "methods/bm3d/settings.h"

#include <algorithm>
#include <cmath>

#include "core/channel_noise.h"
#include "noise/noise_model.h"

namespace ungrain {
namespace {

// Patches of a group lie up to a window's side less 1 apart.
int widest_group(const Bm3dSettings& settings) {
  const int second = settings.steps > 1 ? settings.second.search : 1;
  return std::max(settings.first.search, second) - 1;
}

// The covariances contain the noise that patches share, so kappa is 1.
void use_correlations(const NoiseModel& model, Bm3dSettings& settings) {
  for (std::size_t plane = 0; plane < settings.model.size(); ++plane) {
    const std::vector<double>& correlation = model.channels[plane].correlation;
    if (correlation.size() <= 1) continue;  // not known, or white
    PlaneNoise& noise = settings.model[plane];
    if (plane > 0 && correlation == model.channels[plane - 1].correlation) {
      noise.covariances = settings.model[plane - 1].covariances;
    } else {
      noise.covariances = std::make_shared<const PatchCovariances>(correlation, widest_group(settings));
    }
    const double mean = mean_share(noise);
    for (double& variance : noise.variances) variance *= mean;
    for (std::size_t i = 0; i < noise.shares.size(); ++i)
      noise.shares[i] = std::max(noise.covariances->at(0, 0)[i], least_share);
    noise.strength = 1;
  }
}

// Groups over time have few patches of one image, so each pixel has fewer estimates than in a single image
// and more noise is left in their mean. LOG.md has the figures.
constexpr double time_wiener_strength = 1.05;

// Corrects for more shared noise than there is: LOG.md has the figures.
constexpr double matching_factor = 2;

}  // namespace

Bm3dSettings bm3d_settings(const Bm3dParams& params, const ImageSpec& spec) {
  Bm3dSettings settings;
  settings.steps = params.steps;
  settings.radius_t = params.radius_t;
  settings.pilot = params.pilot;
  settings.over_time = is_over_time(params, spec);
  settings.opponent = params.colour == Bm3dColour::opponent && spec.colour == Colour::rgb;
  settings.sigma_map = params.sigma_map;

  const int planes = spec.colour_channels();
  const std::vector<double> sigma = channel_deviations(params.sigma, planes);
  settings.sigma = settings.opponent ? opponent_deviations(sigma, params.correlation.value_or(0)) : sigma;
  if (params.noise_model != nullptr) {
    const double level_scale = settings.opponent ? std::sqrt(3.0) : 1;
    for (int plane = 0; plane < planes; ++plane) {
      settings.model.push_back(plane_noise(params.noise_model->channels[plane], level_scale));
      settings.sigma[plane] = mean_deviation(*params.noise_model, plane);
    }
  }
  // Luminance reaches sqrt 3 times white, so squared differences are three times as large.
  const double on_matched_plane = settings.opponent ? 3 : 1;

  Bm3dStep& first = settings.first;
  first.patch = params.patch.value();
  first.spacing = params.spacing.value();
  first.search = params.search.value();
  first.group = params.group.value();
  first.max_distance = params.max_distance.value() * on_matched_plane;
  first.strength = params.lambda.value();
  first.transform = params.transform.value();
  first.along = params.group_transform.value();
  first.kaiser = params.kaiser;

  Bm3dStep& second = settings.second;
  second.patch = params.wiener_patch.value();
  second.spacing = params.wiener_spacing.value();
  second.search = params.wiener_search.value();
  second.group = params.wiener_group.value();
  second.max_distance = params.wiener_max_distance.value() * on_matched_plane;
  second.strength = settings.over_time && params.radius_t > 0 ? time_wiener_strength : 1;
  second.transform = params.wiener_transform.value();
  second.along = params.group_transform.value();
  second.kaiser = params.kaiser;
  if (params.noise_model != nullptr && !settings.over_time) use_correlations(*params.noise_model, settings);

  const double noise = *std::max_element(sigma.begin(), sigma.end()) * 255 / spec.white();
  if (params.profile == Bm3dProfile::dabov2007 && noise > strong_noise) first.prefilter = 2;
  return settings;
}

bool is_correlated(const Bm3dSettings& settings) {
  return std::any_of(settings.model.begin(), settings.model.end(),
                     [](const PlaneNoise& noise) { return noise.covariances != nullptr; });
}

double distance_correction(const Bm3dSettings& settings, int step, int plane, int dx, int dy) {
  if (step > 0 || settings.model.empty() || !settings.model[plane].covariances) return 0;
  const double variance = settings.sigma[plane] * settings.sigma[plane];
  return matching_factor * 2 * variance * settings.model[plane].covariances->of_pixels(dx, dy);
}

double least_correction(const Bm3dSettings& settings, int step, int plane) {
  if (step > 0 || settings.model.empty() || !settings.model[plane].covariances) return 0;
  const PatchCovariances& covariances = *settings.model[plane].covariances;
  double least = 0;
  for (int dy = 0; dy <= covariances.reach_y(); ++dy) {
    for (int dx = -covariances.reach_x(); dx <= covariances.reach_x(); ++dx)
      least = std::min(least, distance_correction(settings, step, plane, dx, dy));
  }
  return least;
}

bool is_identity(const Bm3dSettings& settings) {
  return settings.sigma_map.data == nullptr &&
         std::all_of(settings.sigma.begin(), settings.sigma.end(), [](double s) { return s == 0; });
}

}  // namespace ungrain
