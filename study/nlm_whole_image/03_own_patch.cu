// v2 with the patch's side known to the compiler and a pixel's own patch in registers: half the shared
// memory, one load for a difference in place of two.
#include "study/nlm_whole_image/rungs.h"
#include "study/nlm_whole_image/whole_image.cuh"

namespace ungrain::study {
namespace {

template <int Reach>
__global__ void whole_image_own_patch_kernel(Picture picture, Search search) {
  extern __shared__ float others[];
  constexpr int entries = (2 * Reach + 1) * (2 * Reach + 1);
  constexpr int middle = entries / 2;
  const int threads = threads_of_block();
  const int thread = thread_of_block();
  for (int first = first_of_block(); first < search.pixels; first += threads_of_grid()) {
    const int at = min(first + thread, search.pixels - 1);  // threads past the end still copy
    float own[entries];
#pragma unroll
    for (int k = 0; k < entries; ++k) own[k] = search.patches[at * entries + k];
    LongMean mean;
    for (int piece = 0; piece < search.searched; piece += threads) {
      const int count = min(threads, search.searched - piece);
      // Neighbouring threads copy neighbouring entries.
      for (int i = thread; i < count * entries; i += threads) others[i] = search.patches[piece * entries + i];
      __syncthreads();
      SearchMean of_piece;
      for (int i = 0; i < count; ++i) {
        if (piece + i == at) continue;
        const float* patch = others + i * entries;
        float distance = 0;
#pragma unroll
        for (int k = 0; k < entries; ++k) {
          const float difference = own[k] - patch[k];
          distance += difference * difference;
        }
        of_piece.add(expf(search.factor * distance), patch[middle]);
      }
      mean.add(of_piece);
      __syncthreads();
    }
    if (first + thread < search.pixels) picture.out[at] = mean.value(own[middle]);
  }
}

template <int Reach>
struct OwnPatch {
  static SearchKernel get() { return whole_image_own_patch_kernel<Reach>; }
};

}  // namespace

Rung nlm_whole_image_own_patch() {
  return {.name = "own patch in registers",
          .paper = "ours",
          .idea = "v2 with a patch that the compiler knows, the pixel's own in registers",
          .shapes = Shapes::grids,
          .prepare = [](const RungCall& call) {
            const std::size_t floats =
                static_cast<std::size_t>(patch_entries(call.strengths) * call.shape.threads);
            return stride_over(kernel_for_reach<OwnPatch>(call.strengths.radius), call,
                               floats * sizeof(float));
          }};
}

}  // namespace ungrain::study
