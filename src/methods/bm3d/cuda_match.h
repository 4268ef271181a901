// The search for similar patches on a GPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/planes.h"
#include "cuda/memory.h"

namespace ungrain::cuda {

// Places of references: index (i, j) -> position min(i * spacing, last), along each axis, in image
// coordinates. The references of one call are columns [first_i, first_i + count_i) of rows [first_j, first_j
// + count_j).
struct Bm3dGrid {
  int spacing = 3;
  int last_x = 0;
  int last_y = 0;
  int first_i = 0;
  int first_j = 0;
  int count_i = 0;
  int count_j = 0;

  constexpr int x(int i) const { return i * spacing < last_x ? i * spacing : last_x; }
  constexpr int y(int j) const { return j * spacing < last_y ? j * spacing : last_y; }
  constexpr int references() const { return count_i * count_j; }
};

struct Bm3dMatchCall {
  ConstPlanes plane;  // plane 0 of it, in GPU memory; holds every candidate of every reference
  Extent image;       // no smaller than a patch; candidates lie inside, at positions 0 ... last
  Bm3dGrid grid;
  int patch = 8;
  int search = 39;         // odd side of the window of candidates; at most 255
  int count = 16;          // wanted patches, the reference included: 1 ... 64
  float max_distance = 0;  // allowed SUM of squared differences over the patch; infinity: no limit
  // Added to the sum for each offset of the window, [dy][dx], 0 or more; null: no correction. With
  // corrections the search compares floats.
  const float* corrections = nullptr;
  float middle = 0;  // the search may compare halves of (pixel - middle) * scale, which should stay
  float scale = 1;   // within about -128 ... 128: middle of the values, 255 / their range
  // Results for reference j * count_i + i of the call: how many patches were found, at least 1, and their
  // offsets from the reference. The reference is first, then the nearest; ties in reading order.
  std::int8_t* offsets = nullptr;  // [reference][count][2]: dx, dy; those not found are 0; 16-byte aligned
  std::uint8_t* found = nullptr;   // [reference]
  float* scratch = nullptr;        // of bm3d_match_scratch() floats, 16-byte aligned
};

// Floats of scratch memory for a call, whose pointers may be unset.
std::size_t bm3d_match_scratch(const Bm3dMatchCall& call);
void launch_bm3d_match(const Bm3dMatchCall& call, Stream stream);

}  // namespace ungrain::cuda
