// The search for similar patches on a GPU: the kernel that the common patches are compiled for.
//
// A thread owns Columns columns and Rows rows, a warp 32 times as many columns, of which those at its edges
// only serve their neighbours' patches. The thread's pixels and their patches' rows stay in registers; so do
// the pixels that they are compared with: rows of the search come one after the other, and within one the
// search moves column by column, which needs one new column of pixels from shared memory each time. For each
// shift the squared differences are summed along columns in registers and along rows between lanes.
//
// Flat patches: a column's sums are suffixes of one stretch of a patch's length joined with prefixes of the
// next, so that their cost does not depend on the patch and nothing is ever subtracted. Gaussian patches:
// weighted sums along columns, then along rows.
//
// Blocks lie on a raster from the image's origin, so that a pixel's sums have one order whatever part of the
// image is asked for.
//
// Bound by instruction issue: for flat 7 x 7 patches of one channel 11.5 a shift and pixel at least.
#pragma once

#include "cuda/launch.cuh"
#include "cuda/load.cuh"
#include "cuda/window.cuh"

namespace ungrain::cuda {

inline constexpr int most_compiled_patch = 11;

struct PatchSearchCall {
  BorderedPlane in;
  Planes out;
  int first_channel;
  int reach;  // of the search
  // Rows of the search are split into so many groups, whose sums lie apart until they are joined.
  int groups;
  float* sums;  // [group][weights, each channel's values, largest weight][row][column] of the area
  float scale;  // values times this, their differences squared and summed over a patch, are exponents
  float unscale;
  float noise;  // what noise alone adds to an exponent
  bool self_is_max;
  float pixel_ratio;                 // squared differences of the pixels themselves times this are exponents
  float space_ratio;                 // squared distances times this are exponents
  float patch[most_compiled_patch];  // Gaussian weights along one axis

  __host__ __device__ int side() const { return 2 * reach + 1; }
  // The first row of the search that belongs to a group, counted from the first of all.
  __host__ __device__ int first_of_group(int group) const { return group * side() / groups; }
};

enum class SearchWeights {
  plain,      // of the patches alone, the pixel itself counts as 1
  general,    // with noise taken off, and either weight of the pixel itself
  bilateral,  // of the patches, the pixels' own difference and their distance
};

// The pixel itself, with the weight it has beside the others.
__device__ inline float self_weight(bool is_max, float largest) {
  return is_max && largest > 0 ? largest : 1.0F;
}

template <int Channels, int Patch, bool Flat, SearchWeights Weights, int Columns, int Rows>
class PatchSearchBlock {
 public:
  static constexpr int warps = 4;
  static constexpr int threads = 32 * warps;
  static constexpr int around = Patch / 2;
  static constexpr int patch_rows = Rows + Patch - 1;  // that a thread's pixels' patches cover
  static constexpr int covered = 32 * Columns;
  static constexpr int own_columns = covered - 2 * around;
  static constexpr int own_rows = warps * Rows;

  // The tile: columns apart by their remainder, so that the lanes' columns lie side by side; rows of a column
  // together, an odd number, which keeps banks apart.
  struct Tile {
    int columns;
    int rows;
    int pitch;
    int remainder;  // from the columns of one remainder to those of the next
    int plane;      // from channel to channel

    __host__ __device__ Tile(int reach, int search_rows)
        : columns(covered + 2 * reach),
          rows(own_rows + Patch - 1 + search_rows - 1),
          pitch(rows | 1),
          remainder((columns + Columns - 1) / Columns * pitch),
          plane(Columns * remainder) {}
    __device__ int at(int column, int row) const {
      return column % Columns * remainder + column / Columns * pitch + row;
    }
  };

  static std::size_t shared_bytes(const PatchSearchCall& call) {
    const int most_rows = (call.side() + call.groups - 1) / call.groups;
    return sizeof(float) * Channels * static_cast<std::size_t>(Tile(call.reach, most_rows).plane);
  }

  static dim3 grid(const PatchSearchCall& call) {
    const Rect& area = call.out.rect;
    const int across = (area.x1 - 1) / own_columns - area.x0 / own_columns + 1;
    const int down = (area.y1 - 1) / own_rows - area.y0 / own_rows + 1;
    return {static_cast<unsigned>(across), static_cast<unsigned>(down), static_cast<unsigned>(call.groups)};
  }

