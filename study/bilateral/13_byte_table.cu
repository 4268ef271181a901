// [001] §7.3, from its discussion: 8-bit pixels stay bytes, a quarter of the memory traffic, and the range
// weights come from a table of 256 in shared memory; the spatial ones stay in constant memory.
#include "study/bilateral/rungs.h"
#include "study/kernels.cuh"

namespace ungrain::study {
namespace {

__constant__ float spatial_weights[most_spatial_entries];

__global__ void byte_table_kernel(Picture picture, const float* range, int radius) {
  __shared__ float range_weights[range_entries];
  extern __shared__ unsigned char byte_tile[];
  const int stride = block_side() + 2 * radius;
  for (int i = thread_number(); i < range_entries; i += block_side() * block_side()) {
    range_weights[i] = range[i];
  }
  for (int y = thread_y(); y < stride; y += block_side()) {
    for (int x = thread_x(); x < stride; x += block_side()) {
      byte_tile[y * stride + x] =
          picture.bytes[held_offset(picture, first_column() - radius + x, first_row() - radius + y)];
    }
  }
  __syncthreads();
  const int x = first_column() + thread_x();
  const int y = first_row() + thread_y();
  if (!in_picture(picture, x, y)) return;
  const unsigned char* window = byte_tile + thread_y() * stride + thread_x();
  const int centre = window[radius * stride + radius];
  const int side = 2 * radius + 1;
  WeightedMean mean;
  for (int dy = 0; dy < side; ++dy) {
    for (int dx = 0; dx < side; ++dx) {
      const int value = window[dy * stride + dx];
      mean.add(spatial_weights[dy * side + dx] * range_weights[abs(value - centre)],
               static_cast<float>(value));
    }
  }
  picture.out[y * picture.width + x] = mean.value();
}

}  // namespace

Rung bilateral_byte_table() {
  return {.name = "bytes and a range table",
          .paper = "[001] §7.3",
          .idea = "8-bit pixels stay bytes; range weights from a table in shared memory",
          .prepare = [](const RungCall& call) {
            upload_constant(spatial_weights, spatial_table(call.strengths));
            const auto range = upload(range_table(call.strengths));
            const int radius = call.strengths.radius;
            const auto side = static_cast<std::size_t>(call.shape.side + 2 * radius);
            return one_launch(byte_table_kernel, call, side * side, {range},
                              static_cast<const float*>(range->data()), radius);
          }};
}

}  // namespace ungrain::study
