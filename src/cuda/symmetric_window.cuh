// Sums over a square window in which a pair of pixels counts the same for both, each pair found once.
//
// A warp owns 32 * Columns columns and goes down the image row by row. A thread holds its columns' next
// `Radius` rows, pixels and sums, in registers. They are compared with the row above them, whose pixels lie
// in shared memory: with those up to `Radius` to the left and right. What the pairs add to that row's own
// sums is added in shared memory, to sums that belong to the warp alone; a pixel read there meets as many as
// Columns * Radius others. After a row has been compared it is finished: to its sums are added those that the
// warps to the left and right have for their neighbours' columns.
//
// Sums have one order: rows of the image from the top, in each the columns from the left. Blocks start at
// multiples of their width from the image's origin, in any row, and first take the rows above into account
// without adding to their sums. So a pixel has the same bits in every region of the image.
//
// Bound by instruction issue: seven a pair of gray pixels, 15 of RGB, and about one in twenty to move data.
#pragma once

#include <algorithm>
#include <cstdlib>

#include "cuda/async_copy.cuh"
#include "cuda/launch.cuh"
#include "cuda/load.cuh"
#include "cuda/window.h"

namespace ungrain::cuda {

inline constexpr int most_symmetric_radius = 15;

// Sums: what is summed, and its parameters. It has
//   channels, kinds: constants, floats of a pixel and of its sums;
//   begin(pixel, sums): the pixel as a pair with itself;
//   add_pair<Both>(own, other, exponent, own_sums, other_sums): a pair of pixels, whose distance in space has
//     this exponent of 2; without Both to own_sums only;
//   store(out, first_channel, x, y, sums): the result of a pixel.
// All take scaled pixels: WindowWeights::scale.
template <class Sums>
struct SymmetricCall {
  BorderedPlane in;
  Planes out;
  int first_channel;
  int rows_each;  // of a block
  float scale;
  float outside;  // stands for a pixel beyond the border, unscaled
  float space[most_symmetric_radius + 1];
  Sums sums;
};

// So many floats, moved between shared memory and registers as one word.
template <int Count>
struct alignas(Count == 1   ? 4
               : Count == 2 ? 8
                            : 16) SharedFloats {
  static_assert(Count <= 4);
  static constexpr int padded = Count == 3 ? 4 : Count;
  float floats[padded];
};

template <class Sums, int Radius, int Columns, int Warps>
class SymmetricWindow {
 public:
  static constexpr int lanes = 32;
  static constexpr int threads = lanes * Warps;
  static constexpr int columns = threads * Columns;
  static constexpr int own_columns = columns - 2 * Radius;  // the outermost ones are not complete

  __device__ SymmetricWindow(const SymmetricCall<Sums>& call, float4* shared)
      : call_(call),
        thread_(static_cast<int>(threadIdx.x)),
        lane_(thread_ % lanes),
        exponents_(reinterpret_cast<float*>(shared)),
        pixels_(reinterpret_cast<Pixel*>(exponents_ + exponent_floats)),
        sums_(reinterpret_cast<PixelSums*>(pixels_ + 2 * row_pixels) + thread_ / lanes * row_sums),
        fetched_(reinterpret_cast<float*>(pixels_ + 2 * row_pixels) +
                 sizeof(PixelSums) / sizeof(float) * 2 * Warps * row_sums + thread_) {
    const Rect& area = call.out.rect;
    left_ = (area.x0 / own_columns + static_cast<int>(blockIdx.x)) * own_columns - Radius;
    top_ = area.y0 + static_cast<int>(blockIdx.y) * call.rows_each;
    bottom_ = min(top_ + call.rows_each, area.y1);
#pragma unroll
    for (int i = 0; i < Columns; ++i) own_found_[i] = find_column(thread_ * Columns + i);
    margin_found_ = thread_ < 2 * Radius ? find_column(margin_column()) : no_pixel;
#pragma unroll
    for (int i = 0; i < Columns; ++i) {
      const int column = thread_ * Columns + i;
      const int x = left_ + column;
      const bool finishes = column >= Radius && column < columns - Radius && x >= area.x0 && x < area.x1;
      flags_ |= finishes ? 1U << i : 0U;
    }
    if (lane_ < beyond && thread_ >= lanes) flags_ |= takes_from_left;
    if (lane_ >= lanes - beyond && thread_ < threads - lanes) flags_ |= takes_from_right;
  }

