// What searches for similar patches with registers share: their arguments, and a block's tile of pixels in
// shared memory.
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
  // into a group for each image. In a search for pairs it is a row of blocks (PairSplit).
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

// A pixel in shared memory: three channels are padded to four, so that one load reads them.
template <int Channels>
struct SharedPixel {
  float channels[Channels];
};
template <>
struct alignas(16) SharedPixel<3> {
  float channels[3];
};

// The tile of a block whose lanes own Columns adjacent columns each: columns are grouped by their remainder,
// so that the lanes' columns are adjacent. The rows of a column are adjacent, an odd number of them, which
// avoids bank conflicts.
template <int Columns>
struct PatchTile {
  int columns;
  int rows;
  int pitch;
  int remainder;  // from the columns of one remainder to those of the next

  __host__ __device__ PatchTile(int columns_of_tile, int rows_of_tile)
      : columns(columns_of_tile),
        rows(rows_of_tile),
        pitch(rows | 1),
        remainder((columns + Columns - 1) / Columns * pitch) {}
  __host__ __device__ std::size_t size() const { return Columns * static_cast<std::size_t>(remainder); }
  __device__ int at(int column, int row) const {
    return column % Columns * remainder + column / Columns * pitch + row;
  }
};

// Fills the upper left part of a tile with scaled pixels, from (x0, y0) of the image on.
template <int Warps, int Channels, int Columns>
__device__ void load_tile(const PatchSearchCall& call, const BorderedPlane& image, int x0, int y0,
                          int columns, int rows, const PatchTile<Columns>& tile,
                          SharedPixel<Channels>* shared) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  if (!image.holds(x0, y0, x0 + columns, y0 + rows)) {
    for (int row = warp; row < rows; row += Warps) {
      for (int column = lane; column < columns; column += 32) {
        SharedPixel<Channels> pixel;
#pragma unroll
        for (int c = 0; c < Channels; ++c) {
          pixel.channels[c] = call.scaled(image.at(call.first_channel + c, x0 + column, y0 + row, 0.0F));
        }
        shared[tile.at(column, row)] = pixel;
      }
    }
    return;
  }
  // Several pixels of a thread at a time: little else hides the latency.
  constexpr int rows_at_once = 2;
  constexpr int columns_at_once = Channels == 1 ? 5 : 3;
  for (int row = warp; row < rows; row += rows_at_once * Warps) {
    for (int column = lane; column < columns; column += 32 * columns_at_once) {
      SharedPixel<Channels> pixels[rows_at_once][columns_at_once];
#pragma unroll
      for (int r = 0; r < rows_at_once; ++r) {
#pragma unroll
        for (int k = 0; k < columns_at_once; ++k) {
          if (row + r * Warps >= rows || column + k * 32 >= columns) continue;
#pragma unroll
          for (int c = 0; c < Channels; ++c) {
            pixels[r][k].channels[c] =
                image.inside(call.first_channel + c, x0 + column + k * 32, y0 + row + r * Warps);
          }
        }
      }
#pragma unroll
      for (int r = 0; r < rows_at_once; ++r) {
#pragma unroll
        for (int k = 0; k < columns_at_once; ++k) {
          if (row + r * Warps >= rows || column + k * 32 >= columns) continue;
#pragma unroll
          for (int c = 0; c < Channels; ++c) {
            pixels[r][k].channels[c] = call.scaled(pixels[r][k].channels[c]);
          }
          shared[tile.at(column + k * 32, row + r * Warps)] = pixels[r][k];
        }
      }
    }
  }
}

}  // namespace ungrain::cuda
