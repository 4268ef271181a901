#include "methods/bm3d/settings.h"

#include <algorithm>
#include <cmath>

namespace ungrain {

Bm3dSettings bm3d_settings(const Bm3dParams& params, const ImageSpec& spec) {
  Bm3dSettings settings;
  settings.steps = params.steps;
  settings.opponent = params.colour == Bm3dColour::opponent && spec.colour == Colour::rgb;
  settings.sigma_map = params.sigma_map;

  const int planes = spec.colour_channels();
  std::vector<double> sigma(static_cast<std::size_t>(planes), params.sigma.at(0));
  if (params.sigma.size() > 1) sigma = params.sigma;
  settings.sigma = sigma;
  if (settings.opponent) {
    // Where all channels have the same noise their differences have none, which is as hard to believe as to
    // filter.
    constexpr double most = 0.98;
    const double correlation = std::min(params.correlation.value_or(0), most);
    for (int plane = 0; plane < 3; ++plane) {
      double variance = 0;
      for (int a = 0; a < 3; ++a) {
        for (int b = 0; b < 3; ++b) {
          variance += opponent_matrix[plane][a] * sigma[a] * opponent_matrix[plane][b] * sigma[b] *
                      (a == b ? 1 : correlation);
        }
      }
      settings.sigma[plane] = std::sqrt(variance);
    }
  }
  // Luminance goes to sqrt 3 times white: squared differences are three times as large.
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
  second.strength = 1;
  second.transform = params.wiener_transform.value();
  second.along = params.group_transform.value();
  second.kaiser = params.kaiser;

  const double noise = *std::max_element(sigma.begin(), sigma.end()) * 255 / spec.white();
  if (params.profile == Bm3dProfile::dabov2007 && noise > strong_noise) first.prefilter = 2;
  return settings;
}

bool is_identity(const Bm3dSettings& settings) {
  return settings.sigma_map.data == nullptr &&
         std::all_of(settings.sigma.begin(), settings.sigma.end(), [](double s) { return s == 0; });
}

}  // namespace ungrain
