// What becomes of a group of patches: the second innermost part of bm3d on a CPU.
#pragma once

#include <cstddef>
#include <span>

#include "methods/bm3d/settings.h"

namespace ungrain {

constexpr int filter_patch = 8;
constexpr int most_filtered = 64;  // patches of a group

// What coefficients are compared with and multiplied by, for one plane. Made for the vectors of the
// processor.
struct FilterTables {
  static constexpr int levels = 7;  // of the transform along the group, and its mean
  static constexpr int row = 16;
  // Step 1: thresholds; step 2: the noise's energy. Both for coefficients as the transforms leave them, which
  // do not normalise.
  alignas(64) float noise[levels][filter_patch][row];
  alignas(64) float scale[levels][filter_patch][row];  // what they leave out, in both directions
  alignas(64) float window[filter_patch][row];         // of a patch when it is added
};

// Whether filter_group() has what the step asks for.
bool filter_knows(const Bm3dStep& step);

void fill_filter_tables(const Bm3dStep& step, bool wiener, double sigma,
                        std::span<const double, filter_patch> window, FilterTables& tables);

// All images of a tile have one pitch; places are of patches' upper left corners.
struct FilterCall {
  const FilterTables& tables;
  PatchTransform transform;
  const float* noisy;
  const float* basic;  // null in step 1
  std::ptrdiff_t pitch;
  const std::ptrdiff_t* places;
  int count;       // a power of two
  float* values;   // weighted sums of filtered patches
  float* weights;  // of patches, at their places
};

void filter_group(const FilterCall& call);

}  // namespace ungrain
