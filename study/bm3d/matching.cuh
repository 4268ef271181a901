// [002] §4.3: the search for similar patches. A block searches for 32 reference patches of one row, a lane of
// each of its warps for one of them; the warps take turns with the shifts of the window.
#pragma once

#include "study/bm3d/bm3d.cuh"

namespace ungrain::study::bm3d {

struct MatchCall {
  Picture picture;
  References references;
  Batch batch;
  int reach;
  Key* lists;                            // [group of the batch][most_patches], the most similar first
  int* sizes;                            // [group of the batch]
  const std::uint32_t* quads = nullptr;  // [row][column]: a pixel and the three below it
};

inline constexpr int match_warps = 8;
inline constexpr int match_threads = match_warps * warp_lanes;
// The pixels that the reference patches of a row of lanes cover.
inline constexpr int area_columns = (warp_lanes - 1) * spacing + patch;
inline constexpr int area_pitch = 104;

// A thread's most similar patches so far, in shared memory, the most similar one last (§4.3.2).
struct Stack {
  Key* keys;  // entry n at keys[n * apart]
  int apart;
  int count = 0;

  __device__ void add(Key key) {
    if (count < most_patches) {
      int n = count++;
      for (; n > 0 && keys[(n - 1) * apart] < key; --n) keys[n * apart] = keys[(n - 1) * apart];
      keys[n * apart] = key;
    } else if (key < keys[0]) {
      int n = 0;
      for (; n + 1 < most_patches && keys[(n + 1) * apart] > key; ++n)
        keys[n * apart] = keys[(n + 1) * apart];
      keys[n * apart] = key;
    }
  }
};

// §4.3.3: one thread takes the smallest of all warps' stacks for its reference patch, again and again. Entry
// n of warp w lies at keys[n * apart + w * warp_lanes], its count at counts[w * warp_lanes].
__device__ inline int merge_stacks(const Key* keys, int apart, int* counts, int warps, Key* list) {
  int size = 0;
  for (; size < most_patches; ++size) {
    Key smallest = no_key;
    int from = 0;
    for (int warp = 0; warp < warps; ++warp) {
      const int count = counts[warp * warp_lanes];
      if (count == 0) continue;
      const Key key = keys[(count - 1) * apart + warp * warp_lanes];
      if (key < smallest) {
        smallest = key;
        from = warp;
      }
    }
    if (smallest == no_key) break;
    --counts[from * warp_lanes];
    list[size] = smallest;
  }
  return size;
}

// The sum of a patch's columns; the warp has written all of them.
__device__ inline unsigned sum_of_columns(const unsigned* columns) {
  unsigned sum = 0;
#pragma unroll
  for (int c = 0; c < patch; ++c) sum += columns[c];
  return sum;
}

// How a warp computes the distances of its reference patches to those one shift away (matching.cu).
class OwnDistances;
class SharedColumns;
class FourPixels;

template <class Distances>
void launch_match(const MatchCall& call);
template <class Distances>
std::optional<KernelUse> match_use();

// ---- Rows of reference patches that share the differences of pixels (06_shared_distances.cu) ----

inline constexpr int fused_match_rows = 4;                        // what the rungs after it take
void launch_match_rows(const MatchCall& call, int rows_a_block);  // 2 or 4
std::optional<KernelUse> match_rows_use(int rows_a_block);

}  // namespace ungrain::study::bm3d
