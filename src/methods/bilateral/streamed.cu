// A thread walks down a column; a row's pixels are read once by each of the lanes that need them, from the
// cache that the row's first reader filled, and serve the window's rows from registers.
#include "methods/bilateral/streamed.h"

#include <algorithm>

#include "cuda/launch.cuh"
#include "cuda/load.cuh"
#include "cuda/window.cuh"

namespace ungrain {
namespace {

using cuda::BorderedPlane;

constexpr int rows_each = 4;
constexpr int block_width = 32;
constexpr int block_height = 4;

struct StreamedCall {
  BorderedPlane in;
  Planes out;
  int plane;
  float scale;
  float unscale;
  float nothing;
  float space[most_streamed_radius + 1];
};

template <int Radius>
__global__ void __launch_bounds__(block_width* block_height)
    streamed_kernel(const __grid_constant__ StreamedCall call) {
  constexpr int side = 2 * Radius + 1;
  const Rect& area = call.out.rect;
  const int x = area.x0 + static_cast<int>(blockIdx.x * block_width + threadIdx.x);
  const int y0 = area.y0 + static_cast<int>(blockIdx.y * block_height + threadIdx.y) * rows_each;
  if (x >= area.x1 || y0 >= area.y1) return;
  const bool held = call.in.holds(x - Radius, y0 - Radius, x + Radius + 1, y0 + rows_each + Radius);
  float pixels[rows_each + 2 * Radius][side];
  if (held) {
    const float* from = &call.in.planes.at(call.plane, x - Radius, y0 - Radius);
#pragma unroll
    for (int row = 0; row < rows_each + 2 * Radius; ++row) {
#pragma unroll
      for (int column = 0; column < side; ++column) pixels[row][column] = from[column] * call.scale;
      from += call.in.planes.row_stride;
    }
  } else {
#pragma unroll
    for (int row = 0; row < rows_each + 2 * Radius; ++row) {
#pragma unroll
      for (int column = 0; column < side; ++column) {
        pixels[row][column] =
            call.in.at(call.plane, x + column - Radius, y0 + row - Radius, call.nothing) * call.scale;
      }
    }
  }
#pragma unroll
  for (int k = 0; k < rows_each; ++k) {
    const float centre = pixels[k + Radius][Radius];
    float weights = 1;
    float values = centre;
#pragma unroll
    for (int dy = -Radius; dy <= Radius; ++dy) {
#pragma unroll
      for (int dx = -Radius; dx <= Radius; ++dx) {
        if (dx == 0 && dy == 0) continue;
        const float value = pixels[k + Radius + dy][Radius + dx];
        const float difference = value - centre;
        const float exponent = call.space[dx < 0 ? -dx : dx] + call.space[dy < 0 ? -dy : dy];
        const float weight = cuda::exp2_fast(fmaf(-difference, difference, exponent));
        weights += weight;
        values = fmaf(weight, value, values);
      }
    }
    if (y0 + k < area.y1) call.out.at(call.plane, x, y0 + k) = values / weights * call.unscale;
  }
}

}  // namespace

void launch_streamed_bilateral(const cuda::WindowWeights& weights, Border border, int plane,
                               const DeviceStageCall& call) {
  StreamedCall of_call{.in = {call.in[0], call.image, border},
                       .out = call.out,
                       .plane = plane,
                       .scale = weights.scale,
                       .unscale = weights.unscale,
                       .nothing = weights.nothing,
                       .space = {}};
  std::copy_n(weights.space, weights.reach_x + 1, of_call.space);
  const Rect& area = call.out.rect;
  const dim3 grid(static_cast<unsigned>(cuda::blocks_for(area.width(), block_width)),
                  static_cast<unsigned>(cuda::blocks_for(area.height(), block_height * rows_each)));
  cuda::launch(weights.reach_x == 1 ? streamed_kernel<1> : streamed_kernel<2>, grid,
               dim3(block_width, block_height), 0, call.stream, of_call);
}

}  // namespace ungrain
