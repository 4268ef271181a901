// The inner part of the search for similar patches, vectorised: a few shifts over one tile.
#pragma once

#include <cstddef>
#include <vector>

#include "core/planes.h"

namespace ungrain {

// The weight of a pixel for another: 2^-max(scale D - noise, 0) of the patches' distance D; for nlm-bilateral
// 2^-(scale D + pixel_scale d² + the shift's exponent), d the difference of the two pixels.
struct PatchKernel {
  int reach = 0;  // of a patch
  int channels = 1;
  std::vector<float> patch = {};  // weights along one axis
  bool flat = false;              // all equal; then part of `scale`
  float scale = 0;
  float noise = 0;
  bool compares_pixels = false;
  float pixel_scale = 0;
  bool largest = false;  // the largest weight of each pixel is wanted
};

// One shift. Rectangles are of the pixels that are shifted, in image coordinates.
struct PatchShift {
  int dx = 0;
  int dy = 0;
  float exponent = 0;  // added for its length
  Rect weights = {};   // where weights are computed
  Rect counted = {};   // weights outside are 0
  Rect compared = {};  // differences outside are 0
  // 1 / the share of the patch's weights that are compared along x, for each column of `weights`; none: 1.
  const float* inverse_shares = nullptr;
};

// Shifts that are added at once: they have the same dy and rectangle of weights, and consecutive dx.
inline constexpr int shifts_at_once = 3;
// More where weights need not be kept for rows further down: sums are then read and written fewer times.
inline constexpr int most_shifts_at_once = 8;

// What the weight of p and p + shift is used for.
enum class WeightUse {
  forth,   // p takes p + shift
  around,  // and p takes p - shift: weights are also computed around these pixels
  both,    // and p + shift takes p, into sums of its own
  across   // as `around`, where p + shift is of another image: that image's pixels have sums of their own
};

struct PatchShifts {
  PatchShift shift[most_shifts_at_once] = {};
  int count = 0;  // up to shifts_at_once; or most_shifts_at_once, not with `around`
  WeightUse use = WeightUse::forth;
};

// No vector is longer. Rows may be read and written this far beyond their end.
inline constexpr int longest_vector = 16;

// The sums of a tile: the weights, the largest of them, and each channel's weighted values.
struct PatchSums {
  static constexpr int weights = 0;
  static constexpr int largest = 1;
  static constexpr int values = 2;
};

// Rectangles of weights are at most this large.
inline constexpr int widest_weights = 176 + 48;
inline constexpr int highest_weights = 128 + 48;

// Floats of memory that add_patch_shifts needs, aligned for the longest vector.
std::size_t patch_shifts_floats();

// Called once before the first add_patch_shifts() with that memory.
void prepare_patch_shifts(float* memory);

// Rows that are read above and below those compared.
inline constexpr int rows_around = 4;

// Adds to `sums` (PatchSums) for the pixels of `area`, and to `back` with WeightUse::both for the pixels that
// they are shifted to, with WeightUse::across for the pixels of `area` in the other image. `still` are the
// pixels that are shifted, `moving` those they are compared with. Of both, rows_around rows above and below
// and 2 * longest_vector floats behind are read; of `back`, longest_vector floats before and 2 *
// longest_vector behind a row are written.
void add_patch_shifts(const PatchKernel& kernel, const ConstPlanes& still, const ConstPlanes& moving,
                      const PatchShifts& shifts, const Rect& area, const Planes& sums, float* memory,
                      const Planes& back = {});

}  // namespace ungrain
