// [000] §5.1.2.4 and §5.1.2.5, "kernel caching": spatial and range weights from tables, in global, shared or
// constant memory; the image in global memory. A range table needs whole numbers: 8-bit data. Its reads
// differ from thread to thread, which constant memory serves one after the other.
#include "study/bilateral/rungs.h"
#include "study/tables.cuh"

namespace ungrain::study {
namespace {

template <TableMemory Memory>
__global__ void tables_kernel(Picture picture, const float* spatial, const float* range, int radius) {
  extern __shared__ float place[];
  const Tables<Memory> tables(spatial, range, radius, place);
  if constexpr (Memory == TableMemory::shared) __syncthreads();
  const int x = first_column() + thread_x();
  const int y = first_row() + thread_y();
  if (!in_picture(picture, x, y)) return;
  const float centre = pixel(picture, x, y);
  WeightedMean mean;
  for (int dy = 0; dy <= 2 * radius; ++dy) {
    for (int dx = 0; dx <= 2 * radius; ++dx) {
      const float value = pixel(picture, x + dx - radius, y + dy - radius);
      mean.add(tables.weight(dx, dy, value - centre), value);
    }
  }
  picture.out[y * picture.width + x] = mean.value();
}

template <TableMemory Memory>
Rung rung() {
  return {.name = std::string("tables in ") + name_of(Memory) + " memory",
          .paper = Memory == TableMemory::shared ? "[000] kernel caching" : "[000] §5.1.2.4",
          .idea = std::string("spatial and range weights from tables in ") + name_of(Memory) + " memory",
          .prepare = [](const RungCall& call) {
            const auto spatial = upload(spatial_table(call.strengths));
            const auto range = upload(range_table(call.strengths));
            if constexpr (Memory == TableMemory::constant) {
              upload_constant(constant_spatial, spatial_table(call.strengths));
              upload_constant(constant_range, range_table(call.strengths));
            }
            const int radius = call.strengths.radius;
            return one_launch(tables_kernel<Memory>, call,
                              sizeof(float) * static_cast<std::size_t>(Tables<Memory>::shared_floats(radius)),
                              {spatial, range}, static_cast<const float*>(spatial->data()),
                              static_cast<const float*>(range->data()), radius);
          }};
}

}  // namespace

std::vector<Rung> bilateral_tables() {
  return {rung<TableMemory::global>(), rung<TableMemory::shared>(), rung<TableMemory::constant>()};
}

}  // namespace ungrain::study
