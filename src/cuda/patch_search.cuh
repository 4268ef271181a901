// The search for similar patches on a GPU: the kernel that the common patches are compiled for.
//
// A thread owns Columns columns and Rows rows, a warp 32 times as many columns; those at its edges only serve
// their neighbours' patches. The thread's pixels and the rows of their patches stay in registers, as do the
// pixels that they are compared with: the search goes row by row, and within a row column by column, which
// takes one new column of pixels from shared memory each time. For each shift the squared differences are
// summed along columns in registers and along rows between lanes.
//
// Flat patches: a column's sums are suffixes of one stretch of a patch's length joined with prefixes of the
// next, so that their cost does not depend on the patch and nothing is ever subtracted. Gaussian patches:
// weighted sums along columns, then along rows.
//
// Blocks lie on a raster from the image's origin, so that a pixel's sums have one order in every region of
// the image.
//
// Images of a sequence are searched by a block each, whose sums are joined afterwards: a loop over the images
// would take registers, of which there are none left.
//
// Bound by instruction issue: for flat 7 x 7 patches of one channel 11.5 a shift and pixel at least.
#pragma once

#include "cuda/launch.cuh"
#include "cuda/load.cuh"
#include "cuda/search_weights.cuh"
#include "cuda/window.cuh"

namespace ungrain::cuda {

inline constexpr int most_compiled_patch = 11;
inline constexpr int most_searched_images = 2 * 16 + 1;

struct PatchSearchCall {
  BorderedPlane in;  // the image that is filtered
  Planes out;
  int first_channel;
  int reach;  // of the search
  // The image's blocks from this one on, counted row by row, are split into groups of the search's rows. Each
  // group has its own sums until they are joined. Where several images are searched, all blocks are split
  // into a group for each image.
  int first_split;
  int groups;
  int blocks_across;  // of the whole image
  float* sums;  // [split block of the area][group][weights, each channel's values, largest][row][column]
  float scale;  // values times this, their differences squared and summed over a patch, are exponents
  float unscale;
  float noise;  // that noise alone adds to an exponent
  bool self_is_max;
  float pixel_ratio;                 // squared differences of the pixels themselves times this are exponents
  float space_ratio;                 // squared distances times this are exponents
  float patch[most_compiled_patch];  // Gaussian weights along one axis
  // The images that are searched, which lie alike; `in` is one of them.
  int images;
  int own_image;
  const float* image_data[most_searched_images];

  __device__ BorderedPlane image(int index) const {
    BorderedPlane plane = in;
    plane.planes.data = image_data[index];
    return plane;
  }

  __host__ __device__ int side() const { return 2 * reach + 1; }
  // A pixel scaled for comparison: its square is finite, or nearly.
  __device__ float scaled(float pixel) const {
    return fminf(fmaxf(pixel * scale, -most_scaled), most_scaled);
  }
  // Stores the result of a pixel from its sums; a pixel beyond the compared range stays as it is.
  __device__ void store(int channel, int x, int y, float scaled_pixel, float values, float weights) const {
    const bool compared = fabsf(scaled_pixel) < most_scaled;
    out.at(channel, x, y) = compared ? values / weights * unscale : in.inside(channel, x, y);
  }
};

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

// A pixel in shared memory: three channels are padded to four, so that one load reads them.
template <int Channels>
struct SharedPixel {
  float channels[Channels];
};
template <>
struct alignas(16) SharedPixel<3> {
  float channels[3];
};

template <int Channels, int Patch, bool Flat, SearchWeights Weights, int Columns, int Rows>
class PatchSearchBlock {
 public:
  using Pixel = SharedPixel<Channels>;
  static constexpr int warps = 4;
  static constexpr int threads = 32 * warps;
  static constexpr int around = Patch / 2;
  static constexpr int patch_rows = Rows + Patch - 1;  // that a thread's pixels' patches cover
  static constexpr int covered = 32 * Columns;
  static constexpr int own_columns = covered - 2 * around;
  static constexpr int own_rows = warps * Rows;

  // The tile: columns are grouped by their remainder, so that the lanes' columns are adjacent. The rows of a
  // column are adjacent, an odd number of them, which avoids bank conflicts.
  struct Tile {
    int columns;
    int rows;
    int pitch;
    int remainder;  // from the columns of one remainder to those of the next

    __host__ __device__ Tile(int reach, int search_rows)
        : columns(covered + 2 * reach),
          rows(own_rows + Patch - 1 + search_rows - 1),
          pitch(rows | 1),
          remainder((columns + Columns - 1) / Columns * pitch) {}
    __device__ int at(int column, int row) const {
      return column % Columns * remainder + column / Columns * pitch + row;
    }
  };

  static std::size_t shared_bytes(const PatchSearchCall& call) {
    return sizeof(Pixel) * Columns * static_cast<std::size_t>(Tile(call.reach, call.side()).remainder);
  }

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
        tile_(call.reach, count_) {}

