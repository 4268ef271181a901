// The innermost parts of bm3d over time on a CPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "methods/bm3d/filter_simd.h"
#include "methods/bm3d/time.h"

namespace ungrain {

// Whether the processor has the vector instructions that the functions here need.
bool has_time_vectors();

// The sums of squared differences of an 8 x 8 patch and those at `columns` x `rows` neighbouring places, in
// reading order.
struct DistanceCall {
  const std::uint16_t* reference;
  std::ptrdiff_t reference_stride;
  const std::uint16_t* first;
  std::ptrdiff_t stride;
  int columns;
  int rows;
  std::uint32_t* distances;
};
void patch_distances(const DistanceCall& call);

// A patch in memory.
struct PatchPixels {
  const float* first;
  std::ptrdiff_t stride;
};

// One group of one plane: all patches of a match before the next match's.
struct TimeGroupCall {
  const FilterTables& tables;  // of single patches
  PatchTransform transform;
  int matches;  // a power of two
  int images;
  int own;             // the image whose patches are filtered
  const float* along;  // the transform of `images` images
  const PatchPixels* noisy;
  const PatchPixels* basic;   // null in step 1
  float* const* values;       // for each match, where its estimate is added
  std::ptrdiff_t to_weights;  // from the sum of values to that of weights
  std::ptrdiff_t pitch;       // of the sums
  // With a model: the group's mean in the plane in which it was found.
  float* level;
  bool finds_level;  // this is that plane; else the level is given
};
void filter_time_group(const TimeGroupCall& call);

}  // namespace ungrain
