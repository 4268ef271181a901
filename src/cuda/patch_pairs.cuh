// The search for similar patches in one image, each pair of pixels once: its weight serves both.
//
// As in patch_search.cuh a thread owns Columns columns and Rows rows, and its pixels and those that they are
// compared with stay in registers. Here it visits only half of the window, the shifts downwards and to the
// right. The sums of the thread's own pixels stay in registers throughout. Those of the compared pixels come
// from shared memory and return there together with the pixels: a column stays in registers for as many
// shifts as the thread has columns, so that only one in so many weights is moved.
//
// Warps own rows one below the other and visit the same row of the search at a time. So no two of them add to
// the same pixel, and sums have one order. Sums reach beyond the block's own pixels, by the search's reach to
// the left, to the right and below: the blocks' sums are joined by another kernel (patch_pairs.cu).
//
// The outermost columns of a warp cannot be compared, because their patches lie partly in no lane. There the
// thread's own pixel is far from all others, so that every patch with it has weight 0. A patch of one pixel
// has none of that: it makes the search a bilateral filter.
//
// Bound by instruction issue: for flat 7 x 7 patches of one channel about 8 a shift and pixel.
#pragma once

#include "cuda/patch_sums.cuh"
#include "cuda/patch_tile.cuh"

namespace ungrain::cuda {

// Which rows of blocks are split into groups of the search's rows, each of them searched by a block of its
// own.
struct PairSplit {
  int first_row = 0;  // of blocks, counted from the image's origin: this one and those below it
  int groups = 1;
};

// The blocks whose own pixels lie within the search's reach of an area. Their raster begins so far outside
// the image that pixels around it, of which the border rule makes partners of the image's, are some block's
// own.
struct PairRaster {
  int first_column;
  int first_row;
  int across;
  int down;
  int whole;  // so many blocks are not split, the first ones
  int groups;

  __host__ __device__ PairRaster(const Rect& area, int reach, int own_columns, int own_rows,
                                 const PairSplit& split)
      : first_column(area.x0 / own_columns),
        first_row(area.y0 / own_rows),
        across((area.x1 - 1 + 2 * reach) / own_columns - first_column + 1),
        down((area.y1 - 1 + reach) / own_rows - first_row + 1),
        groups(split.groups) {
    const int rows = split.first_row - first_row;
    whole = across * (rows < 0 ? 0 : rows < down ? rows : down);
  }
  __host__ __device__ int blocks() const { return across * down; }
  __host__ __device__ int groups_of(int block) const { return block < whole ? 1 : groups; }
  // The first of the sums that a block's groups leave.
  __host__ __device__ int sums_of(int block) const {
    return block < whole ? block : whole + (block - whole) * groups;
  }
  __host__ __device__ int sums() const { return sums_of(blocks()); }

  // What block `number` of a launch searches. Whole blocks come first, then the first groups of all
  // others, then their second groups.
  struct Place {
    int block;
    int group;
    int groups;
    int sums;
  };
  __device__ Place place(int number) const {
    if (number < whole) return {number, 0, 1, number};
    const int split = blocks() - whole;
    const int group = (number - whole) / split;
    const int block = number - group * split;
    return {block, group, groups, sums_of(block) + group};
  }
};

// The sums that a block leaves behind, one group after the other: [weights, each channel's values,
// largest][row][column].
struct PairSumsLayout {
  int columns;
  int rows;
  int kinds;

  __host__ __device__ PairSumsLayout(int own_columns, int own_rows, int reach, int kinds_of_sums)
      : columns(own_columns + 2 * reach), rows(own_rows + reach), kinds(kinds_of_sums) {}
  __host__ __device__ std::ptrdiff_t plane() const { return static_cast<std::ptrdiff_t>(columns) * rows; }
  __host__ __device__ std::ptrdiff_t each() const { return kinds * plane(); }
};

// The sums of a pixel in shared memory, moved as one word of 64 or 128 bits.
template <int Channels>
struct alignas(Channels == 1 ? 8 : 16) SharedSums {
  float weights;
  float values[Channels];
};

template <int Channels, int Patch, bool Flat, SearchWeights Weights, int Columns, int Rows>
class PairSearchBlock {
 public:
  using Pixel = SharedPixel<Channels>;
  using PatchSum = PatchSums<Channels, Patch, Flat, Weights != SearchWeights::plain, Columns, Rows>;
  using Tile = PatchTile<Columns>;
  static constexpr int warps = 4;
  static constexpr int threads = 32 * warps;
  static constexpr int around = Patch / 2;
  static constexpr int patch_rows = PatchSum::patch_rows;
  static constexpr int covered = 32 * Columns;
  static constexpr int edge = Patch == 1 ? 0 : around + 1;  // columns at either end that are not compared
  static constexpr int own_columns = covered - 2 * edge;
  static constexpr int own_rows = warps * Rows;
  static constexpr bool has_largest = Weights == SearchWeights::general;
  static constexpr int kinds = 1 + Channels + (has_largest ? 1 : 0);

