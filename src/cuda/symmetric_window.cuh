// Sums over a square window in which a pair of pixels counts the same for both, each pair found once.
//
// A warp owns 32 * Columns columns and goes down the image in steps of Rows rows. A thread holds its columns'
// next Radius rows, pixels and sums, in registers. They are compared with the step's rows above them, whose
// pixels lie in shared memory: with those up to Radius to the left and right. What the pairs add to the sums
// of the step's rows is added in shared memory, to sums that belong to the warp alone. So a pixel and its
// sums are moved once for Columns * Radius pairs, and shared memory holds two steps' rows only. A step's rows
// are finished when they have been compared: to their sums are added those that the warps to the left and
// right have for their neighbours' columns.
//
// A pixel's sums have one order: the steps from the top, in each the columns from the left, in each the rows
// from the top. Blocks start at multiples of their width and of Rows from the image's origin, and first take
// the rows above into account, without adding to those rows' sums. So a pixel has the same bits in every
// region of the image.
//
// Bound by instruction issue. A pair of gray pixels takes 7 instructions, one of RGB 15, and what else there
// is adds a sixth. RGB issues in 83 % of the cycles; reading registers is the next bound: two a cycle from
// each half of them, so that instructions which share operands cost less one after the other.
#pragma once

#include <algorithm>

#include "cuda/async_copy.cuh"
#include "cuda/launch.cuh"
#include "cuda/load.cuh"
#include "cuda/window.cuh"

namespace ungrain::cuda {

inline constexpr int most_symmetric_window_radius = 15;

// Sums: what is summed, and its parameters. It has
//   channels, kinds: constants, floats of a pixel and of its sums;
//   begin(pixel, sums): the pixel as a pair with itself;
//   add_pair<Both>(own, other, exponent, own_sums, other_sums): a pair of pixels, whose distance in space has
//     this exponent of 2; without Both to own_sums only;
//   store(to, plane_stride, sums), or store(to, plane_stride, sums, pixel): the result of a pixel, of further
//     channels in further planes;
//   bounded: a constant, whether pixels are kept below most_scaled.
// All take scaled pixels: WindowWeights::scale.
template <class Sums>
struct SymmetricCall {
  BorderedPlane in;  // from the first channel on
  Planes out;        // likewise
  // So many blocks from the top have tall_rows, the others short_rows: multiples of a step's.
  int tall_blocks;
  int tall_rows;
  int short_rows;
  float scale;
  float outside;  // stands for a pixel beyond the border, unscaled
  float space[most_symmetric_window_radius + 1];
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

template <class Sums, int Radius, int Columns, int Rows, int Warps>
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
        sums_(reinterpret_cast<PixelSums*>(pixels_ + 2 * step_pixels) + thread_ / lanes * warp_sums),
        fetched_(reinterpret_cast<float*>(pixels_ + 2 * step_pixels) +
                 2 * step_sums * (sizeof(PixelSums) / sizeof(float)) + thread_) {
    const Rect& area = call.out.rect;
    left_ = (area.x0 / own_columns + static_cast<int>(blockIdx.x)) * own_columns - Radius;
    const int block = static_cast<int>(blockIdx.y);
    const bool tall = block < call.tall_blocks;
    top_ = area.y0 / Rows * Rows + min(block, call.tall_blocks) * call.tall_rows +
           max(block - call.tall_blocks, 0) * call.short_rows;
    bottom_ = min(top_ + (tall ? call.tall_rows : call.short_rows), area.y1);
#pragma unroll
    for (int i = 0; i < Columns; ++i) {
      const int column = thread_ * Columns + i;
      const int x = left_ + column;
      own_found_[i] = find_column(column);
      const bool finishes = column >= Radius && column < columns - Radius && x >= area.x0 && x < area.x1;
      flags_ |= finishes ? 1U << i : 0U;
    }
    margin_found_ = thread_ < margin_pixels ? find_column(margin_column()) : no_pixel;
    if (lane_ < beyond && thread_ >= lanes) flags_ |= takes_from_left;
    if (lane_ >= lanes - beyond && thread_ < threads - lanes) flags_ |= takes_from_right;
  }