  static constexpr std::size_t shared_bytes() {
    return sizeof(float) * exponent_floats + sizeof(Pixel) * 2 * row_pixels +
           sizeof(PixelSums) * 2 * Warps * row_sums +
           sizeof(float) * (Columns + 1) * Sums::channels * threads;
  }

  __device__ void filter() {
    for (int i = thread_; i < exponent_floats; i += threads) {
      const int dy = min(i % exponent_pitch, Radius);  // the rest pads
      exponents_[i] = call_.space[i / exponent_pitch] + call_.space[dy];
    }
    // Above the block's rows: these are replaced row by row before they would gather anything.
    const int first = top_ - Radius;
#pragma unroll
    for (int row = 0; row < Radius; ++row) {
      fetch_own(first + row);
      take_own(below_[row]);
    }
    fetch(first);
    for (int above = Radius; above > 0; --above) {
      const Row own = begin_row(top_ - above);
      compare_row_above<Radius>(above, own);
    }
    for (int y = top_; y < bottom_; ++y) compare_row(y);
    __syncthreads();
    finish(bottom_ - 1);
  }

 private:
  using Pixel = SharedFloats<Sums::channels>;
  using PixelSums = SharedFloats<Sums::kinds>;

  // Columns are grouped by their remainder, so that the words of a warp's lanes are adjacent. Beyond a
  // warp's and a block's columns there are `beyond` more of each remainder on either side.
  static constexpr int beyond = (Radius + Columns - 1) / Columns;
  static_assert(beyond * Columns <= Radius + 1, "compare_groups() takes the first and the last group apart");
  static constexpr int pixel_pitch = threads + 2 * beyond;
  static constexpr int row_pixels = Columns * pixel_pitch;
  static constexpr int sum_pitch = lanes + 2 * beyond;
  static constexpr int row_sums = Columns * sum_pitch;  // of a warp
  static constexpr int exponent_pitch = (Radius + 1 + 3) / 4 * 4;
  static constexpr int exponent_floats = (Radius + 1) * exponent_pitch;

  static constexpr int margin_slot = Columns;
  static constexpr unsigned takes_from_left = 1U << Columns;
  static constexpr unsigned takes_from_right = 2U << Columns;

  // A thread's pixels of a row and their sums.
  struct Row {
    float pixels[Columns][Sums::channels];
    float sums[Columns][Sums::kinds];
  };

  // ---- rows from global memory

  // The first threads have one of the columns beyond the block's.
  __device__ int margin_column() const {
    return thread_ < Radius ? thread_ - Radius : columns + thread_ - Radius;
  }

  // The column of what is held that stands for the block's; no_pixel where none does.
  __device__ int find_column(int column) const {
    const int found = call_.in.column_for(left_ + column);
    return found == no_pixel ? no_pixel : found - call_.in.planes.rect.x0;
  }

  // The row that stands for row y; null where none does.
  __device__ const float* find_row(int y) const {
    const int found = call_.in.row_for(y);
    return found == no_pixel ? nullptr : call_.in.planes.row(call_.first_channel, found);
  }

  // Begins to copy a pixel into shared memory, where only this thread reads it. Registers would be held
  // through the comparison of a row.
  __device__ void fetch_pixel(const float* row, int column, int slot) {
    const bool there = row != nullptr && column != no_pixel;
#pragma unroll
    for (int c = 0; c < Sums::channels; ++c) {
      float* const to = fetched_ + (slot * Sums::channels + c) * threads;
      if (there) {
        copy_async(to, row + c * call_.in.planes.plane_stride + column, true);
      } else {
        *to = call_.outside;
      }
    }
  }

  __device__ void fetch_own(int y) {
    const float* const row = find_row(y);
#pragma unroll
    for (int i = 0; i < Columns; ++i) fetch_pixel(row, own_found_[i], i);
  }

