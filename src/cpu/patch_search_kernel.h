// What the window search and the whole-image search share on the CPU.
#pragma once

#include <algorithm>
#include <cstddef>

#include "core/method.h"
#include "core/patch_search.h"
#include "core/patches.h"
#include "cpu/patch_search_simd.h"

namespace ungrain {

constexpr int up_to_vectors(int n) { return (n + longest_vector - 1) / longest_vector * longest_vector; }

// A search prepared for an image.
struct SearchKernel : PatchKernel {
  SearchKernel(const PatchSearch& s, const ImageSpec& spec);

  // What the length of a shift adds to the negated exponent of 2.
  float exponent_of_shift(int dx, int dy) const;
  // The weight of the pixel itself.
  float self_weight(float largest_other) const {
    return largest ? std::max(largest_other, static_cast<float>(least_self_weight)) : 1.0F;
  }

  int search;    // side of the window, or whole_image
  int radius_t;  // images before and after that are searched too
  Border border;
  double space;
  double to_unit = 1;  // factor of pixels before they are compared and summed
};

// Memory of `plane` floats for each channel, then the floats that are read behind the last row.
struct SearchPlanes {
  float* memory = nullptr;
  int pitch = 0;
  std::ptrdiff_t plane = 0;

  static constexpr int behind = 2 * longest_vector;
};

// Scaled values are limited to this: their differences are finite.
inline constexpr float most_scaled_value = 8e37F;

// The channels from `first` on of an image, over a rectangle that may extend beyond it, scaled, with
// rows_around rows of zeros above and below.
ConstPlanes gather_scaled(const SearchKernel& kernel, const ConstPlanes& planes, const Extent& image,
                          int first, const Rect& want, const SearchPlanes& to);

// The pixels inside the image whose shifted pixels are also inside.
Rect both_inside(const Extent& image, int dx, int dy);

// 1 / the compared share of a patch's weights along x, for each column of the shift's weights and the rest of
// the `pitch`. Exactly 1 for a whole patch, as elsewhere.
void find_inverse_shares(const SearchKernel& kernel, const PatchShift& shift, float* shares, int pitch);

// A rectangle that covers every image.
inline constexpr Rect everywhere{-(1 << 30), -(1 << 30), 1 << 30, 1 << 30};

// The search over the whole image, as one stage.
Stage whole_image_search_cpu(std::string name, const SearchKernel& kernel, const ImageSpec& spec);

}  // namespace ungrain
