// Replaces samples that noise took beyond black or white, where they were cut off, by what they were on
// average: the noise is symmetric again, and methods that average it keep the mean.
#pragma once

#include <cstdint>
#include <vector>

#include "core/border.h"
#include "core/host_device.h"
#include "core/point_curve.h"
#include "ungrain/image.h"

namespace ungrain {

inline constexpr int fill_window = 4;  // pixels: half-width of the square whose mean gives the level

// The replacement at one limit of one plane. Distances from the limit are positive inwards.
struct FillShape {
  bool on = false;
  float limit = 0;
  float inwards = 1;   // or -1
  CurveShape by_mean;  // of each draw's table: a cut sample's distance, by the mean of the samples around it
};

// A cut sample's replacement is drawn from this many equally likely values. Each is the mean of one quantile
// of the noise beyond the limit.
inline constexpr int fill_draws = 16;

struct FillCurves {
  FillShape shape;
  std::vector<float> draws;  // fill_draws tables one after the other
};

// The replacements of a plane at both limits; either may be off.
struct ChannelFill {
  FillCurves black;
  FillCurves white;
};

// 0 to fill_draws - 1: the same for a pixel in every region of the image.
UNGRAIN_HOST_DEVICE inline int draw_of(int x, int y, int plane) {
  std::uint32_t h = static_cast<std::uint32_t>(x) * 0x9E3779B1U ^
                    static_cast<std::uint32_t>(y) * 0x85EBCA77U ^
                    static_cast<std::uint32_t>(plane) * 0xC2B2AE3DU;
  h ^= h >> 16U;
  h *= 0x7FEB352DU;
  h ^= h >> 15U;
  h *= 0x846CA68BU;
  h ^= h >> 16U;
  return static_cast<int>(h % fill_draws);
}

// What lies beside a pixel. Of volumes, whose rows are slices, the voxels of the same line.
struct FillArea {
  bool wraps = false;
  SliceShape slice = {};

  UNGRAIN_HOST_DEVICE Border border() const { return wraps ? Border::wrap : Border::symmetric; }
  UNGRAIN_HOST_DEVICE int whole_width() const {
    return slice.whole_width > 0 ? slice.whole_width : slice.width;
  }
  // The column `dx` beside column x. Beyond the volume's edge lies its mirror image, beyond that of a part
  // nothing that is known: its last voxel, whose neighbours are not final.
  UNGRAIN_HOST_DEVICE int beside(int x, int dx, int width) const {
    if (slice.width == 0) return border_index(border(), x + dx, width);
    const int line = x / slice.width * slice.width;
    const int place = border_index(border(), x - line + slice.x + dx, whole_width()) - slice.x;
    return line + (place < 0 ? 0 : place < slice.width ? place : slice.width - 1);
  }
  // A number for the column, the same in every part of the volume.
  UNGRAIN_HOST_DEVICE int number(int x, int width) const {
    if (slice.width == 0) return border_index(Border::wrap, x, width);
    return (x / slice.width + slice.y) * whole_width() + x % slice.width + slice.x;
  }
};

// Mean of the pixels around, without the pixel itself, whose value is biased by the cut.
UNGRAIN_HOST_DEVICE inline float mean_around(const ConstPlanes& in, const Extent& image, const FillArea& area,
                                             int plane, int x, int y) {
  int columns[2 * fill_window + 1];
  for (int dx = -fill_window; dx <= fill_window; ++dx)
    columns[dx + fill_window] = area.beside(x, dx, image.width) - in.rect.x0;
  float sum = 0;
  for (int dy = -fill_window; dy <= fill_window; ++dy) {
    const float* row = in.row(plane, border_row(area.border(), in.rect, image, y + dy));
    for (const int column : columns) sum += row[column];
  }
  constexpr float others = (2 * fill_window + 1) * (2 * fill_window + 1) - 1;
  return (sum - in.row(plane, y)[x - in.rect.x0]) / others;
}

// Replacement of cut samples at one limit, as kernels read it.
struct FillTables {
  FillShape shape;
  const float* draws = nullptr;
};

UNGRAIN_HOST_DEVICE inline float filled_sample(const FillTables& black, const FillTables& white,
                                               const ConstPlanes& in, const Extent& image,
                                               const FillArea& area, int plane, int x, int y) {
  const float sample = in.row(plane, y)[x - in.rect.x0];
  const bool dark = black.shape.on && sample <= black.shape.limit;
  if (!dark && !(white.shape.on && sample >= white.shape.limit)) return sample;
  const FillTables& at = dark ? black : white;
  const CurveShape& range = at.shape.by_mean;
  const float last = range.first + static_cast<float>(range.entries - 1) / range.per_value;
  const float mean = mean_around(in, image, area, plane, x, y);
  const float level = (mean - at.shape.limit) * at.shape.inwards;
  const float bounded = level > range.first ? (level < last ? level : last) : range.first;
  const int draw = draw_of(area.number(x, image.width), border_index(Border::wrap, y, image.height), plane);
  const float distance = curve_at(range, at.draws + draw * range.entries, bounded);
  return at.shape.limit + at.shape.inwards * distance;
}

}  // namespace ungrain