  // For the comparison of row y: its pixels beyond the block, and the last row that it is compared with.
  __device__ void fetch(int y) {
    fetch_own(y + Radius);
    if (thread_ < 2 * Radius) fetch_pixel(find_row(y), margin_found_, margin_slot);
  }

  __device__ float fetched(int slot, int c) const {
    return fetched_[(slot * Sums::channels + c) * threads] * call_.scale;
  }

  __device__ void take_own(Row& row) const {
    wait_for_all_copies();
#pragma unroll
    for (int i = 0; i < Columns; ++i) {
#pragma unroll
      for (int c = 0; c < Sums::channels; ++c) row.pixels[i][c] = fetched(i, c);
      Sums::begin(row.pixels[i], row.sums[i]);
    }
  }

  // ---- one row

  // Row y leaves the rows below, and is there for all threads to compare theirs with.
  __device__ Row begin_row(int y) {
    const Row row = below_[0];
#pragma unroll
    for (int i = 0; i + 1 < Radius; ++i) below_[i] = below_[i + 1];
    take_own(below_[Radius - 1]);
    keep_pixels(row, row_of(pixels_, row_pixels, y));
    fetch(y + 1);
    __syncthreads();  // no thread reads the sums of two rows before any more
    return row;
  }

  // A row so far above the block's first one: it is compared with those of the block that are near enough,
  // and gathers nothing itself.
  template <int Above>
  __device__ void compare_row_above(int above, const Row& own) {
    if (above == Above) {
      Row unchanged = own;
      compare_groups<Above, false>(top_ - Above, unchanged);
    } else if constexpr (Above > 1) {
      compare_row_above<Above - 1>(above, own);
    }
  }

  __device__ void compare_row(int y) {
    Row own = begin_row(y);
    if (y > top_) finish(y - 1);
    PixelSums* const sums = row_of(sums_, Warps * row_sums, y);
#pragma unroll
    for (int i = 0; i < row_sums; i += lanes) {
      if (i + lanes <= row_sums || lane_ < row_sums - i) sums[i + lane_] = {};
    }
    __syncwarp();
    compare_groups<1, true>(y, own);
#pragma unroll
    for (int i = 0; i < Columns; ++i) {
      PixelSums& all = sums[i * sum_pitch + beyond + lane_];
      PixelSums total = all;
#pragma unroll
      for (int kind = 0; kind < Sums::kinds; ++kind) total.floats[kind] += own.sums[i][kind];
      all = total;
    }
  }

  // Two rows are held.
  template <class Word>
  __device__ static Word* row_of(Word* both, int words, int y) {
    return both + (y & 1) * words;
  }

  __device__ void keep_pixels(const Row& own, Pixel* to) const {
#pragma unroll
    for (int i = 0; i < Columns; ++i) {
      Pixel pixel = {};
#pragma unroll
      for (int c = 0; c < Sums::channels; ++c) pixel.floats[c] = own.pixels[i][c];
      to[i * pixel_pitch + beyond + thread_] = pixel;
    }
    if (thread_ >= 2 * Radius) return;
    Pixel pixel = {};
#pragma unroll
    for (int c = 0; c < Sums::channels; ++c) pixel.floats[c] = fetched(margin_slot, c);
    const int column = margin_column() + beyond * Columns;
    to[column % Columns * pixel_pitch + column / Columns] = pixel;
  }

  // ---- the columns of the window: as many at a time as a thread has

  // Of the window's groups of columns.
  enum class Part { first, left, middle, right, last };

  // Compares row y with the rows from `First` to Radius below it. Both: it gathers sums itself, and its
  // pixels are compared with each other.
  template <int First, bool Both>
  __device__ void compare_groups(int y, Row& own) {
    const Pixel* const pixels = row_of(pixels_, row_pixels, y) + beyond + thread_;
    PixelSums* const sums = row_of(sums_, Warps * row_sums, y) + beyond + lane_;
    float exponents[Columns][exponent_pitch];
    compare_group<Part::first, First, Both>(-beyond, own, pixels, sums, exponents);
#pragma unroll 1
    for (int group = 1 - beyond; group < 0; ++group) {
      compare_group<Part::left, First, Both>(group, own, pixels, sums, exponents);
    }
    compare_group<Part::middle, First, Both>(0, own, pixels, sums, exponents);
#pragma unroll 1
    for (int group = 1; group < beyond; ++group) {
      compare_group<Part::right, First, Both>(group, own, pixels, sums, exponents);
    }
    compare_group<Part::last, First, Both>(beyond, own, pixels, sums, exponents);
  }

