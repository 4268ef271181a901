#include "cuda/patch_pairs.cuh"

namespace ungrain::cuda {
namespace {

template <int Channels, int Columns, int Rows, int PlainRows>
PairSearchKernel kernel_for(int patch, bool plain) {
  constexpr SearchWeights general = SearchWeights::general;
  switch (patch) {
    case 3:
      return compiled_pairs<Channels, 3, true, general, Columns, Rows>();
    case 5:
      return compiled_pairs<Channels, 5, true, general, Columns, Rows>();
    case 7:
      return plain ? compiled_pairs<Channels, 7, true, SearchWeights::plain, Columns, PlainRows>()
                   : compiled_pairs<Channels, 7, true, general, Columns, Rows>();
    default:
      return {};
  }
}

}  // namespace

PairSearchKernel flat_pair_kernel(int channels, int patch, bool plain) {
  if (channels == 1) return kernel_for<1, 4, 5, 6>(patch, plain);
  if (channels == 3) return kernel_for<3, 2, 4, 4>(patch, plain);
  return {};
}

}  // namespace ungrain::cuda
