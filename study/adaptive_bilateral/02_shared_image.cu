// [000] §5.2.2, "shared memory + kernel caching": the image in shared memory and the spatial weights from a
// table, in global memory (the paper's) or in shared memory. The range weights cannot come from a table:
// every pixel has its own strength.
#include "study/adaptive_bilateral/adaptive.cuh"
#include "study/adaptive_bilateral/rungs.h"

namespace ungrain::study {
namespace {

template <bool TableInShared>
__global__ void adaptive_shared_image_kernel(Picture picture, AdaptiveFactors factors, const float* table) {
  extern __shared__ float tile[];
  const int radius = factors.radius;
  const int side = 2 * radius + 1;
  const int stride = block_side() + 2 * radius;
  load_tile(picture, first_column() - radius, first_row() - radius, stride, stride, tile, stride);
  const float* spatial = table;
  if constexpr (TableInShared) {
    float* copy = tile + stride * stride;
    for (int i = thread_number(); i < side * side; i += block_side() * block_side()) copy[i] = table[i];
    spatial = copy;
  }
  __syncthreads();
  const int x = first_column() + thread_x();
  const int y = first_row() + thread_y();
  if (!in_picture(picture, x, y)) return;
  const float* middle = tile + (thread_y() + radius) * stride + thread_x() + radius;
  picture.out[y * picture.width + x] = filter_adaptively(
      factors, [&](int dx, int dy) { return middle[dy * stride + dx]; },
      [&](int dx, int dy) { return spatial[(dy + radius) * side + dx + radius]; });
}

template <bool TableInShared>
Rung rung() {
  const std::string where = TableInShared ? "shared" : "global";
  return {.name = "shared image, table in " + where + " memory",
          .paper = TableInShared ? "[000] §5.1.2.4" : "[000] shared memory + kernel caching",
          .idea = "the image in shared memory, spatial weights from a table in " + where + " memory",
          .prepare = [](const RungCall& call) {
            const std::vector<float> values = spatial_table(call.strengths);
            const auto table = upload(values);
            const int radius = call.strengths.radius;
            const int side = call.shape.side;
            const std::size_t shared = tile_bytes(plain_stride(side, 1, radius), side, radius) +
                                       (TableInShared ? values.size() * sizeof(float) : 0);
            return one_launch(adaptive_shared_image_kernel<TableInShared>, call, shared, {table},
                              AdaptiveFactors(call.strengths), static_cast<const float*>(table->data()));
          }};
}

}  // namespace

std::vector<Rung> adaptive_bilateral_shared_image() { return {rung<false>(), rung<true>()}; }

}  // namespace ungrain::study
