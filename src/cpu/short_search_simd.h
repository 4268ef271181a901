// The search for similar patches with distances and weights of 16 bits, vectorised: a few shifts over one
// tile. For images of 8 bits, whose results need not be better than a fraction of a step.
//
// Pixels are multiplied so that the square of a difference, divided by 2^15, counts the exponent of 2 in
// units of 1/256 or finer. Sums of squares saturate: where they do, the weight is 0 or as good as 0. Sums
// that saturate are the same in any order. A weight is the upper half of a float.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ungrain {

// The largest vector has this many weights.
inline constexpr int most_shorts = 32;
inline constexpr int most_short_shift = 16;  // along an axis
inline constexpr int most_short_reach = 4;   // of a patch
inline constexpr int short_tile_width = 256;
inline constexpr int short_tile_height = 64;
inline constexpr int short_shifts_at_once = 7;

struct ShortKernel {
  int reach = 0;  // of a patch, whose pixels all count the same
  int channels = 1;
  float pixel_scale = 0;    // factor of pixels before they are compared
  std::uint16_t noise = 0;  // taken off the distances, in their units
  int finer = 0;            // units of distances are 2^-finer / 256
  bool largest = false;     // the largest weight of each pixel is wanted
};

// Columns of a tile's memory. Column 0 of the tile is `before` columns behind the start of a row.
struct ShortColumns {
  // Pixels to compare. In front: the reach of a patch, the longest shift and a vector of weights.
  static constexpr int pixels_before = 64;
  static constexpr int pixels = pixels_before + short_tile_width + 4 * most_shorts;
  // Weights, and before them sums along columns.
  static constexpr int weights_before = most_shorts;
  static constexpr int weights = weights_before + short_tile_width + 3 * most_shorts;
  // Values to be summed: even columns, then odd ones.
  static constexpr int values_before = most_shorts;
  static constexpr int values = values_before + short_tile_width + 2 * most_shorts;
};

// Pixels are read this many rows below those that patches cover.
inline constexpr int short_rows_below = 2;
// Rows of weights of one shift.
inline constexpr int short_weight_rows = short_tile_height + most_short_shift + 2;

// A tile in memory that is aligned for the longest vector. Pointers are to the tile's first pixel.
struct ShortTile {
  int width = 0;
  int height = 0;
  // To compare: row pitch ShortColumns::pixels; `reach` columns of a patch lie before the first pixel.
  const std::int16_t* pixels = nullptr;
  std::ptrdiff_t pixels_plane = 0;
  const float* values = nullptr;  // to sum: row pitch ShortColumns::values
  std::ptrdiff_t values_plane = 0;
  std::uint16_t* weights = nullptr;  // of all shifts at once, the start of the memory
  // Sums: rows of short_tile_width, even columns, then odd ones. The weights, then each channel's values.
  float* sums = nullptr;
  std::ptrdiff_t sums_plane = 0;
  std::uint16_t* largest = nullptr;  // upper halves of floats
};

// Whether the vector instructions in use have code for this.
bool has_short_search();

// One row of pixels as read from the image: to compare, and to sum (from an even column of the tile on).
void make_short_pixels(const float* from, int count, float scale, std::int16_t* to);
void split_short_values(const float* from, int count, float* even, float* odd);

// Adds the shifts (dx, dy) to (dx + count - 1, dy) for all pixels of the tile, each weight for both its
// pixels. Either dy > 0, or dy = 0 and dx > 0.
void add_short_shifts(const ShortKernel& kernel, const ShortTile& tile, int dx, int dy, int count);

}  // namespace ungrain
