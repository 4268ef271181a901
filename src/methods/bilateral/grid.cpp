#include "methods/bilateral/grid.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ungrain/error.h"

namespace ungrain {
namespace {

// Levels for each sigma_range, and cells for the window's radius: finer ones come nearer to the exact filter
// and cost more. docs/results/bilateral-approximations.md has the errors of these.
constexpr double levels_per_sigma = 1.25;
constexpr double cells_per_radius = 2.5;
// Beyond this many sigma_range the weight is below 1 in 90.
constexpr double sigmas_of_range = 3;

// Contribution of a tap at 0 to a pixel at `distance` levels, when both are interpolated between two levels,
// on average over the pixel's position between them: the cubic B-spline.
double counted_and_read(double distance) {
  const double d = std::fabs(distance);
  if (d < 1) return 2.0 / 3 - d * d + d * d * d / 2;
  return d < 2 ? std::pow(2 - d, 3) / 6 : 0;
}

// The taps, none below 0 (so that no sum of weights can vanish), for which sum_t taps[t] columns[t][i] is
// nearest to wanted[i]: least squares by cyclic descent.
std::vector<double> fitted_taps(const std::vector<std::vector<double>>& columns, std::vector<double> wanted) {
  std::vector<double> taps(columns.size(), 0.0);
  constexpr int rounds = 400;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t tap = 0; tap < taps.size(); ++tap) {
      double product = 0;
      double norm = 0;
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        product += columns[tap][i] * wanted[i];
        norm += columns[tap][i] * columns[tap][i];
      }
      const double change = std::max(taps[tap] + product / norm, 0.0) - taps[tap];
      taps[tap] += change;
      for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] -= change * columns[tap][i];
    }
  }
  return taps;
}

int cell_for(const BilateralParams& params) {
  return std::max(
      1,
      static_cast<int>(std::lround(std::min(params.radius / cells_per_radius, params.sigma_space.value()))));
}

// Contribution of a tap `cells` away to a pixel `distance` away, on average over the positions in a cell.
double counted_and_read(int distance, int cells, int cell) {
  double sum = 0;
  for (int place = 0; place < cell; ++place) {
    const CellPosition read = between_cells(place, cell);
    const double after = read.after / (2.0 * cell);
    const int counted = cell_of(place + distance, cell);
    if (counted == read.first + cells) sum += 1 - after;
    if (counted == read.first + 1 + cells) sum += after;
  }
  return sum / cell;
}

std::vector<double> space_taps(const BilateralParams& params, int cell) {
  // Beyond four deviations the weights are negligible.
  const double far = std::min<double>(params.radius, 4 * params.sigma_space.value());
  const int reach = std::max(1, static_cast<int>(std::ceil(far / cell)));
  std::vector<std::vector<double>> columns(2 * static_cast<std::size_t>(reach) + 1);
  std::vector<double> wanted;
  const int most = params.radius + 2 * cell;
  for (int x = -most; x <= most; ++x) {
    wanted.push_back(std::abs(x) <= params.radius ? std::exp(-std::pow(x / params.sigma_space.value(), 2) / 2)
                                                  : 0);
    for (int tap = -reach; tap <= reach; ++tap) {
      columns[static_cast<std::size_t>(tap + reach)].push_back(counted_and_read(x, tap, cell));
    }
  }
  return fitted_taps(columns, wanted);
}

// Taps in units of levels.
std::vector<double> range_taps() {
  constexpr int samples = 16;  // of a level
  const int reach = static_cast<int>(std::ceil(sigmas_of_range * levels_per_sigma));
  std::vector<std::vector<double>> columns(2 * static_cast<std::size_t>(reach) + 1);
  std::vector<double> wanted;
  for (int i = -(reach + 2) * samples; i <= (reach + 2) * samples; ++i) {
    const double v = static_cast<double>(i) / samples;
    wanted.push_back(std::exp(-std::pow(v / levels_per_sigma, 2) / 2));
    for (int tap = -reach; tap <= reach; ++tap) {
      columns[static_cast<std::size_t>(tap + reach)].push_back(counted_and_read(v - tap));
    }
  }
  return fitted_taps(columns, wanted);
}

}  // namespace

BilateralGrid::BilateralGrid(const BilateralParams& params, const ImageSpec& spec)
    : cell(cell_for(params)),
      lowest(-0.5 * spec.white()),
      highest(1.5 * spec.white()),
      space_taps(ungrain::space_taps(params, cell)),
      range_taps(ungrain::range_taps()) {
  const double sigma_range = params.sigma_range.value();
  if (sigma_range < smallest_grid_sigma * spec.white()) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("bilateral: quality grid takes a sigma_range of at least {:g} (a hundredth of the "
                    "range), got {:g}; exact takes any",
                    smallest_grid_sigma * spec.white(), sigma_range));
  }
  // A larger strength treats all values in the grid alike to a part in 10^4.
  level = std::min(sigma_range, 200 * spec.white()) / levels_per_sigma;
}

}  // namespace ungrain
