// The tile that a block of the bilateral family works on, and its loop over the window.
//
// A lane is a column and a thread owns `rows_each` rows of it; the tile and what is around it lie in shared
// memory, scaled so that a squared difference is an exponent. Columns of the window come one after the other;
// within one, every pixel that is read serves all rows of the thread that it is near.
#pragma once

#include <type_traits>
#include <utility>

#include "cuda/launch.cuh"
#include "cuda/load.cuh"
#include "cuda/window.h"

namespace ungrain::cuda {

inline constexpr int tile_width = 32;
inline constexpr int rows_each = 8;
inline constexpr int tile_warps = 4;
inline constexpr int tile_height = rows_each * tile_warps;
inline constexpr int tile_threads = tile_width * tile_warps;

// Scaled values are kept below this, so that sums of their squared differences stay finite. A pixel beyond it
// has no neighbour that counts, or only such: it is left as it is.
inline constexpr float most_scaled = 1e18F;

struct WindowCall {
  BorderedPlane in;
  Planes out;
  int first_channel;
  WindowWeights weights;
};

__device__ inline float exp2_fast(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

// One block's part of the image. Channels share a weight; Rows of the window are in shared memory at a time;
// Bounded keeps scaled values below most_scaled.
template <int Channels, int Rows, bool Bounded>
class WindowBlock {
 public:
  __device__ WindowBlock(const WindowCall& call, float* shared)
      : call_(call),
        shared_(shared),
        lane_(static_cast<int>(threadIdx.x) % tile_width),
        warp_(static_cast<int>(threadIdx.x) / tile_width),
        left_(call.out.rect.x0 + static_cast<int>(blockIdx.x) * tile_width),
        top_(call.out.rect.y0 + static_cast<int>(blockIdx.y) * tile_height),
        pitch_(tile_width + 2 * call.weights.reach_x),
        plane_(pitch_ * (tile_height + Rows - 1)) {}

  static std::size_t shared_bytes(int reach_x) {
    return sizeof(float) * Channels * (tile_width + 2 * static_cast<std::size_t>(reach_x)) *
           (tile_height + Rows - 1);
  }

  __device__ int x() const { return left_ + lane_; }
  __device__ int y(int row) const { return top_ + warp_ * rows_each + row; }
  __device__ bool is_mine(int row) const { return x() < call_.out.rect.x1 && y(row) < call_.out.rect.y1; }

  // The thread's own pixels, scaled; anything where they lie outside.
  __device__ void load_centres(float (&centre)[Channels][rows_each]) const {
#pragma unroll
    for (int c = 0; c < Channels; ++c) {
#pragma unroll
      for (int k = 0; k < rows_each; ++k) {
        centre[c][k] = is_mine(k) ? bounded(pixel(c, k) * call_.weights.scale) : 0;
      }
    }
  }

  // The result for row k, from its channels' sums; `centre` is what load_centres() gave.
  __device__ void store(int k, const float (&centre)[Channels][rows_each],
                        const float (&sums)[Channels][rows_each], float weights) const {
    if (!is_mine(k)) return;
    bool in_bounds = true;
    if constexpr (Bounded) {
#pragma unroll
      for (int c = 0; c < Channels; ++c) in_bounds = in_bounds && fabsf(centre[c][k]) < most_scaled;
    }
#pragma unroll
    for (int c = 0; c < Channels; ++c) {
      const float result = in_bounds ? sums[c][k] / weights * call_.weights.unscale : pixel(c, k);
      call_.out.at(call_.first_channel + c, x(), y(k)) = result;
    }
  }

  // Calls visit(k, values, exponent) for every row k of the thread and every pixel of its window: the pixel's
  // channels, scaled, and the exponent of its distance. All threads of the block must come along.
  template <class Visit>
  __device__ void for_window(Visit visit) {
    const WindowWeights& w = call_.weights;
    for (int first = -w.reach_y; first <= w.reach_y; first += Rows) {
      load(first);
      for (int dx = -w.reach_x; dx <= w.reach_x; ++dx) {
        float exponents[Rows];
        find_exponents(first, dx, exponents);
        const float* column = shared_ + warp_ * rows_each * pitch_ + lane_ + dx + w.reach_x;
#pragma unroll
        for (int j = 0; j < rows_each + Rows - 1; ++j) {
          float values[Channels];
#pragma unroll
          for (int c = 0; c < Channels; ++c) values[c] = column[c * plane_ + j * pitch_];
#pragma unroll
          for (int k = 0; k < rows_each; ++k) {
            if (j - k >= 0 && j - k < Rows) visit(k, values, exponents[j - k]);
          }
        }
      }
    }
  }

 private:
  __device__ float pixel(int c, int k) const { return call_.in.inside(call_.first_channel + c, x(), y(k)); }
  __device__ static float bounded(float scaled) {
    return Bounded ? fminf(fmaxf(scaled, -most_scaled), most_scaled) : scaled;
  }

  // Of the column dx, rows [first, first + Rows) of the window. An odd number of rows is the window's height:
  // a kernel that was compiled for it takes all rows in one go.
  __device__ void find_exponents(int first, int dx, float (&exponents)[Rows]) const {
    const WindowWeights& w = call_.weights;
    const float across = w.space[abs(dx)];
    if (Rows % 2 == 1 && w.square) {
#pragma unroll
      for (int t = 0; t <= Rows / 2; ++t) {
        exponents[t] = across + w.space[Rows / 2 - t];
        exponents[Rows - 1 - t] = exponents[t];
      }
      return;
    }
    const int height = w.height[abs(dx)];
#pragma unroll
    for (int t = 0; t < Rows; ++t) {
      const int dy = abs(first + t);
      exponents[t] = dy <= height ? across + w.space[dy] : -INFINITY;
    }
  }

  // The rows that the window's rows [first, first + Rows) need.
  __device__ void load(int first) {
    const WindowWeights& w = call_.weights;
    const int x0 = left_ - w.reach_x;
    const int y0 = top_ + first;
    const int rows = tile_height + Rows - 1;
    const bool held = call_.in.holds(x0, y0, x0 + pitch_, y0 + rows);
    __syncthreads();
    if (held) {
      const ConstPlanes& planes = call_.in.planes;
#pragma unroll
      for (int c = 0; c < Channels; ++c) {
        const float* from = &planes.at(call_.first_channel + c, x0, y0 + warp_);
        float* to = shared_ + c * plane_ + warp_ * pitch_;
        for (int row = warp_; row < rows; row += tile_warps) {
          for (int column = lane_; column < pitch_; column += tile_width)
            to[column] = bounded(from[column] * w.scale);
          from += tile_warps * planes.row_stride;
          to += tile_warps * pitch_;
        }
      }
    } else {
      for (int row = warp_; row < rows; row += tile_warps) {
        for (int column = lane_; column < pitch_; column += tile_width) {
#pragma unroll
          for (int c = 0; c < Channels; ++c) {
            shared_[c * plane_ + row * pitch_ + column] =
                bounded(call_.in.at(call_.first_channel + c, x0 + column, y0 + row, w.nothing) * w.scale);
          }
        }
      }
    }
    __syncthreads();
  }

  const WindowCall& call_;
  float* shared_;
  int lane_;
  int warp_;
  int left_;
  int top_;
  int pitch_;
  int plane_;
};

inline dim3 window_grid(const Rect& area) {
  return {static_cast<unsigned>(blocks_for(area.width(), tile_width)),
          static_cast<unsigned>(blocks_for(area.height(), tile_height)), 1};
}

// How many rows of the window a kernel takes at a time where it was not compiled for the window's height.
inline constexpr int generic_rows = 16;

// make(rows), `rows` being the window's height as a constant where the window reaches one of Reaches up and
// down, else generic_rows.
template <typename Make, int... Reaches>
auto with_rows(int reach, std::integer_sequence<int, Reaches...>, Make make) {
  auto made = make(std::integral_constant<int, generic_rows>());
  ((reach == Reaches ? void(made = make(std::integral_constant<int, 2 * Reaches + 1>())) : void()), ...);
  return made;
}

}  // namespace ungrain::cuda
