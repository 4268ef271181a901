#include "cuda/patch_search.cuh"

namespace ungrain::cuda {
namespace {

template <int Channels, int Columns, int Rows>
PatchSearchKernel kernel_for(int patch) {
  using enum SearchWeights;
  switch (patch) {
    case 3:
      return compiled<Channels, 3, true, bilateral, Columns, Rows>();
    case 5:
      return compiled<Channels, 5, true, bilateral, Columns, Rows>();
    case 7:
      return compiled<Channels, 7, true, bilateral, Columns, Rows>();
    default:
      return {};
  }
}

}  // namespace

PatchSearchKernel bilateral_search_kernel(int channels, int patch) {
  if (channels == 1) return kernel_for<1, 4, 8>(patch);
  if (channels == 3) return kernel_for<3, 2, 6>(patch);
  return {};
}

}  // namespace ungrain::cuda
