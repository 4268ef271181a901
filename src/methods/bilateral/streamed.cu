// Small square windows, through registers: a thread owns a few columns and rows, reads the rows that they
// need one after the other and compares each row with those before it, so that the weight between two of the
// thread's own pixels is computed once. Every pixel adds its neighbours in the order of the window's rows and
// columns, in any thread. Bound by memory: each pixel is read once and written once; other reads come from
// the first-level cache.
#include "methods/bilateral/streamed.h"

#include <algorithm>
#include <cstdint>

#include "cuda/launch.cuh"
#include "cuda/load.cuh"
#include "cuda/window.cuh"

namespace ungrain {
namespace {

using cuda::BorderedPlane;

constexpr int radius = 1;
constexpr int block_width = 32;
constexpr int block_height = 4;

struct StreamedCall {
  BorderedPlane in;
  Planes out;
  int first_channel;
  int left;  // first column of the first thread, aligned in memory
  float scale;
  float unscale;
  float nothing;
  float space[radius + 1];
};

template <int Radius, int Channels, int Columns, int Rows>
class StreamedThread {
 public:
  __device__ StreamedThread(const StreamedCall& call, int x0, int y0) : call_(call), x0_(x0), y0_(y0) {}

  template <bool Held>
  __device__ void filter() {
#pragma unroll
    for (int row = -Radius; row < Rows + Radius; ++row) {
      load<Held>(row);
#pragma unroll
      for (int before = row - Radius; before < row; ++before) {
        if (before >= -Radius) meet(before, row);
      }
      if (row >= 0 && row < Rows) start_own_row(row);
      if (row - Radius >= 0) store(row - Radius);
    }
  }

 private:
  static constexpr int side = Columns + 2 * Radius;
  __device__ static constexpr bool is_own(int row, int column) {
    return row >= 0 && row < Rows && column >= 0 && column < Columns;
  }

  template <bool Held>
  __device__ void load(int row) {
#pragma unroll
    for (int c = 0; c < Channels; ++c) {
      float* to = pixels_[c][row + Radius];
      if constexpr (Held) {
        const float* from = &call_.in.planes.at(call_.first_channel + c, x0_, y0_ + row);
        if constexpr (Columns == 4) {
          const float4 four = *reinterpret_cast<const float4*>(from);
          to[Radius] = four.x;
          to[Radius + 1] = four.y;
          to[Radius + 2] = four.z;
          to[Radius + 3] = four.w;
        } else {
          const float2 two = *reinterpret_cast<const float2*>(from);
          to[Radius] = two.x;
          to[Radius + 1] = two.y;
        }
#pragma unroll
        for (int i = 1; i <= Radius; ++i) {
          to[Radius - i] = from[-i];
          to[Radius + Columns - 1 + i] = from[Columns - 1 + i];
        }
      } else {
#pragma unroll
        for (int i = 0; i < side; ++i) {
          to[i] = call_.in.at(call_.first_channel + c, x0_ + i - Radius, y0_ + row, call_.nothing);
        }
      }
#pragma unroll
      for (int i = 0; i < side; ++i) to[i] *= call_.scale;
    }
  }

  __device__ float weight_between(int row, int column, int other_row, int other_column, int dx) const {
    float exponent = call_.space[other_row - row] + call_.space[dx < 0 ? -dx : dx];
#pragma unroll
    for (int c = 0; c < Channels; ++c) {
      const float difference =
          pixels_[c][other_row + Radius][other_column + Radius] - pixels_[c][row + Radius][column + Radius];
      exponent = fmaf(-difference, difference, exponent);
    }
    return cuda::exp2_fast(exponent);
  }

  __device__ void add(int row, int column, int other_row, int other_column, float weight) {
    weights_[row][column] += weight;
#pragma unroll
    for (int c = 0; c < Channels; ++c) {
      sums_[c][row][column] =
          fmaf(weight, pixels_[c][other_row + Radius][other_column + Radius], sums_[c][row][column]);
    }
  }

  // Compares the pixels of two rows, the second below the first. Columns come in order, so that each pixel's
  // sums do.
  __device__ void meet(int above, int below) {
    if (below >= 0 && below < Rows && above == below - Radius) clear(below);
#pragma unroll
    for (int column = -Radius; column < Columns + Radius; ++column) {
#pragma unroll
      for (int dx = -Radius; dx <= Radius; ++dx) {
        const int other = column + dx;
        if (other < -Radius || other >= Columns + Radius) continue;
        if (!is_own(above, column) && !is_own(below, other)) continue;
        const float weight = weight_between(above, column, below, other, dx);
        if (is_own(above, column)) add(above, column, below, other, weight);
        if (is_own(below, other)) add(below, other, above, column, weight);
      }
    }
  }

  __device__ void clear(int row) {
#pragma unroll
    for (int column = 0; column < Columns; ++column) {
      weights_[row][column] = 0;
#pragma unroll
      for (int c = 0; c < Channels; ++c) sums_[c][row][column] = 0;
    }
  }

