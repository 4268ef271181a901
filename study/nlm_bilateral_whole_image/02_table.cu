// [000] §6.2.5: weights of differences in value from a table, in global or in shared memory (its table 5.2).
// The image stays in global memory: all of it is searched, and shared memory has no room for that.
#include "study/nlm_bilateral_whole_image/rungs.h"
#include "study/nlm_bilateral_whole_image/whole_image.cuh"

namespace ungrain::study {
namespace {

template <bool InSharedMemory>
__global__ void nlm_bilateral_whole_image_table_kernel(Picture picture, WholeImageFactors factors,
                                                       const float* range) {
  __shared__ float shared_range[InSharedMemory ? range_entries : 1];
  if constexpr (InSharedMemory) {
    const int threads = block_side() * block_side();
    for (int i = thread_number(); i < range_entries; i += threads) shared_range[i] = range[i];
    __syncthreads();
  }
  const int x = first_column() + thread_x();
  const int y = first_row() + thread_y();
  if (!in_picture(picture, x, y)) return;
  const float* table = InSharedMemory ? shared_range : range;
  // Pixels are whole numbers from 0 to 255.
  picture.out[y * picture.width + x] = filter_whole_image(
      picture, factors, x, y, [&](float difference) { return table[static_cast<int>(fabsf(difference))]; });
}

template <bool InSharedMemory>
std::optional<Prepared> prepare(const RungCall& call) {
  const auto range = upload(range_table(call.strengths));
  const WholeImageFactors factors(call);
  auto prepared = one_launch(nlm_bilateral_whole_image_table_kernel<InSharedMemory>, call, 0, {range},
                             factors, static_cast<const float*>(range->data()));
  if (prepared) prepared->share = factors.share(call.device);
  return prepared;
}

}  // namespace

std::vector<Rung> nlm_bilateral_whole_image_tables() {
  return {{.name = "table in global memory",
           .paper = "[000] kernel in global memory",
           .idea = "range weights from a table in global memory",
           .prepare = prepare<false>},
          {.name = "table in shared memory",
           .paper = "[000] kernel in shared memory",
           .idea = "range weights from a table in shared memory",
           .prepare = prepare<true>}};
}

}  // namespace ungrain::study
