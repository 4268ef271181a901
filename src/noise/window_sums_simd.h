// Sums over an image's pixels that measure the flatness of its windows. Integer sums are exact; float sums
// have one order: the same bits on every set of instructions.
#pragma once

#include <cstdint>

#include "ungrain/image.h"

namespace ungrain {

// Sums over squares of 2 x 2 pixels and over the channels [first, first + count) of two rows, `above` and
// `below` (views of one row, maybe of different layout): width / 2 of them.
class QuadSums {
 public:
  QuadSums(const ImageSpec& image, int first_channel, int channels)
      : first_(first_channel), channels_(channels), width_(image.width) {}
  void operator()(const ConstImageView& above, const ConstImageView& below, float* scratch, float* out) const;
  int scratch() const { return 2 * channels_ * width_; }  // floats

 private:
  int first_;
  int channels_;
  int width_;
};

// Sums over cells of 4 x 4 pixels, `count` of them 2 or 4 pixels apart, from two rows of quads.
void cell_sums(const float* above, const float* below, int pixels_apart, int count, float* out);

// A row of windows of 4 x 4 cells, one window at each cell that it can begin with.
struct WindowRow {
  const float* cells[4] = {};  // rows of cells
  int cell_count = 0;          // in each row
  int apart = 1;               // from a cell of a window to the next
  double level_scale = 1;      // from the sum over a window to the square of its place in [0, level_count)
  int level_count = 1;

  int count() const { return cell_count - 3 * apart; }
};
struct WindowStatistics {
  // 256 times the variance of the cells' sums, 144 times that of the 12 outer ones. Not finite if a sample is
  // not; the level is then undefined.
  double* texture = nullptr;
  double* ring = nullptr;
  std::int32_t* level = nullptr;
};
// `scratch` holds four doubles a cell.
void measure_windows(const WindowRow& row, double* scratch, const WindowStatistics& out);

}  // namespace ungrain
