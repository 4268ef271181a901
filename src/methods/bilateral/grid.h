// The bilateral grid: every pixel is added to one coarse cell of x and y, between two levels of value; the
// cells are blurred along each axis, and each pixel is interpolated between the cells around it. Adding and
// interpolating smooth as well; the blur's taps are fitted so that the three steps together come nearest to
// the exact window.
#pragma once

#include <vector>

#include "ungrain/image.h"
#include "ungrain/methods/bilateral.h"

namespace ungrain {

// The smallest sigma_range, as a share of the white level: the grid of a tile stays below some megabytes.
inline constexpr double smallest_grid_sigma = 0.01;

struct BilateralGrid {
  // Throws where sigma_range is too small for a grid of bounded size.
  BilateralGrid(const BilateralParams& params, const ImageSpec& spec);

  int cell;      // pixels a side; cell i begins at pixel i * cell
  double level;  // pixel units from level to level; level i lies at i * level
  // Pixels with values beyond these do not count and stay as they are.
  double lowest;
  double highest;
  std::vector<double> space_taps;  // along x and y, from -space_reach() to space_reach() cells
  std::vector<double> range_taps;  // along the values

  int space_reach() const { return static_cast<int>(space_taps.size()) / 2; }
  int range_reach() const { return static_cast<int>(range_taps.size()) / 2; }
  // Pixels around an output pixel that reach it.
  int reach() const { return (space_reach() + 2) * cell - 1; }
  bool holds(double value) const { return value >= lowest && value <= highest; }
};

// The cell to which a pixel is added.
constexpr int cell_of(int position, int cell) {
  return position >= 0 ? position / cell : -((cell - 1 - position) / cell);
}

// The cell whose centre lies at a pixel or before it; the next cell's centre lies behind it. `after`, the
// share of the next cell, is in half pixels: divide by 2 cell.
struct CellPosition {
  int first;
  int after;
};
constexpr CellPosition between_cells(int position, int cell) {
  const int doubled = 2 * position - (cell - 1);
  const int first = cell_of(doubled, 2 * cell);
  return {first, doubled - first * 2 * cell};
}

}  // namespace ungrain
