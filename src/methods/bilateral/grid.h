// The bilateral grid: pixels are spread over the corners of coarse cells in x, y and value, the corners
// blurred along each axis, and each pixel read back between the corners around it. Spreading and reading
// smooth by themselves; the blur's taps are fitted so that all three together come nearest to the exact
// window.
#pragma once

#include <vector>

#include "ungrain/image.h"
#include "ungrain/methods/bilateral.h"

namespace ungrain {

struct BilateralGrid {
  // Throws where sigma_range is too small for a grid of bounded size.
  BilateralGrid(const BilateralParams& params, const ImageSpec& spec);

  int cell;      // pixels from corner to corner; corners lie at multiples of it in image coordinates
  double level;  // pixel units from corner to corner along the values, at multiples of it
  // Pixels with values beyond these take no part and are left as they are.
  double lowest;
  double highest;
  std::vector<double> space_taps;  // along x and y, from -space_reach() to space_reach() corners
  std::vector<double> range_taps;  // along the values

  int space_reach() const { return static_cast<int>(space_taps.size()) / 2; }
  int range_reach() const { return static_cast<int>(range_taps.size()) / 2; }
  // Pixels around an output pixel that reach it.
  int reach() const { return (space_reach() + 2) * cell - 1; }
  bool holds(double value) const { return value >= lowest && value <= highest; }
};

// The corner at or before a position.
constexpr int corner_before(int position, int cell) {
  return position >= 0 ? position / cell : -((cell - 1 - position) / cell);
}

}  // namespace ungrain
