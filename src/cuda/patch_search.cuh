// The search for similar patches on a GPU: the kernel that the common patches are compiled for.
//
// A thread owns Columns columns and Rows rows, a warp 32 times as many columns; those at its edges only serve
// their neighbours' patches. The thread's pixels and the rows of their patches stay in registers, as do the
// pixels that they are compared with: the search goes row by row, and within a row column by column, which
// takes one new column of pixels from shared memory each time. For each shift the squared differences are
// summed along columns in registers and along rows between lanes.
//
// Blocks lie on a raster from the image's origin, so that a pixel's sums have one order in every region of
// the image.
//
// Images of a sequence are searched by a block each, whose sums are joined afterwards: a loop over the images
// would take registers, of which there are none left.
//
// Bound by instruction issue: for flat 7 x 7 patches of one channel 11.5 a shift and pixel at least.
#pragma once

#include "cuda/patch_sums.cuh"
#include "cuda/patch_tile.cuh"

namespace ungrain::cuda {

// The blocks of the image's raster that an area touches: first all of them, then the rows of blocks that may
// be split once more for each further group.
struct SearchRaster {
  int first_column;
  int first_row;
  int across;
  int down;
  int first_split_row;  // that has a split block, or the end

  __host__ __device__ SearchRaster(const PatchSearchCall& call, int own_columns, int own_rows) {
    const Rect& area = call.out.rect;
    first_column = area.x0 / own_columns;
    first_row = area.y0 / own_rows;
    across = (area.x1 - 1) / own_columns - first_column + 1;
    down = (area.y1 - 1) / own_rows - first_row + 1;
    const int split_row = call.first_split / call.blocks_across;
    first_split_row = split_row < first_row          ? first_row
                      : split_row > first_row + down ? first_row + down
                                                     : split_row;
  }
  __host__ __device__ int blocks() const { return across * down; }
  __host__ __device__ int split_blocks() const { return across * (first_row + down - first_split_row); }
};

// The work of a block of the grid: a block of the image, and where that is split a group of the search's
// rows.
struct SearchPlace {
  int column;  // of the image's raster
  int row;
  int group;
  bool is_split;
  int split;  // index among the area's blocks that may be split

  __device__ SearchPlace(const PatchSearchCall& call, const SearchRaster& raster, int index) {
    group = 0;
    int first_row = raster.first_row;
    if (index >= raster.blocks()) {
      index -= raster.blocks();
      group = 1 + index / raster.split_blocks();
      index %= raster.split_blocks();
      first_row = raster.first_split_row;
    }
    column = raster.first_column + index % raster.across;
    row = first_row + index / raster.across;
    is_split = row * call.blocks_across + column >= call.first_split;
    split = (row - raster.first_split_row) * raster.across + column - raster.first_column;
  }

  // Offset of the block's sums, its groups one after the other; `kind` is the number of sums of each kind.
  __device__ std::ptrdiff_t sums(const PatchSearchCall& call, int channels, int kind) const {
    return static_cast<std::ptrdiff_t>(split) * call.groups * (channels + 2) * kind;
  }
};

template <int Channels, int Patch, bool Flat, SearchWeights Weights, int Columns, int Rows>
class PatchSearchBlock {
 public:
  using Pixel = SharedPixel<Channels>;
  using Sums = PatchSums<Channels, Patch, Flat, Weights != SearchWeights::plain, Columns, Rows>;
  using Tile = PatchTile<Columns>;
  static constexpr int warps = 4;
  static constexpr int threads = 32 * warps;
  static constexpr int around = Patch / 2;
  static constexpr int patch_rows = Sums::patch_rows;
  static constexpr int covered = 32 * Columns;
  static constexpr int own_columns = covered - 2 * around;
  static constexpr int own_rows = warps * Rows;

  static std::size_t shared_bytes(int reach) { return sizeof(Pixel) * tile_for(reach, 2 * reach + 1).size(); }

  __device__ PatchSearchBlock(const PatchSearchCall& call, Pixel* shared)
      : call_(call),
        shared_(shared),
        lane_(static_cast<int>(threadIdx.x) % 32),
        warp_(static_cast<int>(threadIdx.x) / 32),
        place_(call, SearchRaster(call, own_columns, own_rows), static_cast<int>(blockIdx.x)),
        left_(place_.column * own_columns - around),
        top_(place_.row * own_rows - around),
        first_(splits_rows() ? place_.group * call.side() / call.groups : 0),
        count_((splits_rows() ? (place_.group + 1) * call.side() / call.groups : call.side()) - first_),
        tile_(tile_for(call.reach, count_)) {}

