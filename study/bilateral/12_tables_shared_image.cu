// [000] §5.1.2.6: the image in shared memory, without tables ("shared memory"), and with both tables in
// global ("shared memory + kernel caching"), shared or constant memory.
#include "study/bilateral/rungs.h"
#include "study/tables.cuh"

namespace ungrain::study {
namespace {

__global__ void shared_image_kernel(Picture picture, int radius, float space_factor, float range_factor) {
  extern __shared__ float tile[];
  const int stride = block_side() + 2 * radius;
  load_tile(picture, first_column() - radius, first_row() - radius, stride, stride, tile, stride);
  __syncthreads();
  const int x = first_column() + thread_x();
  const int y = first_row() + thread_y();
  if (!in_picture(picture, x, y)) return;
  const float* middle = tile + (thread_y() + radius) * stride + thread_x() + radius;
  WeightedMean mean;
  for (int dy = -radius; dy <= radius; ++dy) {
    for (int dx = -radius; dx <= radius; ++dx) {
      const float value = middle[dy * stride + dx];
      const float distance = sqrtf(static_cast<float>(dx * dx + dy * dy));
      mean.add(gaussian(value - *middle, range_factor) * gaussian(distance, space_factor), value);
    }
  }
  picture.out[y * picture.width + x] = mean.value();
}

template <TableMemory Memory>
__global__ void tables_shared_image_kernel(Picture picture, const float* spatial, const float* range,
                                           int radius) {
  extern __shared__ float tile[];
  const int stride = block_side() + 2 * radius;
  load_tile(picture, first_column() - radius, first_row() - radius, stride, stride, tile, stride);
  const Tables<Memory> tables(spatial, range, radius, tile + stride * stride);
  __syncthreads();
  const int x = first_column() + thread_x();
  const int y = first_row() + thread_y();
  if (!in_picture(picture, x, y)) return;
  const float* window = tile + thread_y() * stride + thread_x();
  const float centre = window[radius * stride + radius];
  WeightedMean mean;
  for (int dy = 0; dy <= 2 * radius; ++dy) {
    for (int dx = 0; dx <= 2 * radius; ++dx) {
      const float value = window[dy * stride + dx];
      mean.add(tables.weight(dx, dy, value - centre), value);
    }
  }
  picture.out[y * picture.width + x] = mean.value();
}

std::size_t image_bytes(const RungCall& call) {
  const int side = call.shape.side;
  return tile_bytes(plain_stride(side, 1, call.strengths.radius), side, call.strengths.radius);
}

Rung without_tables() {
  return {.name = "shared image",
          .paper = "[000] shared memory",
          .idea = "the image in shared memory, both Gaussians computed",
          .prepare = [](const RungCall& call) {
            return one_launch(shared_image_kernel, call, image_bytes(call), {}, call.strengths.radius,
                              gaussian_factor(call.strengths.sigma_space),
                              gaussian_factor(call.strengths.sigma_range));
          }};
}

template <TableMemory Memory>
Rung with_tables() {
  return {.name = std::string("shared image, tables in ") + name_of(Memory) + " memory",
          .paper = Memory == TableMemory::global ? "[000] shared memory + kernel caching" : "[000] §5.1.2.6",
          .idea = std::string("the image in shared memory, both tables in ") + name_of(Memory) + " memory",
          .prepare = [](const RungCall& call) {
            const auto spatial = upload(spatial_table(call.strengths));
            const auto range = upload(range_table(call.strengths));
            if constexpr (Memory == TableMemory::constant) {
              upload_constant(constant_spatial, spatial_table(call.strengths));
              upload_constant(constant_range, range_table(call.strengths));
            }
            const int radius = call.strengths.radius;
            const std::size_t shared =
                image_bytes(call) +
                sizeof(float) * static_cast<std::size_t>(Tables<Memory>::shared_floats(radius));
            return one_launch(tables_shared_image_kernel<Memory>, call, shared, {spatial, range},
                              static_cast<const float*>(spatial->data()),
                              static_cast<const float*>(range->data()), radius);
          }};
}

}  // namespace

std::vector<Rung> bilateral_tables_shared_image() {
  return {without_tables(), with_tables<TableMemory::global>(), with_tables<TableMemory::shared>(),
          with_tables<TableMemory::constant>()};
}

}  // namespace ungrain::study
