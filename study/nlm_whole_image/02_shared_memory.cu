// [003] v2: a block brings the patches of its own pixels into shared memory, then those of all pixels, as
// many at once as it has threads; each thread copies one. Two patches a thread limit how many threads a block
// can have, as in the paper. Pixels past the last one are put right: the paper's kernel takes sizes that its
// blocks divide.
#include "study/nlm_whole_image/rungs.h"
#include "study/nlm_whole_image/whole_image.cuh"

namespace ungrain::study {
namespace {

__device__ void copy_patch(const Search& search, int at, float* place) {
  const float* patch = search.patches + at * search.entries;
  for (int k = 0; k < search.entries; ++k) place[k] = patch[k];
}

__global__ void whole_image_shared_kernel(Picture picture, Search search) {
  extern __shared__ float memory[];
  const int entries = search.entries;
  const int middle = entries / 2;
  const int threads = threads_of_block();
  const int thread = thread_of_block();
  float* own = memory + thread * entries;
  float* others = memory + threads * entries;
  for (int first = first_of_block(); first < search.pixels; first += threads_of_grid()) {
    const int at = min(first + thread, search.pixels - 1);  // threads past the end still copy
    copy_patch(search, at, own);
    LongMean mean;
    for (int piece = 0; piece < search.searched; piece += threads) {
      const int count = min(threads, search.searched - piece);
      if (thread < count) copy_patch(search, piece + thread, others + thread * entries);
      __syncthreads();
      SearchMean of_piece;
      for (int i = 0; i < count; ++i) {
        if (piece + i == at) continue;
        const float* patch = others + i * entries;
        of_piece.add(expf(search.factor * squared_distance(own, patch, entries)), patch[middle]);
      }
      mean.add(of_piece);
      __syncthreads();
    }
    if (first + thread < search.pixels) picture.out[at] = mean.value(own[middle]);
  }
}

}  // namespace

Rung nlm_whole_image_shared_memory() {
  return {.name = "v2 shared memory",
          .paper = "[003] v2",
          .idea = "patches of the block's pixels and of those compared with in shared memory",
          .shapes = Shapes::grids,
          .prepare = [](const RungCall& call) {
            const std::size_t floats =
                static_cast<std::size_t>(2 * patch_entries(call.strengths) * call.shape.threads);
            return stride_over(whole_image_shared_kernel, call, floats * sizeof(float));
          }};
}

}  // namespace ungrain::study
