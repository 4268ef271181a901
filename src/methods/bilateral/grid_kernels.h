// The vectorised parts of the bilateral grid. A cell's numbers lie together: for each level the sum of
// weights and the sum of values. Two levels beside each other are four floats.
#pragma once

#include <cstddef>

namespace ungrain {

// Blurs along an axis whose neighbours are `step` floats apart, on `lines` lines of `length` positions that
// follow each other; beyond a line's ends there is nothing. taps: 2 reach + 1.
void blur_cells(const float* taps, int reach, const float* in, float* out, std::ptrdiff_t lines, int length,
                std::ptrdiff_t step);

// Where a pixel lies between the cells of a row of them.
struct BetweenColumns {
  std::ptrdiff_t offset;  // of the first column, in floats
  float after;            // the share of the next
};

// A row of pixels read back between the cells of two rows: upper and lower, at level 0.
struct GridRow {
  const float* upper;
  const float* lower;
  float lower_share;
  std::ptrdiff_t column_step;  // floats
  int level0;
  float inverse_level;
  float lowest;  // values beyond these are left as they are
  float highest;
};
void read_grid_row(const GridRow& row, const BetweenColumns* columns, const float* values, int width,
                   float* out);

}  // namespace ungrain
