// [000] §6.2.5: spatial and range weights from tables, in global or in shared memory; and, which the paper's
// search of the whole image does not allow (§5.3.2), the image in shared memory as well.
#include "study/nlm_bilateral/nlm_bilateral.cuh"
#include "study/nlm_bilateral/rungs.h"
#include "study/tables.cuh"

namespace ungrain::study {
namespace {

template <TableMemory Memory, bool SharedImage>
__global__ void nlm_bilateral_tables_kernel(Picture picture, NlmBilateralFactors factors,
                                            const float* spatial, const float* range) {
  extern __shared__ float memory[];
  const int radius = factors.radius;
  const Tables<Memory> tables(spatial, range, radius, memory);
  const int reach = radius + factors.patch;
  const int stride = SharedImage ? block_side() + 2 * reach : picture.stride;
  float* tile = memory + Tables<Memory>::shared_floats(radius);
  if constexpr (SharedImage) {
    load_tile(picture, first_column() - reach, first_row() - reach, stride, stride, tile, stride);
  }
  if constexpr (SharedImage || Memory == TableMemory::shared) __syncthreads();
  const int x = first_column() + thread_x();
  const int y = first_row() + thread_y();
  if (!in_picture(picture, x, y)) return;
  const float* middle = SharedImage ? tile + (thread_y() + reach) * stride + thread_x() + reach
                                    : picture.pixels + y * stride + x;
  picture.out[y * picture.width + x] = filter_nlm_bilateral(
      factors, [&](int dx, int dy) { return middle[dy * stride + dx]; },
      [&](int dx, int dy, float difference) { return tables.weight(dx + radius, dy + radius, difference); });
}

template <TableMemory Memory, bool SharedImage>
std::optional<Prepared> prepare(const RungCall& call) {
  const auto spatial = upload(spatial_table(call.strengths));
  const auto range = upload(range_table(call.strengths));
  const int reach = search_reach(call.strengths);
  const int side = call.shape.side;
  const std::size_t image = SharedImage ? tile_bytes(plain_stride(side, 1, reach), side, reach) : 0;
  const auto table_floats = static_cast<std::size_t>(Tables<Memory>::shared_floats(call.strengths.radius));
  return one_launch(nlm_bilateral_tables_kernel<Memory, SharedImage>, call,
                    image + table_floats * sizeof(float), {spatial, range},
                    NlmBilateralFactors(call.strengths), static_cast<const float*>(spatial->data()),
                    static_cast<const float*>(range->data()));
}

}  // namespace

std::vector<Rung> nlm_bilateral_tables() {
  return {{.name = "tables in global memory",
           .paper = "[000] kernel in global memory",
           .idea = "spatial and range weights from tables in global memory",
           .prepare = prepare<TableMemory::global, false>},
          {.name = "tables in shared memory",
           .paper = "[000] kernel in shared memory",
           .idea = "spatial and range weights from tables in shared memory",
           .prepare = prepare<TableMemory::shared, false>},
          {.name = "shared image, tables in shared memory",
           .paper = "[000] shared memory + kernel caching, of its other filters",
           .idea = "the image in shared memory too, which takes a search in a window",
           .prepare = prepare<TableMemory::shared, true>}};
}

}  // namespace ungrain::study