  static constexpr std::size_t shared_bytes() {
    return sizeof(float) * exponent_floats + sizeof(Pixel) * 2 * step_pixels +
           sizeof(PixelSums) * 2 * step_sums +
           sizeof(float) * (Columns * Rows + 1) * Sums::channels * threads;
  }

  __device__ void filter() {
    for (int i = thread_; i < exponent_floats; i += threads) {
      const int dy = min(i % exponent_pitch, Radius);  // the rest pads
      exponents_[i] = call_.space[i / exponent_pitch] + call_.space[dy];
    }
    // Above the block's rows: these are replaced before they would gather anything.
    const int first = top_ - above;
#pragma unroll
    for (int row = 0; row < Radius; ++row) load_row(first + row, below_[row]);
    fetch(first);
    for (int rows = above; rows > 0; rows -= Rows) {
      Row own[Rows];
      begin_step(top_ - rows, own);
      compare_rows_above<above>(rows, own);
    }
    for (int y = top_; y < bottom_; y += Rows) compare_rows(y);
    __syncthreads();
    finish(bottom_ - 1 - (bottom_ - 1 - top_) % Rows);
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
  static constexpr int step_pixels = Rows * row_pixels;
  static constexpr int sum_pitch = lanes + 2 * beyond;
  static constexpr int row_sums = Columns * sum_pitch;  // of a warp
  static constexpr int warp_sums = Rows * row_sums;
  static constexpr int step_sums = Warps * warp_sums;
  static constexpr int exponent_pitch = (Radius + 1 + 3) / 4 * 4;
  static constexpr int exponent_floats = (Radius + 1) * exponent_pitch;
  static constexpr int above = (Radius + Rows - 1) / Rows * Rows;  // rows that a block begins with
  static constexpr int margin_pixels = 2 * Radius * Rows;          // of a step, beyond the block's columns
  static_assert(margin_pixels <= threads && Rows <= Radius);

  static constexpr int margin_slot = Columns * Rows;
  static constexpr unsigned takes_from_left = 1U << Columns;
  static constexpr unsigned takes_from_right = 2U << Columns;

  // A thread's pixels of a row and their sums.
  struct Row {
    float pixels[Columns][Sums::channels];
    float sums[Columns][Sums::kinds];
  };

  // ---- rows from global memory

  // The first threads have one of the pixels beyond the block's columns.
  __device__ int margin_row() const { return thread_ / (2 * Radius); }
  __device__ int margin_column() const {
    const int number = thread_ % (2 * Radius);
    return number < Radius ? number - Radius : columns + number - Radius;
  }

  // The column of what is held that stands for the block's; no_pixel where none does.
  __device__ int find_column(int column) const {
    const int found = call_.in.column_for(left_ + column);
    return found == no_pixel ? no_pixel : found - call_.in.planes.rect.x0;
  }

  // The row that stands for row y; null where none does.
  __device__ const float* find_row(int y) const {
    const int found = call_.in.row_for(y);
    return found == no_pixel ? nullptr : call_.in.planes.row(0, found);
  }

  __device__ float scaled(float pixel) const {
    const float value = pixel * call_.scale;
    return Sums::bounded ? fminf(fmaxf(value, -most_scaled), most_scaled) : value;
  }

  __device__ void load_row(int y, Row& row) const {
    const float* const from = find_row(y);
#pragma unroll
    for (int i = 0; i < Columns; ++i) {
      const bool there = from != nullptr && own_found_[i] != no_pixel;
#pragma unroll
      for (int c = 0; c < Sums::channels; ++c) {
        const float pixel = there ? from[c * call_.in.planes.plane_stride + own_found_[i]] : call_.outside;
        row.pixels[i][c] = scaled(pixel);
      }
      Sums::begin(row.pixels[i], row.sums[i]);
    }
  }

  // Begins to copy a pixel into shared memory, where only this thread reads it. Registers would be held
  // through the comparisons of a step.
  __device__ void fetch_pixel(bool row_exists, const float* row, int column, int slot) {
    const bool there = row_exists && column != no_pixel;
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

  // For the step of the rows from y on: their pixels beyond the block, and the last rows that they are
  // compared with.
  __device__ void fetch(int y) {
    const ConstPlanes& planes = call_.in.planes;
    // All rows but those at the image's ends stand for themselves: the border rule costs more than the
    // copies.
    const int bottom = min(planes.rect.y1, call_.in.image.height);
    if (y >= max(planes.rect.y0, 0) && y + Radius + Rows <= bottom) {
      const float* row = planes.row(0, y + Radius);
#pragma unroll
      for (int k = 0; k < Rows; ++k, row += planes.row_stride) {
#pragma unroll
        for (int i = 0; i < Columns; ++i) fetch_pixel(true, row, own_found_[i], k * Columns + i);
      }
      if (thread_ < margin_pixels) {
        fetch_pixel(true, planes.row(0, y + margin_row()), margin_found_, margin_slot);
      }
      return;
    }
#pragma unroll
    for (int k = 0; k < Rows; ++k) {
      const float* const row = find_row(y + Radius + k);
#pragma unroll
      for (int i = 0; i < Columns; ++i) fetch_pixel(row != nullptr, row, own_found_[i], k * Columns + i);
    }
    if (thread_ < margin_pixels) {
      const float* const row = find_row(y + margin_row());
      fetch_pixel(row != nullptr, row, margin_found_, margin_slot);
    }
  }

  __device__ float fetched(int slot, int c) const {
    return scaled(fetched_[(slot * Sums::channels + c) * threads]);
  }

  // ---- a step: Rows rows

  // The rows from y on leave the rows below, and are there for all threads to compare theirs with.
  __device__ void begin_step(int y, Row (&own)[Rows]) {
    wait_for_all_copies();
#pragma unroll
    for (int k = 0; k < Rows; ++k) own[k] = below_[k];
#pragma unroll
    for (int row = 0; row + Rows < Radius; ++row) below_[row] = below_[row + Rows];
#pragma unroll
    for (int k = 0; k < Rows; ++k) {
      Row& row = below_[Radius - Rows + k];
#pragma unroll
      for (int i = 0; i < Columns; ++i) {
#pragma unroll
        for (int c = 0; c < Sums::channels; ++c) row.pixels[i][c] = fetched(k * Columns + i, c);
        Sums::begin(row.pixels[i], row.sums[i]);
      }
    }
    keep_pixels(own, of_step(pixels_, step_pixels, y));
    fetch(y + Rows);
    __syncthreads();  // no thread reads the sums of two steps before any more
  }

  __device__ void keep_pixels(const Row (&own)[Rows], Pixel* to) const {
#pragma unroll
    for (int k = 0; k < Rows; ++k) {
#pragma unroll
      for (int i = 0; i < Columns; ++i) {
        Pixel pixel = {};
#pragma unroll
        for (int c = 0; c < Sums::channels; ++c) pixel.floats[c] = own[k].pixels[i][c];
        to[k * row_pixels + i * pixel_pitch + beyond + thread_] = pixel;
      }
    }
    if (thread_ >= margin_pixels) return;
    Pixel pixel = {};
#pragma unroll
    for (int c = 0; c < Sums::channels; ++c) pixel.floats[c] = fetched(margin_slot, c);
    const int column = margin_column() + beyond * Columns;
    to[margin_row() * row_pixels + column % Columns * pixel_pitch + column / Columns] = pixel;
  }

  // Rows above the block's, the first of them so far: they are compared with those of the block that are near
  // enough, and gather nothing themselves.
  template <int Above>
  __device__ void compare_rows_above(int rows, Row (&own)[Rows]) {
    if (rows == Above) {
      compare_groups<Above - Rows, false>(top_ - Above, own);
    } else if constexpr (Above > Rows) {
      compare_rows_above<Above - Rows>(rows, own);
    }
  }

  __device__ void compare_rows(int y) {
    Row own[Rows];
    begin_step(y, own);
    if (y > top_) finish(y - Rows);
    PixelSums* const sums = of_step(sums_, step_sums, y);
#pragma unroll
    for (int i = 0; i < warp_sums; i += lanes) {
      if (i + lanes <= warp_sums || lane_ < warp_sums - i) sums[i + lane_] = {};
    }
    __syncwarp();
    compare_groups<0, true>(y, own);
#pragma unroll
    for (int k = 0; k < Rows; ++k) {
#pragma unroll
      for (int i = 0; i < Columns; ++i) {
        PixelSums& all = sums[k * row_sums + i * sum_pitch + beyond + lane_];
        PixelSums total = all;
#pragma unroll
        for (int kind = 0; kind < Sums::kinds; ++kind) total.floats[kind] += own[k].sums[i][kind];
        all = total;
      }
    }
  }

  // Those of two steps are held.
  template <class Word>
  __device__ static Word* of_step(Word* both, int words, int y) {
    return both + (y / Rows & 1) * words;
  }

  // ---- the columns of the window: as many at a time as a thread has

  // Of the window's groups of columns.
  enum class Part { first, left, middle, right, last };

  // What is compared, at the first column of a group.
  struct Place {
    const Pixel* pixels;
    PixelSums* sums;
    const float* exponents;

    __device__ void advance(int more_exponents) {
      ++pixels;
      ++sums;
      exponents += more_exponents;
    }
  };

  // Compares the rows from y on with each other and with those below, from below_[First] on. Both: they
  // gather sums themselves.
  template <int First, bool Both>
  __device__ void compare_groups(int y, Row (&own)[Rows]) {
    // A thread's only column: the window begins and ends with whole groups.
    constexpr int whole = Columns == 1 ? beyond : beyond - 1;
    constexpr int group_exponents = Columns * exponent_pitch;
    Place place{of_step(pixels_, step_pixels, y) + thread_, of_step(sums_, step_sums, y) + lane_,
                exponents_ + beyond * group_exponents};
    float exponents[Columns][exponent_pitch];
    if constexpr (whole < beyond) {
      compare_group<Part::first, First, Both>(place, own, exponents);
      place.advance(-group_exponents);
    }
#pragma unroll 1
    for (int group = -whole; group < 0; ++group) {
      compare_group<Part::left, First, Both>(place, own, exponents);
      place.advance(-group_exponents);
    }
    compare_group<Part::middle, First, Both>(place, own, exponents);
    place.advance(group_exponents);
#pragma unroll 1
    for (int group = 1; group <= whole; ++group) {
      compare_group<Part::right, First, Both>(place, own, exponents);
      place.advance(group_exponents);
    }
    if constexpr (whole < beyond) compare_group<Part::last, First, Both>(place, own, exponents);
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
  __device__ void compare_group(const Place& place, Row (&own)[Rows],
                                float (&exponents)[Columns][exponent_pitch]) {
    constexpr int further = Which == Part::first || Which == Part::left ? -exponent_pitch : exponent_pitch;
#pragma unroll
    for (int other = 0; other < Columns; ++other) {
      if (in_window<Which>(other, 0)) load_exponents(place.exponents + other * further, exponents[other]);
      if (!in_window<Which>(other, 0) && !in_window<Which>(other, Columns - 1)) continue;
      float pixel[Rows][Sums::channels];
      float of_other[Rows][Sums::kinds];
      PixelSums* const others = place.sums + other * sum_pitch;
#pragma unroll
      for (int k = 0; k < Rows; ++k) {
        read(place.pixels[k * row_pixels + other * pixel_pitch], pixel[k]);
        if constexpr (Both) read(others[k * row_sums], of_other[k]);
      }
#pragma unroll
      for (int i = 0; i < Columns; ++i) {
        if (!in_window<Which>(other, i)) continue;
        const float(&of_distance)[exponent_pitch] = exponents[(other - i + Columns) % Columns];
#pragma unroll
        for (int k = 0; k < Rows; ++k) {
          const auto add = [&](Row& row, int dy) {
            Sums::template add_pair<Both>(row.pixels[i], pixel[k], of_distance[dy], row.sums[i], of_other[k]);
          };
          if constexpr (Both) {
            if (is_right<Which>(other, i)) add(own[k], 0);
#pragma unroll
            for (int lower = k + 1; lower < Rows; ++lower) add(own[lower], lower - k);
          }
#pragma unroll
          for (int row = First; row < Radius - Rows + k + 1; ++row) add(below_[row], Rows - k + row);
        }
      }
      if constexpr (Both) {
#pragma unroll
        for (int k = 0; k < Rows; ++k) write(of_other[k], others[k * row_sums]);
      }
    }
    if constexpr (Both) __syncwarp();  // another lane adds to these sums next
  }

  template <int Count>
  __device__ static void read(const SharedFloats<Count>& from, float (&to)[Count]) {
    const SharedFloats<Count> word = from;
#pragma unroll
    for (int i = 0; i < Count; ++i) to[i] = word.floats[i];
  }
  template <int Count>
  __device__ static void write(const float (&from)[Count], SharedFloats<Count>& to) {
    SharedFloats<Count> word = {};
#pragma unroll
    for (int i = 0; i < Count; ++i) word.floats[i] = from[i];
    to = word;
  }

  __device__ static void load_exponents(const float* from, float (&to)[exponent_pitch]) {
#pragma unroll
    for (int i = 0; i < exponent_pitch / 4; ++i) {
      const float4 four = reinterpret_cast<const float4*>(from)[i];
      to[4 * i] = four.x;
      to[4 * i + 1] = four.y;
      to[4 * i + 2] = four.z;
      to[4 * i + 3] = four.w;
    }
  }

  // ---- results

  // Of the rows from y on.
  __device__ void finish(int y) {
    const PixelSums* const own = of_step(sums_, step_sums, y) + beyond + lane_;
    const Pixel* const pixels = of_step(pixels_, step_pixels, y) + beyond + thread_;
    const Planes& out = call_.out;
    float* to = out.row(0, y) + (left_ + thread_ * Columns - out.rect.x0);
#pragma unroll
    for (int k = 0; k < Rows; ++k, to += out.row_stride) {
      if (Rows > 1 && (y + k < out.rect.y0 || y + k >= bottom_)) continue;
#pragma unroll
      for (int i = 0; i < Columns; ++i) {
        if ((flags_ & 1U << i) == 0) continue;
        const PixelSums* const at = own + k * row_sums + i * sum_pitch;
        PixelSums total = *at;
        // The sums of the warps at either side, beyond their own columns.
        if ((flags_ & takes_from_left) != 0) add(total, at[lanes - warp_sums]);
        if ((flags_ & takes_from_right) != 0) add(total, at[warp_sums - lanes]);
        float sums[Sums::kinds];
        float pixel[Sums::channels];
        read(total, sums);
        read(pixels[k * row_pixels + i * pixel_pitch], pixel);
        if constexpr (requires { call_.sums.store(to, out.plane_stride, sums, pixel); }) {
          call_.sums.store(to + i, out.plane_stride, sums, pixel);
        } else {
          call_.sums.store(to + i, out.plane_stride, sums);
        }
      }
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
  Pixel* pixels_;     // [step, even or odd][row][remainder][column]
  PixelSums* sums_;   // of this warp, [step, even or odd][warp][row][remainder][column]
  float* fetched_;    // of this thread: [row and column, or margin][channel][thread]
  int own_found_[Columns];
  int margin_found_;
  unsigned flags_ = 0;  // of this thread: bit i: it finishes column i; takes_from_left, takes_from_right
  Row below_[Radius];
};

template <class Sums, int Radius, int Columns, int Rows, int Warps, int Resident>
__global__ void __launch_bounds__(SymmetricWindow<Sums, Radius, Columns, Rows, Warps>::threads, Resident)
    symmetric_window_kernel(const __grid_constant__ SymmetricCall<Sums> call) {
  extern __shared__ float4 shared[];
  SymmetricWindow<Sums, Radius, Columns, Rows, Warps>(call, shared).filter();
}

struct SymmetricShape {
  int columns;   // of a thread
  int rows;      // of a step
  int warps;     // of a block
  int resident;  // blocks that a multiprocessor holds at least, which bounds the registers
  int rounds;    // how many times as many blocks as the GPU holds at once
  // Of the rows, for the first round's blocks; 0: all blocks have as many. Short blocks at the end keep the
  // GPU busy to the end, and few blocks take few rows above theirs into account.
  int first_percent = 0;
};

template <class Sums, int Radius, SymmetricShape Shape>
void launch_symmetric(SymmetricCall<Sums> call, Stream stream) {
  static_assert(Shape.first_percent == 0 || Shape.rounds > 1);
  using Block = SymmetricWindow<Sums, Radius, Shape.columns, Shape.rows, Shape.warps>;
  const auto kernel =
      symmetric_window_kernel<Sums, Radius, Shape.columns, Shape.rows, Shape.warps, Shape.resident>;
  static const int held = [=] {
    allow_shared(kernel, Block::shared_bytes());
    int device = 0;
    int multiprocessors = 0;
    int each = 0;
    check(cudaGetDevice(&device), "asking for the GPU");
    check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
          "asking for the GPU");
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, Block::threads, Block::shared_bytes()),
          "asking for the occupancy");
    return multiprocessors * std::max(each, 1);
  }();
  const Rect& area = call.out.rect;
  const int across = (area.x1 - 1) / Block::own_columns - area.x0 / Block::own_columns + 1;
  const int steps = (area.y1 - 1) / Shape.rows - area.y0 / Shape.rows + 1;
  // A block takes the rows above its own into account, which costs as much as a few of its own.
  constexpr int least_steps = blocks_for(2 * Radius, Shape.rows);
  const int most_down = std::max(1, steps / least_steps);
  const long long possible_rounds = static_cast<long long>(most_down) * across / held;
  const int rounds = static_cast<int>(std::clamp<long long>(possible_rounds, 1, Shape.rounds));
  const int wanted_down = std::clamp(rounds * held / across, 1, most_down);
  if (Shape.first_percent > 0 && rounds > 1 && held >= across) {
    call.tall_blocks = held / across;
    const long long share = static_cast<long long>(steps) * Shape.first_percent / 100;
    call.tall_rows = static_cast<int>(share / call.tall_blocks) * Shape.rows;
  }
  const int steps_left = steps - call.tall_blocks * (call.tall_rows / Shape.rows);
  const int short_steps = blocks_for(steps_left, wanted_down - call.tall_blocks);
  call.short_rows = short_steps * Shape.rows;
  const int down = call.tall_blocks + blocks_for(steps_left, short_steps);
  launch(kernel, dim3(static_cast<unsigned>(across), static_cast<unsigned>(down)), dim3(Block::threads),
         Block::shared_bytes(), stream, call);
}

// The planes from the first channel on.
template <class Sums>
SymmetricCall<Sums> symmetric_call(const WindowWeights& weights, BorderedPlane in, Planes out,
                                   int first_channel, const Sums& sums) {
  in.planes.data += first_channel * in.planes.plane_stride;
  out.data += first_channel * out.plane_stride;
  SymmetricCall<Sums> call{.in = in,
                           .out = out,
                           .tall_blocks = 0,
                           .tall_rows = 0,
                           .short_rows = 0,
                           .scale = weights.scale,
                           .outside = in.border == Border::constant ? 0 : weights.nothing,
                           .space = {},
                           .sums = sums};
  std::copy_n(weights.space, weights.reach_x + 1, call.space);
  return call;
}

}  // namespace ungrain::cuda
