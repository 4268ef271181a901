// The GPU's capacity, by which searches are split: changes the time, and results only by rounding.
#pragma once

namespace ungrain::cuda::tuning {

struct Split {
  int capability;  // 90 for compute capability 9.0
  int multiprocessors;
  // Search of a window (patch_search.cu).
  int blocks_each;          // resident on a multiprocessor
  double rows_to_load;      // rows of the search that take as long as a block's loads
  double rounds_to_spread;  // of blocks, until blocks that began together end half a block apart
  int most_rounds_in_step;  // of blocks that search for pairs, which end together much longer
  // Search of the whole image (whole_image.cu).
  double stages_to_begin;  // stages that take as long as a block's start
  int most_groups;
  double worthwhile;  // more groups must take less than this share of the time

  constexpr int resident_blocks() const { return multiprocessors * blocks_each; }
};

// The last row serves GPUs without a row of their own, and work that is split before the GPU is known.
// Measured on an H200 only: the rows are equal, so that pixels have the same bits on every GPU.
inline constexpr int any_capability = 0;
inline constexpr Split splits[] = {
    {90, 132, 2, 1, 4, 16, 4, 64, 0.98},
    {any_capability, 132, 2, 1, 4, 16, 4, 64, 0.98},
};

constexpr const Split& split_on(int capability) {
  const Split* split = splits;
  while (split->capability != any_capability && split->capability != capability) ++split;
  return *split;
}

// Images of more pixels are searched query by query: a symmetric search would filter the whole image for each
// of the parts in which it is filtered (whole_image.cu).
inline constexpr long long most_pixels_for_symmetry = 1LL << 20;

// Blocks of the kernel that finds the range of values. The kernel is compiled for this number.
inline constexpr int range_blocks = 264;

}  // namespace ungrain::cuda::tuning