  static std::size_t shared_bytes(int reach) {
    const std::size_t sums = sizeof(SharedSums<Channels>) + (has_largest ? sizeof(float) : 0);
    return sizeof(Pixel) * pixel_tile(reach).size() + sums * sum_tile(reach).size() + alignof(float4);
  }

  __device__ PairSearchBlock(const PatchSearchCall& call, float4* shared)
      : call_(call),
        lane_(static_cast<int>(threadIdx.x) % 32),
        warp_(static_cast<int>(threadIdx.x) / 32),
        pixel_tile_(pixel_tile(call.reach)),
        sum_tile_(sum_tile(call.reach)),
        shared_sums_(reinterpret_cast<SharedSums<Channels>*>(shared)),
        pixels_(reinterpret_cast<Pixel*>(shared_sums_ + (sum_tile_.size() + 1) / 2 * 2)),
        shared_largest_(reinterpret_cast<float*>(pixels_ + pixel_tile_.size())) {}

  __device__ void filter() {
    const PairRaster raster(call_.out.rect, call_.reach, own_columns, own_rows,
                            {call_.first_split, call_.groups});
    const PairRaster::Place place = raster.place(static_cast<int>(blockIdx.x));
    const int left = (raster.first_column + place.block % raster.across) * own_columns - call_.reach - edge;
    const int top = (raster.first_row + place.block / raster.across) * own_rows - call_.reach - around;
    load_tile<warps>(call_, call_.in, left - call_.reach, top, pixel_tile_.columns, pixel_tile_.rows,
                     pixel_tile_, pixels_);
    clear();
    __syncthreads();
    load_own();
    const int rows = call_.reach + 1;
    const int end = (place.group + 1) * rows / place.groups;
    for (int dy = place.group * rows / place.groups; dy < end; ++dy) {
      search_row(dy);
      __syncthreads();
    }
    add_own();
    __syncthreads();
    const PairSumsLayout layout(own_columns, own_rows, call_.reach, kinds);
    keep_sums(layout, call_.sums + place.sums * layout.each());
  }

 private:
  __host__ __device__ static Tile pixel_tile(int reach) {
    return {covered + 2 * reach, own_rows + Patch - 1 + reach};
  }
  __host__ __device__ static Tile sum_tile(int reach) { return {covered + 2 * reach, own_rows + reach}; }

  __device__ void clear() {
    for (int i = static_cast<int>(threadIdx.x); i < static_cast<int>(sum_tile_.size()); i += threads) {
      shared_sums_[i] = {};
      if constexpr (has_largest) shared_largest_[i] = 0;
    }
#pragma unroll
    for (int k = 0; k < Rows; ++k) {
#pragma unroll
      for (int i = 0; i < Columns; ++i) {
        weights_[k][i] = 0;
        largest_[k][i] = 0;
#pragma unroll
        for (int c = 0; c < Channels; ++c) values_[c][k][i] = 0;
      }
    }
  }

  __device__ void load_own() {
    // Further from any pixel than scaled() allows; its square is finite.
    constexpr float far = 3 * most_scaled;
#pragma unroll
    for (int i = 0; i < Columns; ++i) {
      const int column = lane_ * Columns + i;
      const bool outermost = edge > 0 && (column == 0 || column == covered - 1);
#pragma unroll
      for (int row = 0; row < patch_rows; ++row) {
        const Pixel pixel = pixels_[pixel_tile_.at(column + call_.reach, warp_ * Rows + row)];
#pragma unroll
        for (int c = 0; c < Channels; ++c) {
          own_[c][row][i] = outermost ? far : pixel.channels[c];
          keep_in_register(own_[c][row][i]);
        }
      }
    }
  }

  // The compiler would choose between the pixel and `far` again at every comparison: in RGB 13 % of the
  // search.
  __device__ static void keep_in_register(float& value) { asm volatile("" : "+f"(value)); }

  // ---- a column of compared pixels: `offset` to the right of the thread's first one at the leftmost shift

