// What [003]'s kernels and the steps from them share: its patches, which lie in memory one after the other,
// and its grid-stride loops.
#pragma once

#include "study/nlm/nlm.cuh"
#include "study/nlm_whole_image/experiment.h"

namespace ungrain::study {

// What a kernel is given. Pixels are counted row by row.
struct Search {
  const float* patches;  // patch after patch, multiplied by the Gaussian
  int pixels;
  int searched;  // the first ones; all of them but where a part is timed
  int entries;   // of a patch
  float factor;  // squared distances times this are exponents
};

__device__ inline int thread_of_block() { return static_cast<int>(threadIdx.x); }
__device__ inline int threads_of_block() { return static_cast<int>(blockDim.x); }
__device__ inline int first_of_block() { return static_cast<int>(blockIdx.x * blockDim.x); }
__device__ inline int threads_of_grid() { return static_cast<int>(gridDim.x * blockDim.x); }

__device__ inline float squared_distance(const float* first, const float* second, int entries) {
  float sum = 0;
  for (int k = 0; k < entries; ++k) {
    const float difference = first[k] - second[k];
    sum += difference * difference;
  }
  return sum;
}

// Sums of many weights: piece by piece, since a sum of tens of thousands of floats forgets the small ones.
struct LongMean {
  SearchMean all;

  __device__ void add(const SearchMean& piece) {
    all.weights += piece.weights;
    all.values += piece.values;
    all.largest = fmaxf(all.largest, piece.largest);
  }
  __device__ float value(float own) const { return all.value(own); }
};

// A thread that would have more pixels than this tells nothing that one with half of them does not.
inline constexpr int most_pixels_a_thread = 256;

using SearchKernel = void (*)(Picture, Search);

// The kernel that lays out the patches, and the rung's; both are timed.
std::optional<Prepared> stride_over(SearchKernel kernel, const RungCall& call, std::size_t shared);

// Of kernels whose patch is known to the compiler: the one for this reach; null where there is none.
template <template <int> class KernelOf>
SearchKernel kernel_for_reach(int reach) {
  switch (reach) {
    case 1:
      return KernelOf<1>::get();
    case 2:
      return KernelOf<2>::get();
    case 3:
      return KernelOf<3>::get();
    default:
      return nullptr;
  }
}

}  // namespace ungrain::study
