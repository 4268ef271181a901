// What the bm3d rungs share: [002]'s numbers, where reference patches lie, and how a group's patches are
// written down.
#pragma once

#include <cstdint>

#include "study/kernels.cuh"

namespace ungrain::study::bm3d {

// [002] §2.5.
inline constexpr int patch = 8;    // k, the side of a patch
inline constexpr int spacing = 3;  // p, from one reference patch to the next
inline constexpr int most_patches = 16;
inline constexpr unsigned most_distance = 2500 * patch * patch;  // tau, of a sum over the patch
inline constexpr double lambda = 2.7;
inline constexpr int most_reach = 19;  // of the search: n is 39

inline constexpr int patch_pixels = patch * patch;
inline constexpr int warp_lanes = 32;

// Every third patch along both axes, and the last: number i lies at x(i).
struct References {
  int last_x;
  int last_y;
  int columns;
  int rows;

  explicit References(const Picture& picture)
      : last_x(picture.width - patch),
        last_y(picture.height - patch),
        columns(cuda::blocks_for(last_x, spacing) + 1),
        rows(cuda::blocks_for(last_y, spacing) + 1) {}

  __host__ __device__ int x(int i) const { return i * spacing < last_x ? i * spacing : last_x; }
  __host__ __device__ int y(int j) const { return j * spacing < last_y ? j * spacing : last_y; }
};

// A rectangle of reference patches; a batch's are counted row by row.
struct Batch {
  int i;
  int j;
  int columns;
  int rows;

  __host__ __device__ int groups() const { return columns * rows; }
};

struct Shift {
  int x;
  int y;
};

// A patch of a group: its distance from the reference patch and, below, its place in the window in reading
// order. Pixels are whole numbers and distances above tau do not count, so that both fit one number, and of
// equally near patches the first one is the smaller, as in the library. 0 is the reference patch itself.
using Key = std::uint32_t;
inline constexpr Key no_key = 0xffffffffU;
inline constexpr int place_bits = 11;
inline constexpr int window_side = 2 * most_reach + 1;
static_assert(window_side * window_side + 1 < 1 << place_bits);
static_assert(most_distance < 1U << (31 - place_bits));

__device__ inline Key key_of(unsigned distance, int dx, int dy) {
  if (dx == 0 && dy == 0) return 0;
  return distance << place_bits | static_cast<Key>((dy + most_reach) * window_side + dx + most_reach + 1);
}
__device__ inline Shift shift_of(Key key) {
  const int place = static_cast<int>(key & ((1U << place_bits) - 1)) - 1;
  if (place < 0) return {0, 0};
  return {place % window_side - most_reach, place / window_side - most_reach};
}

// Orthonormal cosine transforms of 1 to most_patches numbers, in squares of most_patches x most_patches: row
// u is what coefficient u is made of. Rows and columns past the size are 0.
inline constexpr int square = most_patches * most_patches;
std::shared_ptr<const cuda::DeviceBuffer> cosine_table();

// The squared threshold of an orthonormal transform's coefficients.
inline float squared_threshold(const Strengths& strengths) {
  return static_cast<float>(lambda * lambda * strengths.sigma * strengths.sigma);
}

}  // namespace ungrain::study::bm3d
