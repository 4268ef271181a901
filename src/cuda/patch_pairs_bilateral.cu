#include "cuda/patch_pairs.cuh"

namespace ungrain::cuda {
namespace {

template <int Channels, int Columns, int Rows>
PairSearchKernel kernel_for(int patch) {
  using enum SearchWeights;
  switch (patch) {
    case 3:
      return compiled_pairs<Channels, 3, true, bilateral, Columns, Rows>();
    case 5:
      return compiled_pairs<Channels, 5, true, bilateral, Columns, Rows>();
    case 7:
      return compiled_pairs<Channels, 7, true, bilateral, Columns, Rows>();
    default:
      return {};
  }
}

}  // namespace

PairSearchKernel bilateral_pair_kernel(int channels, int patch) {
  if (channels == 1) return kernel_for<1, 4, 6>(patch);
  if (channels == 3) return kernel_for<3, 2, 4>(patch);
  return {};
}

PairSearchKernel spatial_pair_kernel(int channels) {
  if (channels == 1) return compiled_pairs<1, 1, true, SearchWeights::spatial, 4, 8>();
  return {};
}

}  // namespace ungrain::cuda