  __device__ int sums_at(int dy, int offset) const {
    return offset % Columns * sum_tile_.remainder + (lane_ + offset / Columns) * sum_tile_.pitch +
           warp_ * Rows + dy;
  }

  __device__ void take_column(int dy, int offset, int slot) {
    const Pixel* const from = pixels_ + offset % Columns * pixel_tile_.remainder +
                              (lane_ + offset / Columns) * pixel_tile_.pitch + warp_ * Rows + dy;
#pragma unroll
    for (int row = 0; row < patch_rows; ++row) {
      const Pixel pixel = from[row];
#pragma unroll
      for (int c = 0; c < Channels; ++c) other_[c][row][slot] = pixel.channels[c];
    }
    const int at = sums_at(dy, offset);
#pragma unroll
    for (int k = 0; k < Rows; ++k) {
      const SharedSums<Channels> sums = shared_sums_[at + k];
      other_weights_[k][slot] = sums.weights;
#pragma unroll
      for (int c = 0; c < Channels; ++c) other_values_[c][k][slot] = sums.values[c];
      if constexpr (has_largest) other_largest_[k][slot] = shared_largest_[at + k];
    }
  }

  __device__ void return_column(int dy, int offset, int slot) {
    const int at = sums_at(dy, offset);
#pragma unroll
    for (int k = 0; k < Rows; ++k) {
      SharedSums<Channels> sums;
      sums.weights = other_weights_[k][slot];
#pragma unroll
      for (int c = 0; c < Channels; ++c) sums.values[c] = other_values_[c][k][slot];
      shared_sums_[at + k] = sums;
      if constexpr (has_largest) shared_largest_[at + k] = other_largest_[k][slot];
    }
  }

  // ---- the search

  __device__ void search_row(int dy) {
    int shift = dy == 0 ? call_.reach + 1 : 0;
    if (shift > 2 * call_.reach) return;
#pragma unroll
    for (int i = 0; i < Columns - 1; ++i) take_column(dy, shift + i, i);
    while (shift <= 2 * call_.reach) turn<0>(dy, shift);
  }

  // One column of the search after the other: the compared pixels stay in their registers, whose roles rotate
  // and repeat after Columns columns.
  template <int Turn>
  __device__ void turn(int dy, int& shift) {
    take_column(dy, shift + Columns - 1, slot_of<Turn>(Columns - 1));
    compare<Turn>(shift - call_.reach, dy);
    return_column(dy, shift, Turn);
    ++shift;
    if (shift > 2 * call_.reach) {
#pragma unroll
      for (int i = 1; i < Columns; ++i) return_column(dy, shift - 1 + i, slot_of<Turn>(i));
      return;
    }
    __syncwarp();  // the neighbouring lane takes this column next
    if constexpr (Turn + 1 < Columns) turn<Turn + 1>(dy, shift);
  }

  template <int Turn>
  __device__ static constexpr int slot_of(int column) {
    return (column + Turn) % Columns;
  }

  template <int Turn>
  __device__ void compare(int dx, int dy) {
    float along_columns[Rows][Columns];
#pragma unroll
    for (int i = 0; i < Columns; ++i) {
      float differences[Channels][patch_rows];
#pragma unroll
      for (int row = 0; row < patch_rows; ++row) {
#pragma unroll
        for (int c = 0; c < Channels; ++c) {
          differences[c][row] = own_[c][row][i] - other_[c][row][slot_of<Turn>(i)];
        }
      }
      PatchSum::sum_column(differences, call_.patch, i, along_columns);
    }
    float constant = 0;
    if constexpr (Weights == SearchWeights::general) constant = -call_.noise;
    if constexpr (Weights == SearchWeights::bilateral || Weights == SearchWeights::spatial) {
      constant = static_cast<float>(dx * dx + dy * dy) * call_.space_ratio;
    }
#pragma unroll
    for (int k = 0; k < Rows; ++k) {
      float exponents[Columns];
      PatchSum::sum_row(along_columns[k], call_.patch, constant, exponents);
#pragma unroll
      for (int i = 0; i < Columns; ++i) add(k, i, slot_of<Turn>(i), exponents[i]);
    }
  }