  __device__ void filter() {
    if (!place_.is_split && place_.group > 0) return;
    load_own();
    load_tile<warps>(call_, call_.image(image()), left_ - call_.reach, top_ + first_ - call_.reach,
                     tile_.columns, tile_.rows, tile_, shared_);
    __syncthreads();
    clear();
    for (int row = 0; row < count_; ++row) search_row(row);
    place_.is_split ? keep_sums() : store();
  }

 private:
  __host__ __device__ static Tile tile_for(int reach, int search_rows) {
    return {covered + 2 * reach, own_rows + Patch - 1 + search_rows - 1};
  }
  __device__ bool splits_rows() const { return place_.is_split && call_.images == 1; }
  // That the block searches.
  __device__ int image() const { return call_.images == 1 ? 0 : place_.group; }

  // ---- pixels

  // The thread's own pixels with their patches: directly, or through the tile near the border.
  __device__ void load_own() {
    if (call_.in.holds(left_, top_, left_ + covered, top_ + own_rows + Patch - 1)) {
#pragma unroll
      for (int c = 0; c < Channels; ++c) {
        const float* from =
            &call_.in.planes.at(call_.first_channel + c, left_ + lane_ * Columns, top_ + warp_ * Rows);
#pragma unroll
        for (int row = 0; row < patch_rows; ++row) {
#pragma unroll
          for (int i = 0; i < Columns; ++i) own_[c][row][i] = call_.scaled(from[i]);
          from += call_.in.planes.row_stride;
        }
      }
      return;
    }
    load_tile<warps>(call_, call_.in, left_, top_, covered, own_rows + Patch - 1, tile_, shared_);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < Columns; ++i) {
#pragma unroll
      for (int row = 0; row < patch_rows; ++row) {
        const Pixel pixel = shared_[tile_.at(lane_ * Columns + i, warp_ * Rows + row)];
#pragma unroll
        for (int c = 0; c < Channels; ++c) own_[c][row][i] = pixel.channels[c];
      }
    }
    __syncthreads();
  }

  // The column `offset` to the right of the thread's first one at the search's first column.
  __device__ void load_other(int search_row, int offset, int slot) {
    const Pixel* from = shared_ + offset % Columns * tile_.remainder +
                        (lane_ + offset / Columns) * tile_.pitch + warp_ * Rows + search_row;
#pragma unroll
    for (int row = 0; row < patch_rows; ++row) {
      const Pixel pixel = from[row];
#pragma unroll
      for (int c = 0; c < Channels; ++c) other_[c][row][slot] = pixel.channels[c];
    }
  }

  // ---- the search

  __device__ void search_row(int row) {
#pragma unroll
    for (int i = 0; i < Columns - 1; ++i) load_other(row, i, i);
    int shift = 0;
    while (shift < call_.side()) turn<0>(row, shift);
  }

