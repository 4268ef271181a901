#include "cuda/patch_search.cuh"

namespace ungrain::cuda {

PatchSearchKernel gaussian_search_kernel(int channels, int patch) {
  using enum SearchWeights;
  if (channels == 1) {
    switch (patch) {
      case 5:
        return compiled<1, 5, false, general, 4, 8>();
      case 7:
        return compiled<1, 7, false, general, 4, 8>();
      case 9:
        return compiled<1, 9, false, general, 4, 4>();
      case 11:
        return compiled<1, 11, false, general, 4, 4>();
      default:
        return {};
    }
  }
  if (channels == 3) {
    switch (patch) {
      case 5:
        return compiled<3, 5, false, general, 2, 6>();
      case 7:
        return compiled<3, 7, false, general, 2, 6>();
      case 9:
        return compiled<3, 9, false, general, 2, 4>();
      default:
        return {};
    }
  }
  return {};
}

}  // namespace ungrain::cuda
