// [001] §7.1: the radius known to the compiler, which the paper tried first and gave up for the time it takes
// to compile. Version 4 with a row of the window written out.
#include <array>
#include <utility>

#include "study/bilateral/constant_table.cuh"
#include "study/bilateral/rungs.h"

namespace ungrain::study {
namespace {

template <int Radius>
__global__ void unrolled_radius_kernel(Picture picture, float range_factor, int tile_stride) {
  extern __shared__ float tile[];
  constexpr int side = 2 * Radius + 1;
  const int tile_side = block_side() + 2 * Radius;
  load_tile(picture, first_column() - Radius, first_row() - Radius, tile_side, tile_side, tile, tile_stride);
  __syncthreads();
  const int x = first_column() + thread_x();
  const int y = first_row() + thread_y();
  if (!in_picture(picture, x, y)) return;
  const float* window = tile + thread_y() * tile_stride + thread_x();
  const float centre = window[Radius * tile_stride + Radius];
  WeightedMean mean;
#pragma unroll 1
  for (int dy = 0; dy < side; ++dy) {
#pragma unroll
    for (int dx = 0; dx < side; ++dx) {
      const float value = window[dy * tile_stride + dx];
      mean.add(spatial_weights[dy * side + dx] * gaussian(value - centre, range_factor), value);
    }
  }
  picture.out[y * picture.width + x] = mean.value();
}

using Kernel = void (*)(Picture, float, int);
template <int... Before>
std::array<Kernel, sizeof...(Before)> kernels_from_one(std::integer_sequence<int, Before...>) {
  return {unrolled_radius_kernel<Before + 1>...};
}

}  // namespace

Rung bilateral_unrolled_radius() {
  return {.name = "unrolled radius",
          .paper = "[001] §7.1",
          .idea = "version 4 with the radius known to the compiler, a row of the window written out",
          .prepare = [](const RungCall& call) {
            upload_constant(spatial_weights, spatial_table(call.strengths));
            const int radius = call.strengths.radius;
            const int stride = padded_stride(call.shape.side, 1, radius);
            const auto kernels = kernels_from_one(std::make_integer_sequence<int, largest_radius>());
            return one_launch(kernels.at(static_cast<std::size_t>(radius - 1)), call,
                              tile_bytes(stride, call.shape.side, radius), {},
                              gaussian_factor(call.strengths.sigma_range), stride);
          }};
}

}  // namespace ungrain::study