  // The distance from the thread's column `i` to the group's column `other`, which counts from the thread's
  // own of the same number.
  template <Part Which>
  static constexpr int distance(int other, int i) {
    constexpr int group = Which == Part::first ? -beyond : Which == Part::last ? beyond : 0;
    return group * Columns + other - i;
  }
  template <Part Which>
  static constexpr bool in_window(int other, int i) {
    return Which == Part::left || Which == Part::right ||
           (distance<Which>(other, i) >= -Radius && distance<Which>(other, i) <= Radius);
  }
  template <Part Which>
  static constexpr bool is_right(int other, int i) {
    return Which == Part::right || (Which != Part::left && distance<Which>(other, i) > 0);
  }

  // `exponents` keeps those of the last distances, by their remainder.
  template <Part Which, int First, bool Both>
  __device__ void compare_group(int group, Row& own, const Pixel* pixels, PixelSums* sums,
                                float (&exponents)[Columns][exponent_pitch]) {
#pragma unroll
    for (int other = 0; other < Columns; ++other) {
      if (in_window<Which>(other, 0)) load_exponents(abs(group * Columns + other), exponents[other]);
      if (!in_window<Which>(other, 0) && !in_window<Which>(other, Columns - 1)) continue;
      const Pixel pixel = pixels[other * pixel_pitch + group];
      PixelSums* const others = sums + other * sum_pitch + group;
      PixelSums others_sums;
      if constexpr (Both) others_sums = *others;
      float of_other[Sums::kinds];
#pragma unroll
      for (int kind = 0; kind < Sums::kinds; ++kind) of_other[kind] = Both ? others_sums.floats[kind] : 0;
      float other_pixel[Sums::channels];
#pragma unroll
      for (int c = 0; c < Sums::channels; ++c) other_pixel[c] = pixel.floats[c];
#pragma unroll
      for (int i = 0; i < Columns; ++i) {
        if (!in_window<Which>(other, i)) continue;
        const float(&of_distance)[exponent_pitch] = exponents[(other - i + Columns) % Columns];
#pragma unroll
        for (int dy = First; dy <= Radius; ++dy) {
          Row& row = below_[dy - 1];
          Sums::template add_pair<Both>(row.pixels[i], other_pixel, of_distance[dy], row.sums[i], of_other);
        }
        if (Both && is_right<Which>(other, i)) {
          Sums::template add_pair<Both>(own.pixels[i], other_pixel, of_distance[0], own.sums[i], of_other);
        }
      }
      if constexpr (Both) {
#pragma unroll
        for (int kind = 0; kind < Sums::kinds; ++kind) others_sums.floats[kind] = of_other[kind];
        *others = others_sums;
      }
    }
    if constexpr (Both) __syncwarp();  // another lane adds to these sums next
  }

  __device__ void load_exponents(int across, float (&to)[exponent_pitch]) const {
    const auto* from = reinterpret_cast<const float4*>(exponents_ + across * exponent_pitch);
#pragma unroll
    for (int i = 0; i < exponent_pitch / 4; ++i) {
      const float4 four = from[i];
      to[4 * i] = four.x;
      to[4 * i + 1] = four.y;
      to[4 * i + 2] = four.z;
      to[4 * i + 3] = four.w;
    }
  }

  // ---- results