  __device__ void filter() {
    if (!place_.is_split && place_.group > 0) return;
    load_own();
    load_tile(call_.image(image()), left_ - call_.reach, top_ + first_ - call_.reach, tile_.columns,
              tile_.rows);
    __syncthreads();
    clear();
    for (int row = 0; row < count_; ++row) search_row(row);
    place_.is_split ? keep_sums() : store();
  }

 private:
  __device__ bool splits_rows() const { return place_.is_split && call_.images == 1; }
  // That the block searches.
  __device__ int image() const { return call_.images == 1 ? 0 : place_.group; }

  // ---- pixels

  __device__ void load_tile(const BorderedPlane& image, int x0, int y0, int columns, int rows) {
    if (image.holds(x0, y0, x0 + columns, y0 + rows)) {
      load_held_tile(image, x0, y0, columns, rows);
      return;
    }
    for (int row = warp_; row < rows; row += warps) {
      for (int column = lane_; column < columns; column += 32) {
        Pixel pixel;
#pragma unroll
        for (int c = 0; c < Channels; ++c) {
          pixel.channels[c] = call_.scaled(image.at(call_.first_channel + c, x0 + column, y0 + row, 0.0F));
        }
        shared_[tile_.at(column, row)] = pixel;
      }
    }
  }

  // Loads several pixels of a thread at a time: little else hides the latency.
  __device__ void load_held_tile(const BorderedPlane& image, int x0, int y0, int columns, int rows) {
    constexpr int rows_at_once = 2;
    constexpr int columns_at_once = Channels == 1 ? 5 : 3;
    for (int row = warp_; row < rows; row += rows_at_once * warps) {
      for (int column = lane_; column < columns; column += 32 * columns_at_once) {
        Pixel pixels[rows_at_once][columns_at_once];
#pragma unroll
        for (int r = 0; r < rows_at_once; ++r) {
#pragma unroll
          for (int k = 0; k < columns_at_once; ++k) {
            if (row + r * warps >= rows || column + k * 32 >= columns) continue;
#pragma unroll
            for (int c = 0; c < Channels; ++c) {
              pixels[r][k].channels[c] =
                  image.inside(call_.first_channel + c, x0 + column + k * 32, y0 + row + r * warps);
            }
          }
        }
#pragma unroll
        for (int r = 0; r < rows_at_once; ++r) {
#pragma unroll
          for (int k = 0; k < columns_at_once; ++k) {
            if (row + r * warps >= rows || column + k * 32 >= columns) continue;
#pragma unroll
            for (int c = 0; c < Channels; ++c) {
              pixels[r][k].channels[c] = call_.scaled(pixels[r][k].channels[c]);
            }
            shared_[tile_.at(column + k * 32, row + r * warps)] = pixels[r][k];
          }
        }
      }
    }
  }

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
    load_tile(call_.in, left_, top_, covered, own_rows + Patch - 1);
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
      sum_column(differences, i, along_columns);
    }
    float constant = 0;
    if constexpr (Weights == SearchWeights::general) constant = -call_.noise;
    if constexpr (Weights == SearchWeights::bilateral) {
      constant = static_cast<float>(dx * dx + dy * dy) * call_.space_ratio;
    }
#pragma unroll
    for (int k = 0; k < Rows; ++k) {
      float exponents[Columns];
      sum_row(along_columns[k], constant, exponents);
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

  // Adds a row's squared difference.
  __device__ static float with_square(const float (&differences)[Channels][patch_rows], int row, float sum) {
#pragma unroll
    for (int c = 0; c < Channels; ++c) sum = fmaf(differences[c][row], differences[c][row], sum);
    return sum;
  }
  __device__ static float square_of(const float (&differences)[Channels][patch_rows], int row) {
    float sum = differences[0][row] * differences[0][row];
#pragma unroll
    for (int c = 1; c < Channels; ++c) sum = fmaf(differences[c][row], differences[c][row], sum);
    return sum;
  }

  __device__ void sum_column(const float (&differences)[Channels][patch_rows], int i,
                             float (&sums)[Rows][Columns]) const {
    if constexpr (Flat && Rows <= Patch + 1) {
      // Row k's patch is the end of the first Patch rows and the start of those behind: every row belongs to
      // one chain only.
      float sum = square_of(differences, Patch - 1);
#pragma unroll
      for (int row = Patch - 1; row >= 0; --row) {
        if (row < Patch - 1) sum = with_square(differences, row, sum);
        if (row < Rows) sums[row][i] = sum;
      }
#pragma unroll
      for (int k = 1; k < Rows; ++k) {
        sum = k == 1 ? square_of(differences, Patch) : with_square(differences, k + Patch - 1, sum);
        sums[k][i] = k < Patch ? sums[k][i] + sum : sum;
      }
    } else if constexpr (Flat) {
      float squares[patch_rows];
#pragma unroll
      for (int row = 0; row < patch_rows; ++row) squares[row] = square_of(differences, row);
        // The same with more stretches of Patch rows.
#pragma unroll
      for (int start = 0; start < Rows; start += Patch) {
        float sum = squares[start + Patch - 1];
#pragma unroll
        for (int row = Patch - 1; row >= 0; --row) {
          if (row < Patch - 1) sum += squares[start + row];
          if (start + row < Rows) sums[start + row][i] = sum;
        }
#pragma unroll
        for (int k = start + 1; k < start + Patch && k < Rows; ++k) {
          sum = k == start + 1 ? squares[start + Patch] : sum + squares[k + Patch - 1];
          sums[k][i] += sum;
        }
      }
    } else {
      float squares[patch_rows];
#pragma unroll
      for (int row = 0; row < patch_rows; ++row) squares[row] = square_of(differences, row);
#pragma unroll
      for (int k = 0; k < Rows; ++k) {
        float sum = squares[k] * call_.patch[0];
#pragma unroll
        for (int tap = 1; tap < Patch; ++tap) sum = fmaf(squares[k + tap], call_.patch[tap], sum);
        sums[k][i] = sum;
      }
    }
  }

  // From column sums to patch sums, plus a constant.
  __device__ void sum_row(const float (&columns)[Columns], float constant, float (&sums)[Columns]) const {
    constexpr unsigned all = 0xffffffffU;
    if constexpr (Flat) {
      float prefixes[Columns];  // of the lane's columns, up to each
      float suffixes[Columns];  // from each on
      prefixes[0] = columns[0];
      suffixes[Columns - 1] = columns[Columns - 1];
#pragma unroll
      for (int i = 1; i < Columns; ++i) {
        prefixes[i] = prefixes[i - 1] + columns[i];
        suffixes[Columns - 1 - i] = suffixes[Columns - i] + columns[Columns - 1 - i];
      }
      // Sums of whole lanes to the left and right, and parts of the lanes where a patch ends.
      constexpr int whole_lanes = around / Columns;
      float left_whole = 0;
      float right_whole = 0;
#pragma unroll
      for (int lanes = 1; lanes <= whole_lanes; ++lanes) {
        const float left = __shfl_up_sync(all, suffixes[0], lanes);
        const float right = __shfl_down_sync(all, prefixes[Columns - 1], lanes);
        left_whole = lanes == 1 ? left : left_whole + left;
        right_whole = lanes == 1 ? right : right_whole + right;
      }
#pragma unroll
      for (int i = 0; i < Columns; ++i) {
        const int first = i > around ? i - around : 0;
        const int last = i + around < Columns ? i + around : Columns - 1;
        float sum = 0;
        if (first == 0) {
          sum = prefixes[last];
        } else if (last == Columns - 1) {
          sum = suffixes[first];
        } else {
#pragma unroll
          for (int j = 0; j < Columns; ++j) {
            if (j >= first && j <= last) sum = j == first ? columns[j] : sum + columns[j];
          }
        }
        if constexpr (Weights != SearchWeights::plain) sum += constant;
        static_assert(whole_lanes <= 1, "sums of the lanes in between are not kept apart");
        const int left = around - i;  // columns that lie in other lanes
        const int right = i + around - (Columns - 1);
        // Whole lanes first: neighbouring columns share that sum.
        if (left >= Columns) sum += left_whole;
        if (right >= Columns) sum += right_whole;
        if (left > 0 && left % Columns != 0) {
          sum += __shfl_up_sync(all, suffixes[Columns - left % Columns], left / Columns + 1);
        }
        if (right > 0 && right % Columns != 0) {
          sum += __shfl_down_sync(all, prefixes[right % Columns - 1], right / Columns + 1);
        }
        sums[i] = sum;
      }
    } else {
      float line[Columns + 2 * around];
#pragma unroll
      for (int j = 0; j < Columns + 2 * around; ++j) {
        const int column = j - around;
        if (column >= 0 && column < Columns) {
          line[j] = columns[column];
        } else if (column < 0) {
          const int lanes = (-column + Columns - 1) / Columns;
          line[j] = __shfl_up_sync(all, columns[column + lanes * Columns], lanes);
        } else {
          line[j] = __shfl_down_sync(all, columns[column % Columns], column / Columns);
        }
      }
#pragma unroll
      for (int i = 0; i < Columns; ++i) {
        float sum = constant;
#pragma unroll
        for (int tap = 0; tap < Patch; ++tap) sum = fmaf(line[i + tap], call_.patch[tap], sum);
        sums[i] = sum;
      }
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
  std::size_t (*shared_bytes)(const PatchSearchCall&) = nullptr;
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