  // One column of the search after the other: the compared pixels stay in their registers, whose roles rotate
  // and repeat after Columns columns.
  template <int Turn>
  __device__ void turn(int row, int& shift) {
    load_other(row, shift + Columns - 1, (Turn + Columns - 1) % Columns);
    const int dx = shift - call_.reach;
    const int dy = first_ + row - call_.reach;
    // The pixel itself is added at the end; with bilateral weights it is one of the others.
    if (Weights == SearchWeights::bilateral || dx != 0 || dy != 0 || image() != call_.own_image)
      compare<Turn>(dx, dy);
    ++shift;
    if constexpr (Turn + 1 < Columns) {
      if (shift < call_.side()) turn<Turn + 1>(row, shift);
    }
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
      Sums::sum_column(differences, call_.patch, i, along_columns);
    }
    float constant = 0;
    if constexpr (Weights == SearchWeights::general) constant = -call_.noise;
    if constexpr (Weights == SearchWeights::bilateral) {
      constant = static_cast<float>(dx * dx + dy * dy) * call_.space_ratio;
    }
#pragma unroll
    for (int k = 0; k < Rows; ++k) {
      float exponents[Columns];
      Sums::sum_row(along_columns[k], call_.patch, constant, exponents);
#pragma unroll
      for (int i = 0; i < Columns; ++i) add<Turn>(k, i, exponents[i]);
    }
  }

  template <int Turn>
  __device__ void add(int k, int i, float exponent) {
    if constexpr (Weights == SearchWeights::general) exponent = fmaxf(exponent, 0.0F);
    if constexpr (Weights == SearchWeights::bilateral) {
#pragma unroll
      for (int c = 0; c < Channels; ++c) {
        const float difference = own_[c][k + around][i] - other_[c][k + around][slot_of<Turn>(i)];
        exponent = fmaf(difference * call_.pixel_ratio, difference, exponent);
      }
    }
    const float weight = exp2_fast(-exponent);
    weights_[k][i] += weight;
    if constexpr (Weights == SearchWeights::general) largest_[k][i] = fmaxf(largest_[k][i], weight);
#pragma unroll
    for (int c = 0; c < Channels; ++c) {
      values_[c][k][i] = fmaf(weight, other_[c][k + around][slot_of<Turn>(i)], values_[c][k][i]);
    }
  }

  // ---- results

  __device__ void clear() {
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

  __device__ int x_of(int i) const { return left_ + lane_ * Columns + i; }
  __device__ int y_of(int k) const { return top_ + around + warp_ * Rows + k; }
  __device__ bool is_mine(int k, int i) const {
    const int column = lane_ * Columns + i;
    const Rect& area = call_.out.rect;
    return column >= around && column < covered - around && x_of(i) >= area.x0 && x_of(i) < area.x1 &&
           y_of(k) >= area.y0 && y_of(k) < area.y1;
  }

  __device__ void store() const {
#pragma unroll
    for (int k = 0; k < Rows; ++k) {
#pragma unroll
      for (int i = 0; i < Columns; ++i) {
        if (!is_mine(k, i)) continue;
        float self = 0;
        if constexpr (Weights == SearchWeights::plain) self = 1;
        if constexpr (Weights == SearchWeights::general)
          self = self_weight(call_.self_is_max, largest_[k][i]);
#pragma unroll
        for (int c = 0; c < Channels; ++c) {
          const float own = own_[c][k + around][i];
          call_.store(call_.first_channel + c, x_of(i), y_of(k), own, fmaf(self, own, values_[c][k][i]),
                      weights_[k][i] + self);
        }
      }
    }
  }

  __device__ void keep_sums() const {
    constexpr int kind = own_rows * own_columns;
    float* const of_group =
        call_.sums + place_.sums(call_, Channels, kind) + place_.group * (Channels + 2) * kind;
#pragma unroll
    for (int k = 0; k < Rows; ++k) {
#pragma unroll
      for (int i = 0; i < Columns; ++i) {
        const int column = lane_ * Columns + i - around;
        if (column < 0 || column >= own_columns) continue;
        float* const at = of_group + (warp_ * Rows + k) * own_columns + column;
        at[0] = weights_[k][i];
#pragma unroll
        for (int c = 0; c < Channels; ++c) at[(1 + c) * kind] = values_[c][k][i];
        if constexpr (Weights == SearchWeights::general) at[(1 + Channels) * kind] = largest_[k][i];
      }
    }
  }

  const PatchSearchCall& call_;
  Pixel* shared_;
  int lane_;
  int warp_;
  SearchPlace place_;
  int left_;  // of what the block covers, the patches' reach included
  int top_;
  int first_;  // row of the search, and how many
  int count_;
  Tile tile_;
  // Every index is a compile-time constant: all of it lies in registers.
  float own_[Channels][patch_rows][Columns];
  float other_[Channels][patch_rows][Columns];
  float weights_[Rows][Columns];
  float largest_[Rows][Columns];
  float values_[Channels][Rows][Columns];
};

template <int Channels, int Patch, bool Flat, SearchWeights Weights, int Columns, int Rows>
__global__ void __launch_bounds__(PatchSearchBlock<Channels, Patch, Flat, Weights, Columns, Rows>::threads, 2)
    patch_search_kernel(const __grid_constant__ PatchSearchCall call) {
  extern __shared__ float4 shared[];
  using Block = PatchSearchBlock<Channels, Patch, Flat, Weights, Columns, Rows>;
  Block(call, reinterpret_cast<typename Block::Pixel*>(shared)).filter();
}

// A compiled kernel and its launch parameters.
struct PatchSearchKernel {
  void (*kernel)(PatchSearchCall) = nullptr;  // none: not compiled
  std::size_t (*shared_bytes)(int reach) = nullptr;
  int threads = 0;
  int own_columns = 0;  // of a block
  int own_rows = 0;
};

template <int Channels, int Patch, bool Flat, SearchWeights Weights, int Columns, int Rows>
PatchSearchKernel compiled() {
  using Block = PatchSearchBlock<Channels, Patch, Flat, Weights, Columns, Rows>;
  return {patch_search_kernel<Channels, Patch, Flat, Weights, Columns, Rows>, Block::shared_bytes,
          Block::threads, Block::own_columns, Block::own_rows};
}

// The compiled kernels, one source for each kind; null where a patch was not compiled.
PatchSearchKernel flat_search_kernel(int channels, int patch, bool plain);
PatchSearchKernel gaussian_search_kernel(int channels, int patch);
PatchSearchKernel bilateral_search_kernel(int channels, int patch);

}  // namespace ungrain::cuda
