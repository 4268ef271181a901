// Motion of blocks from an image of a sequence to the images before and after it, found from coarse to fine.
// All arithmetic is in integers, so every version finds the same vectors.
//
// A block of 16 x 16 pixels moves to where the sum of absolute differences is least. The coarsest level tries
// every vector up to coarse_range; each finer level tries no motion and twice the vectors of the nine coarser
// blocks around, and then the eight neighbours of the best. Another vector than the first that was tried must
// be better by `penalty`, or noise would move blocks of flat areas. Pixels beyond the image are its edge's.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/host_device.h"
#include "core/planes.h"

namespace ungrain {

constexpr int motion_block = 16;  // side, and from one block to the next, at every level
constexpr int motion_levels = 3;  // each half as wide and high as the one before
constexpr int coarse_range = 8;
constexpr int largest_motion = 35;      // 2 (2 coarse_range + 1) + 1
constexpr int match_pixel_most = 4095;  // of the pixels that are compared

// Rows (or columns) around a block's first that its vector depends on.
constexpr int motion_reach = 256;

struct MotionVector {
  int x = 0;
  int y = 0;
};
constexpr std::uint16_t packed(MotionVector v) {
  return static_cast<std::uint16_t>((v.y + 128) * 256 + (v.x + 128));
}
UNGRAIN_HOST_DEVICE constexpr MotionVector unpacked(std::uint16_t v) {
  return {v % 256 - 128, v / 256 - 128};
}

constexpr int divided_up(int n, int by) { return (n + by - 1) / by; }

// The pixels that are compared lie in two planes. The first has the image's pixels. The second has the coarse
// levels: level 1's row k in the memory of row 2 k and level 2's row k in that of row 4 k + 1, their pixels
// side by side from the memory's first column on.
constexpr int match_planes = 2;

UNGRAIN_HOST_DEVICE constexpr int level_length(int length, int level) {
  const int shorter = length >> level;
  return shorter > 1 ? shorter : 1;
}

// One level of an image, or of the part of it that is in memory.
struct LevelPixels {
  const std::uint16_t* data = nullptr;  // the pixel (first_x, first_y)
  std::ptrdiff_t row_stride = 0;
  int first_x = 0;
  int first_y = 0;
  int width = 0;  // of the whole level
  int height = 0;

  UNGRAIN_HOST_DEVICE const std::uint16_t* at(int x, int y) const {
    return data + (y - first_y) * row_stride + (x - first_x);
  }
};

// `unit` counts pairs of planes.
inline LevelPixels level_of(const BasicPlanes<const std::uint16_t>& planes, int unit, const Extent& image,
                            int level) {
  LevelPixels result;
  result.width = level == 0 ? image.width : level_length(image.width, level);
  result.height = level == 0 ? image.height : level_length(image.height, level);
  const int step = 1 << level;
  result.first_x = divided_up(planes.rect.x0, step);
  if (level == 0) {
    result.data = planes.data + unit * match_planes * planes.plane_stride;
    result.first_y = planes.rect.y0;
    result.row_stride = planes.row_stride;
    return result;
  }
  const int shift = level - 1;  // of a level's rows in the memory of the image's
  result.first_y = divided_up(planes.rect.y0 - shift, step);
  result.row_stride = planes.row_stride * step;
  result.data = planes.row(unit * match_planes + 1, result.first_y * step + shift);
  return result;
}

// Vectors of one image, in one plane: those of the row of blocks j in the memory of row 16 j, to the image
// before and behind them to the image after, side by side from the memory's first column on.
struct MotionFields {
  const std::uint16_t* data = nullptr;  // of the block (first_x, first_y)
  std::ptrdiff_t row_stride = 0;        // from one row of blocks to the next
  int first_x = 0;
  int first_y = 0;
  int across = 0;  // blocks in memory

  UNGRAIN_HOST_DEVICE MotionVector at(int block_x, int block_y, bool after) const {
    return unpacked(data[(block_y - first_y) * row_stride + (block_x - first_x) + (after ? across : 0)]);
  }
};

template <class T>
MotionFields fields_of(const BasicPlanes<T>& planes, int unit) {
  MotionFields fields;
  fields.first_x = divided_up(planes.rect.x0, motion_block);
  fields.first_y = divided_up(planes.rect.y0, motion_block);
  fields.across = divided_up(planes.rect.x1, motion_block) - fields.first_x;
  fields.row_stride = planes.row_stride * motion_block;
  fields.data = planes.row(unit, fields.first_y * motion_block);
  return fields;
}

// The block that the middle of an 8 x 8 patch lies in.
UNGRAIN_HOST_DEVICE constexpr int block_of_patch(int position) { return (position + 4) / motion_block; }

}  // namespace ungrain
