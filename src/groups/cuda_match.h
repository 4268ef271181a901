// The search for similar patches on a GPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/planes.h"
#include "cuda/memory.h"

namespace ungrain::cuda {

// Places of references: index i -> i * spacing - lead, within 0 ... last, along each axis, in image
// coordinates. The references of one call are columns [first_i, first_i + count_i) of rows [first_j, first_j
// + count_j).
struct ReferenceGrid {
  int spacing = 3;
  int last_x = 0;
  int last_y = 0;
  int first_i = 0;
  int first_j = 0;
  int count_i = 0;
  int count_j = 0;
  int lead_x = 0;  // less than the spacing
  int lead_y = 0;

  // May lie before the image.
  constexpr int grid_x(int i) const { return i * spacing - lead_x < last_x ? i * spacing - lead_x : last_x; }
  constexpr int x(int i) const { return grid_x(i) > 0 ? grid_x(i) : 0; }
  constexpr int y(int j) const {
    const int y = j * spacing - lead_y < last_y ? j * spacing - lead_y : last_y;
    return y > 0 ? y : 0;
  }
  constexpr int references() const { return count_i * count_j; }
};

// How pixels become integers, and those of windows with pixels beyond the ends: around the reference's mean.
// Half distances are whole numbers, as the CPU's.
struct MatchIntegers {
  float most = 0;  // the ends, at most 2047; 0: pixels are not rounded
  float beyond_scale = 1;
  float beyond_most = 0;
};

struct GroupMatchCall {
  ConstPlanes plane;  // plane 0 of it, in GPU memory; holds every candidate of every reference
  Extent image;       // no smaller than a patch; candidates lie inside, at positions 0 ... last
  ReferenceGrid grid;
  int patch = 8;
  int search = 39;         // odd side of the window of candidates; at most 255
  int count = 16;          // wanted patches, the reference included: 1 ... 64
  float max_distance = 0;  // allowed SUM of squared differences over the patch; infinity: no limit
  // Added to the sum for each offset of the window, [dy][dx], 0 or more; null: no correction. With
  // corrections the search compares floats.
  const float* corrections = nullptr;
  float middle = 0;  // the search may compare halves of (pixel - middle) * scale, which should stay
  float scale = 1;   // within about -128 ... 128: middle of the values, 255 / their range
  // Instead, whole numbers: needs patches of 8 x 8, no limit of distances and no corrections.
  MatchIntegers integers;
  // Whether about one in 30 of the nearest may be missing, and others that are nearly as near take their
  // places, which takes half as long: the distances of a group grow by less than 0.1 %. Within a limit of
  // distance there may be no others: then the group is smaller. Distances are told apart to 1/64 of their
  // size, also from the limit; ties are in any fixed order. For up to 32 patches that are compared by halves.
  bool nearly = false;
  // Results for reference j * count_i + i of the call: how many patches were found, at least 1, and their
  // offsets from the reference. The reference is first, then the nearest; ties in reading order.
  std::int8_t* offsets = nullptr;  // [reference][count][2]: dx, dy; those not found are 0; 16-byte aligned
  std::uint8_t* found = nullptr;   // [reference]
  float* scratch = nullptr;        // of group_match_scratch() floats, 16-byte aligned
};

// Floats of scratch memory for a call, whose pointers may be unset.
std::size_t group_match_scratch(const GroupMatchCall& call);
void launch_group_match(const GroupMatchCall& call, Stream stream);

}  // namespace ungrain::cuda
