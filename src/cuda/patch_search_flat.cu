#include "cuda/patch_search.cuh"

namespace ungrain::cuda {
namespace {

template <int Channels, int Columns, int Rows, int PlainRows>
PatchSearchKernel kernel_for(int patch, bool plain) {
  constexpr SearchWeights general = SearchWeights::general;
  switch (patch) {
    case 3:
      return compiled<Channels, 3, true, general, Columns, Rows>();
    case 5:
      return compiled<Channels, 5, true, general, Columns, Rows>();
    case 7:
      return plain ? compiled<Channels, 7, true, SearchWeights::plain, Columns, PlainRows>()
                   : compiled<Channels, 7, true, general, Columns, Rows>();
    default:
      return {};
  }
}

}  // namespace

PatchSearchKernel flat_search_kernel(int channels, int patch, bool plain) {
  if (channels == 1) return kernel_for<1, 4, 8, 8>(patch, plain);
  if (channels == 3) return kernel_for<3, 2, 6, 7>(patch, plain);
  return {};
}

}  // namespace ungrain::cuda
