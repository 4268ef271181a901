// The vectorised parts of the bilateral grid. A cell's numbers are adjacent: for each level the sum of
// weights and the sum of values. Two neighbouring levels are four floats.
#pragma once

#include <cstddef>

namespace ungrain {

// Values beyond these do not count.
struct HeldValues {
  float lowest;
  float highest;
  bool holds(float value) const { return value >= lowest && value <= highest; }
};

// Extends [low, high] by the values that count.
void extend_range(const float* values, std::ptrdiff_t count, const HeldValues& held, float& low, float& high);

// Adds pixels of one row to their cell, whose levels begin with level0, between the two levels around each.
void count_in_cell(const float* values, int count, const HeldValues& held, float inverse_level, int level0,
                   float* cell);

// Blurs along an axis whose neighbours are `step` floats apart, on `lines` consecutive lines of `length`
// positions; zero beyond a line's ends. taps: 2 reach + 1. `out` has blur_slack floats more; `padded` has
// room for a line, 2 reach positions and the slack.
inline constexpr std::ptrdiff_t blur_slack = 64;
void blur_cells(const float* taps, int reach, const float* in, float* out, std::ptrdiff_t lines, int length,
                std::ptrdiff_t step, float* padded);

// The position of a pixel between the cells of a row.
struct ColumnPosition {
  std::ptrdiff_t offset;  // of the first column, in floats
  float after;            // the share of the next
};

// A row of pixels interpolated between two rows of cells: upper and lower, at level 0.
struct GridRow {
  const float* upper;
  const float* lower;
  float lower_share;
  std::ptrdiff_t column_step;  // floats
  int level0;
  float inverse_level;
  HeldValues held;  // others are left as they are
};
void read_grid_row(const GridRow& row, const ColumnPosition* columns, const float* values, int width,
                   float* out);

}  // namespace ungrain