  // Compares the row's pixels with each other: left neighbours, the pixel itself, right neighbours.
  __device__ void start_own_row(int row) {
    float weights[side][Radius];  // of each pixel and those to its right
#pragma unroll
    for (int i = 0; i < side; ++i) {
#pragma unroll
      for (int dx = 1; dx <= Radius; ++dx) {
        const int column = i - Radius;
        const bool counts =
            column + dx < Columns + Radius && (is_own(row, column) || is_own(row, column + dx));
        weights[i][dx - 1] = counts ? weight_between(row, column, row, column + dx, dx) : 0;
      }
    }
#pragma unroll
    for (int column = 0; column < Columns; ++column) {
#pragma unroll
      for (int dx = -Radius; dx <= Radius; ++dx) {
        const int left = dx < 0 ? column + dx : column;
        const float weight = dx == 0 ? 1.0F : weights[left + Radius][(dx < 0 ? -dx : dx) - 1];
        add(row, column, row, column + dx, weight);
      }
    }
  }

  __device__ void store(int row) const {
    const Rect& area = call_.out.rect;
    const int y = y0_ + row;
    if (y >= area.y1) return;
#pragma unroll
    for (int c = 0; c < Channels; ++c) {
      float results[Columns];
#pragma unroll
      for (int i = 0; i < Columns; ++i) {
        results[i] = __fdividef(sums_[c][row][i], weights_[row][i]) * call_.unscale;
      }
      float* to = call_.out.row(call_.first_channel + c, y) + (x0_ - area.x0);
      const bool whole = x0_ >= area.x0 && x0_ + Columns <= area.x1;
      if (whole && reinterpret_cast<std::uintptr_t>(to) % (Columns * sizeof(float)) == 0) {
        if constexpr (Columns == 4) {
          *reinterpret_cast<float4*>(to) = make_float4(results[0], results[1], results[2], results[3]);
        } else {
          *reinterpret_cast<float2*>(to) = make_float2(results[0], results[1]);
        }
      } else {
#pragma unroll
        for (int i = 0; i < Columns; ++i) {
          if (x0_ + i >= area.x0 && x0_ + i < area.x1) to[i] = results[i];
        }
      }
    }
  }

  const StreamedCall& call_;
  int x0_;
  int y0_;
  // Every index is a compile-time constant: all of it lies in registers, only as long as it is used.
  float pixels_[Channels][Rows + 2 * Radius][side];
  float weights_[Rows][Columns];
  float sums_[Channels][Rows][Columns];
};

template <int Radius, int Channels, int Columns, int Rows>
__global__ void __launch_bounds__(block_width* block_height)
    streamed_kernel(const __grid_constant__ StreamedCall call) {
  const Rect& area = call.out.rect;
  const int x0 = call.left + static_cast<int>(blockIdx.x * block_width + threadIdx.x) * Columns;
  const int y0 = area.y0 + (cuda::block_row() * block_height + static_cast<int>(threadIdx.y)) * Rows;
  if (x0 >= area.x1 || y0 >= area.y1) return;
  StreamedThread<Radius, Channels, Columns, Rows> thread(call, x0, y0);
  const bool aligned = reinterpret_cast<std::uintptr_t>(&call.in.planes.at(call.first_channel, x0, y0)) %
                               (Columns * sizeof(float)) ==
                           0 &&
                       call.in.planes.row_stride % Columns == 0 && call.in.planes.plane_stride % Columns == 0;
  if (aligned && call.in.holds(x0 - Radius, y0 - Radius, x0 + Columns + Radius, y0 + Rows + Radius)) {
    thread.template filter<true>();
  } else {
    thread.template filter<false>();
  }
}

template <int Radius, int Channels, int Columns, int Rows>
void launch_for(StreamedCall of_call, const DeviceStageCall& call) {
  const Rect& area = call.out.rect;
  // The thread that owns the first column also owns as many before it as align its columns in memory.
  const float* first = &of_call.in.planes.at(of_call.first_channel, area.x0, area.y0);
  const auto before = static_cast<int>(reinterpret_cast<std::uintptr_t>(first) / sizeof(float) % Columns);
  of_call.left = area.x0 - before;
  const dim3 grid = cuda::tall_grid(cuda::blocks_for(area.width() + before, block_width * Columns),
                                    cuda::blocks_for(area.height(), block_height * Rows));
  cuda::launch(streamed_kernel<Radius, Channels, Columns, Rows>, grid, dim3(block_width, block_height), 0,
               call.stream, of_call);
}

}  // namespace

void launch_streamed_bilateral(const cuda::WindowWeights& weights, Border border, int first_channel,
                               int channels, const DeviceStageCall& call) {
  StreamedCall of_call{.in = {call.in[0], call.image, border},
                       .out = call.out,
                       .first_channel = first_channel,
                       .left = 0,
                       .scale = weights.scale,
                       .unscale = weights.unscale,
                       .nothing = weights.nothing,
                       .space = {}};
  std::copy_n(weights.space, radius + 1, of_call.space);
  channels == 1 ? launch_for<radius, 1, 4, 2>(of_call, call) : launch_for<radius, 3, 2, 4>(of_call, call);
}

}  // namespace ungrain
