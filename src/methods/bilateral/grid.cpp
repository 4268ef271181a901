#include "methods/bilateral/grid.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ungrain/error.h"

namespace ungrain {
namespace {

// Levels for each sigma_range: with 1.5 the result is 50 dB and more from the exact one, with 1 it is 44.
constexpr double levels_per_sigma = 1.5;
// Beyond this many sigma_range the weight is below 1 in 90.
constexpr double sigmas_of_range = 3;
// The finest level is this share of the white level: the grid of a tile stays below some megabytes.
constexpr double smallest_sigma = 0.01;

// What spreading a pixel over two corners and reading between two corners do together, on average over the
// pixels of a cell: the cubic B-spline, `distance` in cells.
double spread_and_read(double distance) {
  const double d = std::fabs(distance);
  if (d < 1) return 2.0 / 3 - d * d + d * d * d / 2;
  return d < 2 ? std::pow(2 - d, 3) / 6 : 0;
}

// The taps, none below 0 (so that no sum of weights can vanish), whose blur of spread_and_read comes nearest
// to wanted(position) at the sample positions: least squares by cyclic descent.
template <class Wanted>
std::vector<double> fitted_taps(int reach, double cell, const std::vector<double>& positions, Wanted wanted) {
  const std::size_t count = 2 * static_cast<std::size_t>(reach) + 1;
  std::vector<std::vector<double>> columns(count);
  std::vector<double> left;  // what is still to be fitted
  for (const double position : positions) left.push_back(wanted(position));
  for (std::size_t tap = 0; tap < count; ++tap) {
    const double corner = (static_cast<double>(tap) - reach) * cell;
    for (const double position : positions) {
      // Cells of one pixel spread nothing.
      const bool pixels = cell == 1 && positions[1] - positions[0] == 1;
      columns[tap].push_back(pixels ? (position == corner ? 1 : 0)
                                    : spread_and_read((position - corner) / cell));
    }
  }
  std::vector<double> taps(count, 0.0);
  constexpr int rounds = 400;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t tap = 0; tap < count; ++tap) {
      double product = 0;
      double norm = 0;
      for (std::size_t i = 0; i < left.size(); ++i) {
        product += columns[tap][i] * left[i];
        norm += columns[tap][i] * columns[tap][i];
      }
      const double change = std::max(taps[tap] + product / norm, 0.0) - taps[tap];
      taps[tap] += change;
      for (std::size_t i = 0; i < left.size(); ++i) left[i] -= change * columns[tap][i];
    }
  }
  return taps;
}

int cell_for(const BilateralParams& params) {
  return std::max(1,
                  static_cast<int>(std::lround(std::min(params.radius / 3.0, params.sigma_space.value()))));
}

std::vector<double> space_taps(const BilateralParams& params, int cell) {
  std::vector<double> positions;
  for (int x = -params.radius - 2 * cell; x <= params.radius + 2 * cell; ++x) positions.push_back(x);
  // Beyond four deviations there is nothing to fit.
  const double far = std::min<double>(params.radius, 4 * params.sigma_space.value());
  const int reach = std::max(1, static_cast<int>(std::ceil(far / cell)));
  return fitted_taps(reach, cell, positions, [&](double x) {
    return std::fabs(x) <= params.radius ? std::exp(-std::pow(x / params.sigma_space.value(), 2) / 2) : 0;
  });
}

// In units of levels.
std::vector<double> range_taps() {
  constexpr int samples = 16;  // of a level
  const int reach = static_cast<int>(std::ceil(sigmas_of_range * levels_per_sigma));
  std::vector<double> positions;
  for (int i = -(reach + 2) * samples; i <= (reach + 2) * samples; ++i) {
    positions.push_back(static_cast<double>(i) / samples);
  }
  return fitted_taps(reach, 1, positions,
                     [](double v) { return std::exp(-std::pow(v / levels_per_sigma, 2) / 2); });
}

}  // namespace

BilateralGrid::BilateralGrid(const BilateralParams& params, const ImageSpec& spec)
    : cell(cell_for(params)),
      lowest(-0.5 * spec.white()),
      highest(1.5 * spec.white()),
      space_taps(ungrain::space_taps(params, cell)),
      range_taps(ungrain::range_taps()) {
  const double sigma_range = params.sigma_range.value();
  if (sigma_range < smallest_sigma * spec.white()) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("bilateral: quality grid takes a sigma_range of at least {:g} (a hundredth of the "
                    "range), got {:g}; exact takes any",
                    smallest_sigma * spec.white(), sigma_range));
  }
  // A larger strength than this treats all values that the grid holds alike to a part in 10^4.
  level = std::min(sigma_range, 200 * spec.white()) / levels_per_sigma;
}

}  // namespace ungrain
