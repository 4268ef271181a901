#include "cuda/patch_pairs.cuh"

namespace ungrain::cuda {

PairSearchKernel gaussian_pair_kernel(int channels, int patch) {
  using enum SearchWeights;
  if (channels == 1) {
    switch (patch) {
      case 5:
        return compiled_pairs<1, 5, false, general, 4, 5>();
      case 7:
        return compiled_pairs<1, 7, false, general, 4, 5>();
      case 9:
        return compiled_pairs<1, 9, false, general, 4, 4>();
      case 11:
        return compiled_pairs<1, 11, false, general, 4, 4>();
      default:
        return {};
    }
  }
  if (channels == 3) {
    switch (patch) {
      case 5:
        return compiled_pairs<3, 5, false, general, 2, 4>();
      case 7:
        return compiled_pairs<3, 7, false, general, 2, 4>();
      case 9:
        return compiled_pairs<3, 9, false, general, 2, 4>();
      default:
        return {};
    }
  }
  return {};
}

}  // namespace ungrain::cuda
