#include "methods/bm4d/settings.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/channel_noise.h"
#include "core/convert.h"
#include "core/rows.h"

namespace ungrain {
namespace {

// The Kaiser window's parameter, chosen with the profiles: LOG.md has the figures.
constexpr double window_beta = 3;

double bessel_i0(double x) {
  double sum = 1;
  double term = 1;
  for (int k = 1; k < 30; ++k) {
    term *= x * x / 4 / (k * k);
    sum += term;
  }
  return sum;
}

}  // namespace

int Bm4dSettings::reach() const {
  return threshold.reach(threshold.radius) + (steps > 1 ? wiener.reach(wiener.radius) : 0);
}

int Bm4dSettings::reach_z() const {
  return threshold.reach(threshold.radius_z) + (steps > 1 ? wiener.reach(wiener.radius_z) : 0);
}

Bm4dSettings bm4d_settings(const Bm4dParams& params, const ImageSpec& spec) {
  Bm4dSettings settings;
  settings.spec = spec;
  settings.sigma = channel_deviations(params.sigma, spec.colour_channels());
  settings.sigma_map = params.sigma_map;
  settings.correlation = params.correlation;
  settings.lambda = params.lambda.value();
  settings.steps = params.steps;
  const auto step = [&](int cube, int spacing, int search, int group) {
    const int along_z = params.search_z.value_or(search);
    return Bm4dStep{cube, spacing, search / 2, along_z / 2, cubes_taken(group, group)};
  };
  settings.threshold =
      step(params.cube.value(), params.stride.value(), params.search.value(), params.group.value());
  settings.wiener = step(params.wiener_cube.value(), params.wiener_stride.value(),
                         params.wiener_search.value(), params.wiener_group.value());
  return settings;
}

bool is_identity(const Bm4dSettings& settings) {
  return std::all_of(settings.sigma.begin(), settings.sigma.end(), [](double sigma) { return sigma == 0; });
}

double map_deviation(const Bm4dSettings& settings, int channel, int x, int y, int z) {
  const ConstImageView& map = settings.sigma_map;
  const int place = y * solid_extent(settings.spec).width + x;
  float deviation = 0;
  load_row(columns_of(map, place, 1), z, map.spec.channels == 1 ? 0 : channel, &deviation);
  return deviation;
}

float compared_scale(const Bm4dSettings& settings, int channel) {
  constexpr double steps_of_deviation = 8;
  // Where the noise is next to nothing, its units would leave the range of float.
  constexpr double least_of_white = 1e-9;
  const double sigma =
      std::max(settings.sigma[static_cast<std::size_t>(channel)], least_of_white * settings.spec.white());
  return static_cast<float>(steps_of_deviation / sigma);
}

std::vector<double> cube_transform(int cube) {
  std::vector<double> rows;
  for (int k = 0; k < cube; ++k) {
    for (int i = 0; i < cube; ++i) {
      const double norm = std::sqrt((k == 0 ? 1.0 : 2.0) / cube);
      rows.push_back(norm * std::cos(std::numbers::pi * (i + 0.5) * k / cube));
    }
  }
  return rows;
}

std::vector<double> coefficient_deviations(const Bm4dSettings& settings, int cube) {
  if (settings.correlation.empty()) return {};
  constexpr int most = Bm4dParams::largest_correlated_offset;
  constexpr int offsets = 2 * most + 1;
  const std::vector<double> transform = cube_transform(cube);
  // The sum of the products of a basis function's values that lie `d` apart.
  const auto overlap = [&](int k, int d) {
    double sum = 0;
    for (int i = std::max(0, -d); i < std::min(cube, cube - d); ++i) {
      sum += transform[static_cast<std::size_t>(k * cube + i)] *
             transform[static_cast<std::size_t>(k * cube + i + d)];
    }
    return sum;
  };
  const auto variance = [&](int kx, int ky, int kz) {
    double sum = 0;
    for (int at = 0; at < offsets * offsets * offsets; ++at) {
      sum += settings.correlation[static_cast<std::size_t>(at)] * overlap(kx, at % offsets - most) *
             overlap(ky, at / offsets % offsets - most) * overlap(kz, at / (offsets * offsets) - most);
    }
    return sum;
  };
  constexpr double least_variance = 1e-6;  // a correlation that was measured may add up to less than 0
  std::vector<double> deviations;
  for (int at = 0; at < cube * cube * cube; ++at) {
    const double own = variance(at % cube, at / cube % cube, at / (cube * cube));
    deviations.push_back(std::sqrt(std::max(own, least_variance)));
  }
  return deviations;
}

std::vector<double> cube_window(int cube) {
  std::vector<double> weights;
  for (int i = 0; i < cube; ++i) {
    const double r = cube > 1 ? 2.0 * i / (cube - 1) - 1 : 0;
    weights.push_back(bessel_i0(window_beta * std::sqrt(1 - r * r)) / bessel_i0(window_beta));
  }
  return weights;
}

}  // namespace ungrain
