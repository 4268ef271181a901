// What the patch-based methods share: the search area, the weights of a patch, and the references' distance
// of two patches.
#pragma once

#include <vector>

#include "core/border.h"
#include "core/method.h"
#include "core/planes.h"

namespace ungrain {

// How far around a pixel a search with these sides (odd; search may be whole_image) looks, and along a
// sequence.
Reach search_reach(int search, int patch, int radius_t);

// The weights of a patch along one axis, from -patch/2 to patch/2; the weights of the patch are their
// products. Sum 1. Gaussian with a deviation of sigma pixels; 0: all equal.
std::vector<double> patch_weights(int patch, double sigma);
inline bool is_flat(const std::vector<double>& patch) { return patch.front() == patch[patch.size() / 2]; }

// Weights below this count as 0, in every precision.
inline constexpr double smallest_weight = 0x1p-126;

// The pixel's own weight is the largest of the others, but at least this. So the pixel turns continuously
// into itself as the others vanish, and whether rounding puts a weight above or below smallest_weight moves
// the result by at most 2^-26 of the difference.
inline constexpr double least_self_weight = 0x1p-100;

// The pixels that are searched for (x, y): a window around it, or the whole image.
Rect search_area(int search, const Extent& image, int x, int y);

// The squared distance of the patches around two pixels, over the channels [first, first + count): the mean,
// with the patch's weights, of the squared differences divided by `strength`. Pairs with a pixel that does
// not count (a shrinking border) are left out and the weights renormalised.
struct PatchDistance {
  const std::vector<double>& weights;  // along one axis
  const BorderedPlanes<const double>& image;
  int first;
  int count;
  int divisor;  // of the sum over the channels
  double strength;

  // Of (x, y) and a pixel of `other`, which may be another image of a sequence.
  double operator()(int x, int y, const BorderedPlanes<const double>& other, int other_x, int other_y) const;
};

}  // namespace ungrain