  __device__ void add(int k, int i, int slot, float exponent) {
    if constexpr (Weights == SearchWeights::general) exponent = fmaxf(exponent, 0.0F);
    if constexpr (Weights == SearchWeights::bilateral) {
#pragma unroll
      for (int c = 0; c < Channels; ++c) {
        const float difference = own_[c][k + around][i] - other_[c][k + around][slot];
        exponent = fmaf(difference * call_.pixel_ratio, difference, exponent);
      }
    }
    const float weight = exp2_fast(-exponent);
    weights_[k][i] += weight;
    other_weights_[k][slot] += weight;
    if constexpr (has_largest) {
      largest_[k][i] = fmaxf(largest_[k][i], weight);
      other_largest_[k][slot] = fmaxf(other_largest_[k][slot], weight);
    }
#pragma unroll
    for (int c = 0; c < Channels; ++c) {
      values_[c][k][i] = fmaf(weight, other_[c][k + around][slot], values_[c][k][i]);
      other_values_[c][k][slot] = fmaf(weight, own_[c][k + around][i], other_values_[c][k][slot]);
    }
  }

  // ---- results

  __device__ void add_own() {
#pragma unroll
    for (int i = 0; i < Columns; ++i) {
#pragma unroll
      for (int k = 0; k < Rows; ++k) {
        const int at = sum_tile_.at(lane_ * Columns + i + call_.reach, warp_ * Rows + k);
        SharedSums<Channels> sums = shared_sums_[at];
        sums.weights += weights_[k][i];
#pragma unroll
        for (int c = 0; c < Channels; ++c) sums.values[c] += values_[c][k][i];
        shared_sums_[at] = sums;
        if constexpr (has_largest) shared_largest_[at] = fmaxf(shared_largest_[at], largest_[k][i]);
      }
    }
  }

  __device__ void keep_sums(const PairSumsLayout& layout, float* to) const {
    for (int row = warp_; row < layout.rows; row += warps) {
      for (int column = lane_; column < layout.columns; column += 32) {
        const int from = sum_tile_.at(column + edge, row);
        float* const at = to + row * layout.columns + column;
        const SharedSums<Channels> sums = shared_sums_[from];
        at[0] = sums.weights;
#pragma unroll
        for (int c = 0; c < Channels; ++c) at[(1 + c) * layout.plane()] = sums.values[c];
        if constexpr (has_largest) at[(1 + Channels) * layout.plane()] = shared_largest_[from];
      }
    }
  }

  const PatchSearchCall& call_;
  int lane_;
  int warp_;
  Tile pixel_tile_;
  Tile sum_tile_;
  SharedSums<Channels>* shared_sums_;
  Pixel* pixels_;
  float* shared_largest_;
  // Every index is a compile-time constant: all of it lies in registers.
  float own_[Channels][patch_rows][Columns];
  float weights_[Rows][Columns];
  float largest_[Rows][Columns];
  float values_[Channels][Rows][Columns];
  float other_[Channels][patch_rows][Columns];
  float other_weights_[Rows][Columns];
  float other_largest_[Rows][Columns];
  float other_values_[Channels][Rows][Columns];
};

template <int Channels, int Patch, bool Flat, SearchWeights Weights, int Columns, int Rows>
__global__ void __launch_bounds__(PairSearchBlock<Channels, Patch, Flat, Weights, Columns, Rows>::threads, 2)
    pair_search_kernel(const __grid_constant__ PatchSearchCall call) {
  extern __shared__ float4 shared[];
  PairSearchBlock<Channels, Patch, Flat, Weights, Columns, Rows>(call, shared).filter();
}

// A compiled kernel and its launch parameters.
struct PairSearchKernel {
  void (*kernel)(PatchSearchCall) = nullptr;  // none: not compiled
  std::size_t (*shared_bytes)(int reach) = nullptr;
  int threads = 0;
  int own_columns = 0;  // of a block
  int own_rows = 0;
  int kinds = 0;  // of sums
};

template <int Channels, int Patch, bool Flat, SearchWeights Weights, int Columns, int Rows>
PairSearchKernel compiled_pairs() {
  using Block = PairSearchBlock<Channels, Patch, Flat, Weights, Columns, Rows>;
  return {pair_search_kernel<Channels, Patch, Flat, Weights, Columns, Rows>,
          Block::shared_bytes,
          Block::threads,
          Block::own_columns,
          Block::own_rows,
          Block::kinds};
}

// The compiled kernels, one source for each kind; null where a patch was not compiled.
PairSearchKernel flat_pair_kernel(int channels, int patch, bool plain);
PairSearchKernel gaussian_pair_kernel(int channels, int patch);
PairSearchKernel bilateral_pair_kernel(int channels, int patch);
PairSearchKernel spatial_pair_kernel(int channels);  // patches of one pixel

}  // namespace ungrain::cuda