  __device__ void finish(int y) {
    const PixelSums* const own = row_of(sums_, Warps * row_sums, y) + beyond + lane_;
#pragma unroll
    for (int i = 0; i < Columns; ++i) {
      if ((flags_ & 1U << i) == 0) continue;
      const PixelSums* const at = own + i * sum_pitch;
      PixelSums total = *at;
      // The sums of the warps at either side, beyond their own columns.
      if ((flags_ & takes_from_left) != 0) add(total, at[lanes - row_sums]);
      if ((flags_ & takes_from_right) != 0) add(total, at[row_sums - lanes]);
      float sums[Sums::kinds];
#pragma unroll
      for (int kind = 0; kind < Sums::kinds; ++kind) sums[kind] = total.floats[kind];
      call_.sums.store(call_.out, call_.first_channel, left_ + thread_ * Columns + i, y, sums);
    }
  }

  __device__ static void add(PixelSums& to, const PixelSums& more) {
#pragma unroll
    for (int kind = 0; kind < Sums::kinds; ++kind) to.floats[kind] += more.floats[kind];
  }

  const SymmetricCall<Sums>& call_;
  int thread_;
  int lane_;
  int left_;
  int top_;
  int bottom_;
  float* exponents_;  // [distance across][distance down]
  Pixel* pixels_;     // [row, even or odd][remainder][column]
  PixelSums* sums_;   // of this warp, [row, even or odd][warp][remainder][column]
  float* fetched_;    // of this thread: [column, margin][channel][thread]
  int own_found_[Columns];
  int margin_found_;
  unsigned flags_ = 0;  // of this thread: bit i: it finishes column i; takes_from_left, takes_from_right
  Row below_[Radius];
};

template <class Sums, int Radius, int Columns, int Warps, int Resident>
__global__ void __launch_bounds__(SymmetricWindow<Sums, Radius, Columns, Warps>::threads, Resident)
    symmetric_window_kernel(const __grid_constant__ SymmetricCall<Sums> call) {
  extern __shared__ float4 shared[];
  SymmetricWindow<Sums, Radius, Columns, Warps>(call, shared).filter();
}

// Columns a thread, warps a block, blocks that a multiprocessor holds at least (which bounds the registers),
// and how many times as many blocks as the GPU holds at once.
struct SymmetricShape {
  int columns;
  int warps;
  int resident;
  int rounds;
};

template <class Sums, int Radius, SymmetricShape Shape>
void launch_symmetric(SymmetricCall<Sums> call, Stream stream) {
  using Window = SymmetricWindow<Sums, Radius, Shape.columns, Shape.warps>;
  const auto kernel = symmetric_window_kernel<Sums, Radius, Shape.columns, Shape.warps, Shape.resident>;
  static const int held = [=] {
    allow_shared(kernel, Window::shared_bytes());
    int device = 0;
    int multiprocessors = 0;
    int each = 0;
    check(cudaGetDevice(&device), "asking for the GPU");
    check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
          "asking for the GPU");
    check(
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, Window::threads, Window::shared_bytes()),
        "asking for the occupancy");
    return multiprocessors * std::max(each, 1);
  }();
  const Rect& area = call.out.rect;
  const int across = (area.x1 - 1) / Window::own_columns - area.x0 / Window::own_columns + 1;
  // A block takes the rows above its own into account, which costs as much as a few of its own.
  constexpr int least_rows = 2 * Radius;
  const int down = std::clamp(Shape.rounds * held / across, 1, std::max(1, area.height() / least_rows));
  call.rows_each = blocks_for(area.height(), down);
  launch(
      kernel,
      dim3(static_cast<unsigned>(across), static_cast<unsigned>(blocks_for(area.height(), call.rows_each))),
      dim3(Window::threads), Window::shared_bytes(), stream, call);
}

template <class Sums>
SymmetricCall<Sums> symmetric_call(const WindowWeights& weights, const BorderedPlane& in, const Planes& out,
                                   int first_channel, const Sums& sums) {
  SymmetricCall<Sums> call{.in = in,
                           .out = out,
                           .first_channel = first_channel,
                           .rows_each = 0,
                           .scale = weights.scale,
                           .outside = in.border == Border::constant ? 0 : weights.nothing,
                           .space = {},
                           .sums = sums};
  std::copy_n(weights.space, weights.reach_x + 1, call.space);
  return call;
}

}  // namespace ungrain::cuda