  __device__ PatchSearchBlock(const PatchSearchCall& call, float* shared)
      : call_(call),
        shared_(shared),
        lane_(static_cast<int>(threadIdx.x) % 32),
        warp_(static_cast<int>(threadIdx.x) / 32),
        left_((call.out.rect.x0 / own_columns + static_cast<int>(blockIdx.x)) * own_columns - around),
        top_((call.out.rect.y0 / own_rows + static_cast<int>(blockIdx.y)) * own_rows - around),
        first_(call.first_of_group(static_cast<int>(blockIdx.z))),
        count_(call.first_of_group(static_cast<int>(blockIdx.z) + 1) - first_),
        tile_(call.reach, count_) {}

  __device__ void filter() {
    load_own();
    __syncthreads();
    load_tile(left_ - call_.reach, top_ + first_ - call_.reach, tile_.columns, tile_.rows);
    __syncthreads();
    clear();
    for (int row = 0; row < count_; ++row) search_row(row);
    if (call_.groups == 1) {
      store();
    } else {
      keep_sums();
    }
  }

 private:
  // ---- pixels

  __device__ void load_tile(int x0, int y0, int columns, int rows) {
    const bool held = call_.in.holds(x0, y0, x0 + columns, y0 + rows);
#pragma unroll
    for (int c = 0; c < Channels; ++c) {
      const int channel = call_.first_channel + c;
      for (int row = warp_; row < rows; row += warps) {
        for (int column = lane_; column < columns; column += 32) {
          const float pixel = held ? call_.in.inside(channel, x0 + column, y0 + row)
                                   : call_.in.at(channel, x0 + column, y0 + row, 0.0F);
          shared_[c * tile_.plane + tile_.at(column, row)] = pixel * call_.scale;
        }
      }
    }
  }

  // The thread's own pixels with their patches, through the tile.
  __device__ void load_own() {
    load_tile(left_, top_, covered, own_rows + Patch - 1);
    __syncthreads();
#pragma unroll
    for (int c = 0; c < Channels; ++c) {
#pragma unroll
      for (int i = 0; i < Columns; ++i) {
#pragma unroll
        for (int row = 0; row < patch_rows; ++row) {
          own_[c][row][i] = shared_[c * tile_.plane + tile_.at(lane_ * Columns + i, warp_ * Rows + row)];
        }
      }
    }
  }

  // The column `offset` to the right of the thread's first one at the search's first column.
  __device__ void load_other(int search_row, int offset, int slot) {
    const float* from = shared_ + offset % Columns * tile_.remainder +
                        (lane_ + offset / Columns) * tile_.pitch + warp_ * Rows + search_row;
#pragma unroll
    for (int c = 0; c < Channels; ++c) {
#pragma unroll
      for (int row = 0; row < patch_rows; ++row) other_[c][row][slot] = from[c * tile_.plane + row];
    }
  }

  // ---- the search

  __device__ void search_row(int row) {
#pragma unroll
    for (int i = 0; i < Columns - 1; ++i) load_other(row, i, i);
    int shift = 0;
    while (shift < call_.side()) turn<0>(row, shift);
  }

  // One column of the search after the other: the pixels compared with stay in their registers and change
  // their meaning from one to the next, which comes round after Columns of them.
  template <int Turn>
  __device__ void turn(int row, int& shift) {
    load_other(row, shift + Columns - 1, (Turn + Columns - 1) % Columns);
    const int dx = shift - call_.reach;
    const int dy = first_ + row - call_.reach;
    // The pixel itself is added at the end; among bilateral weights it is one as any other.
    if (Weights == SearchWeights::bilateral || dx != 0 || dy != 0) compare<Turn>(dx, dy);
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
      float squares[patch_rows];
#pragma unroll
      for (int row = 0; row < patch_rows; ++row) {
        squares[row] = 0;
#pragma unroll
        for (int c = 0; c < Channels; ++c) {
          const float difference = own_[c][row][i] - other_[c][row][slot_of<Turn>(i)];
          squares[row] = fmaf(difference, difference, squares[row]);
        }
      }
      sum_column(squares, i, along_columns);
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

  __device__ void sum_column(const float (&squares)[patch_rows], int i, float (&sums)[Rows][Columns]) const {
    if constexpr (Flat) {
      // Row k's patch covers [k, k + Patch): the end of one stretch of Patch rows and the start of the next.
      float suffixes[Rows];
#pragma unroll
      for (int start = 0; start < Rows; start += Patch) {
        float sum = 0;
#pragma unroll
        for (int row = Patch - 1; row >= 0; --row) {
          sum = row == Patch - 1 ? squares[start + row] : sum + squares[start + row];
          if (start + row < Rows) suffixes[start + row] = sum;
        }
      }
#pragma unroll
      for (int start = 0; start < Rows; start += Patch) {
        float sum = 0;
#pragma unroll
        for (int row = 0; row < Patch; ++row) {
          const int k = start + row;
          if (k >= Rows) break;
          if (row > 0) {
            const float square = squares[k + Patch - 1];
            sum = row == 1 ? square : sum + square;
          }
          sums[k][i] = row == 0 ? suffixes[k] : suffixes[k] + sum;
        }
      }
    } else {
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
        sum += constant;
        // What lies to the left: whole lanes, then the end of one; likewise to the right.
        int missing = around - i;
#pragma unroll
        for (int lanes = 1; lanes <= (around + Columns - 1) / Columns; ++lanes) {
          if (missing > 0) {
            sum += __shfl_up_sync(all, missing >= Columns ? suffixes[0] : suffixes[Columns - missing], lanes);
          }
          missing -= Columns;
        }
        missing = i + around - (Columns - 1);
#pragma unroll
        for (int lanes = 1; lanes <= (around + Columns - 1) / Columns; ++lanes) {
          if (missing > 0) {
            sum += __shfl_down_sync(all, missing >= Columns ? prefixes[Columns - 1] : prefixes[missing - 1],
                                    lanes);
          }
          missing -= Columns;
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
          const float value = fmaf(self, own_[c][k + around][i], values_[c][k][i]);
          call_.out.at(call_.first_channel + c, x_of(i), y_of(k)) =
              value / (weights_[k][i] + self) * call_.unscale;
        }
      }
    }
  }

  __device__ void keep_sums() const {
    const Rect& area = call_.out.rect;
    const std::ptrdiff_t kind = static_cast<std::ptrdiff_t>(area.width()) * area.height();
    float* const of_group = call_.sums + static_cast<std::ptrdiff_t>(blockIdx.z) * (Channels + 2) * kind;
#pragma unroll
    for (int k = 0; k < Rows; ++k) {
#pragma unroll
      for (int i = 0; i < Columns; ++i) {
        if (!is_mine(k, i)) continue;
        float* const at =
            of_group + static_cast<std::ptrdiff_t>(y_of(k) - area.y0) * area.width() + (x_of(i) - area.x0);
        at[0] = weights_[k][i];
#pragma unroll
        for (int c = 0; c < Channels; ++c) at[(1 + c) * kind] = values_[c][k][i];
        if constexpr (Weights == SearchWeights::general) at[(1 + Channels) * kind] = largest_[k][i];
      }
    }
  }

  const PatchSearchCall& call_;
  float* shared_;
  int lane_;
  int warp_;
  int left_;  // of what the block covers, the patches' reach included
  int top_;
  int first_;  // row of the search, and how many
  int count_;
  Tile tile_;
  // Every index is known when this is compiled: all of it lies in registers.
  float own_[Channels][patch_rows][Columns];
  float other_[Channels][patch_rows][Columns];
  float weights_[Rows][Columns];
  float largest_[Rows][Columns];
  float values_[Channels][Rows][Columns];
};

template <int Channels, int Patch, bool Flat, SearchWeights Weights, int Columns, int Rows>
__global__ void __launch_bounds__(PatchSearchBlock<Channels, Patch, Flat, Weights, Columns, Rows>::threads, 2)
    patch_search_kernel(const __grid_constant__ PatchSearchCall call) {
  extern __shared__ float shared[];
  PatchSearchBlock<Channels, Patch, Flat, Weights, Columns, Rows>(call, shared).filter();
}

// How a compiled kernel is launched.
struct PatchSearchKernel {
  void (*kernel)(PatchSearchCall) = nullptr;  // none: not compiled
  std::size_t (*shared_bytes)(const PatchSearchCall&) = nullptr;
  dim3 (*grid)(const PatchSearchCall&) = nullptr;
  int threads = 0;
};

template <int Channels, int Patch, bool Flat, SearchWeights Weights, int Columns, int Rows>
PatchSearchKernel compiled() {
  using Block = PatchSearchBlock<Channels, Patch, Flat, Weights, Columns, Rows>;
  return {patch_search_kernel<Channels, Patch, Flat, Weights, Columns, Rows>, Block::shared_bytes,
          Block::grid, Block::threads};
}

// The kernels that there are, one source for each kind; none where a patch was not compiled.
PatchSearchKernel flat_search_kernel(int channels, int patch, bool plain);
PatchSearchKernel gaussian_search_kernel(int channels, int patch);
PatchSearchKernel bilateral_search_kernel(int channels, int patch);

}  // namespace ungrain::cuda
