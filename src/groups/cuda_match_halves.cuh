// What the kernels of the search by halves share: sizes, and the layout of a call. Private to them.
//
//   plane of floats --prepare--> words, norms --one or two passes--> offsets, found
//                                                 |
//                     octet: distances; rank: sorts and queues in registers and shared memory
//
// Half the distance of two patches is |a|²/2 + |b|²/2 - a b. Pixels are halves of (pixel - middle) * scale,
// and the norms are those of the rounded pixels. Distances are exact for the rounded image up to the rounding
// of sums of floats; where the rounded pixels are whole numbers of 8 bits, they are exact.
#pragma once

#include <cuda_fp16.h>

#include "cuda/launch.cuh"
#include "groups/cuda_match_halves.h"

namespace ungrain::cuda::halves_match {

constexpr int side = 8;  // of a patch
constexpr int warp_size = 32;
constexpr unsigned all_lanes = ~0U;
constexpr int octet = 8;                     // references that a warp takes at a time, in one row or in two
constexpr int columns_of_block = 2 * octet;  // of references
constexpr int few_classes = 8;               // in a lane
constexpr int many_classes = 16;
constexpr int most_with_few_classes = 32;
constexpr int tile_columns = 16;  // of candidates
// For one pass: bits of a candidate's column, and of its row, among those of an octet; every second tile
// counts its rows from 8 on.
constexpr int place_bits = 6;
constexpr int most_wanted = 64;

// Rows whose products are in flight at the same time.
constexpr int rows_in_flight = 4;
// Rows of pass 2 between two checks of the queues, and how many keys they may add to a lane's queue.
constexpr int rows_at_once = 4;
constexpr int most_added = 4 * rows_at_once;
// Long enough that queues rarely fill up. A queue that was cut holds at most 8 keys for each of two
// references.
__host__ __device__ constexpr int queue_length(int classes, int warps) {
  return classes == few_classes || warps > 8 ? 40 : 56;
}
static_assert(queue_length(few_classes, 8) >= 2 * most_wanted / 8 + most_added);

// Markers in place of norms, far beyond any sum: for patches with pixels too large for halves, and for
// positions outside the image.
constexpr float unfit = -1e30F;
constexpr float outside = 1e33F;
constexpr float far_beyond = 1e29F;                 // bound of both
constexpr float largest_half_distance = 134217728;  // 2^27, see largest_pixel in cuda_match_prepare.cu
// Added to all half distances of two passes, so that rounding makes none negative.
constexpr float two_pass_bias = 256;

// The distances of one pass become halves. So its pixels are multiplied by `one_pass_unit`, its distances by
// the square, which keeps all up to 2^28 below the largest half. `least_distance` is added to all, a quarter
// of what noise of a deviation of 1 in 8 bits causes: no half has an exponent below `least_exponent` then.
constexpr float one_pass_unit = 1.0F / 64;
constexpr float largest_of_half = 65504;
constexpr float least_distance = 1.0F / 256;
constexpr unsigned least_exponent = 7;

// Pitches of the shared words for the most frequent searches, for which kernels are compiled: windows 39 wide
// around every pixel; around every third, or 45 wide around every second; 25 wide around every fifth.
constexpr int narrow_pitch = 40;
constexpr int middle_pitch = 56;
constexpr int wide_pitch = 64;
// With long lists: windows 49 wide around every fourth pixel, and around every sixth.
constexpr int long_list_pitch = 68;
constexpr int sparse_pitch = 84;
// Of a block. Windows of references that lie far apart leave room for one block on a multiprocessor.
__host__ __device__ constexpr int warps_of(int kernel_pitch) {
  return kernel_pitch == long_list_pitch || kernel_pitch == sparse_pitch ? 16 : 8;
}
// A word holds two pixels, so a row has two norms a word, less those of patches that would exceed it. A
// multiple of 16 bytes, the unit of copies.
__host__ __device__ constexpr int norm_pitch_of(int word_pitch) { return 2 * word_pitch - 8; }
constexpr int piece_words = 4;
constexpr int columns_step = 2 * piece_words;  // pixels
// References that lie apart form octets of two rows of four, because their windows then share more
// candidates. Neighbours, and all other cases, form octets of one row.
__host__ __device__ constexpr int octet_columns_of(int word_pitch) {
  return word_pitch == middle_pitch || word_pitch == wide_pitch || word_pitch == long_list_pitch ||
                 word_pitch == sparse_pitch
             ? octet / 2
             : octet;
}

// A call of the search, as the kernels of all files take it.
struct HalvesCall {
  GroupMatchCall call;
  // All pixels of the search, and the norms of the patches that begin at them.
  std::uint32_t* words[2];  // [rows][width / 2], two pixels each; the second begins a pixel later
  float* norms;             // [rows][width]
  int x0;                   // in the image; even
  int y0;
  int width;  // a multiple of 8
  int rows;
  // A block's part of them in shared memory.
  int rows_of_block;  // of references
  int word_pitch;
  int word_rows;
  int copy_words;  // of one of the two copies
  int norm_rows;

  int position_bits;      // of keys
  unsigned inverse_side;  // of the search
  float unit;             // pixels are multiplied by it
  float bias;             // added to half distances
  float farthest;         // half distance allowed, with the bias
  unsigned two;           // 2: what the compiler does not know stays a multiply-add, see keys_of()

  __host__ __device__ int reach() const { return call.search / 2; }
  // Octets begin at columns that are multiples of 8, so that a reference's result depends on its position
  // alone.
  __host__ __device__ int first_octet() const { return call.grid.first_i / octet * octet; }
  __host__ __device__ int end_i() const { return call.grid.first_i + call.grid.count_i; }
  int classes() const { return call.count <= most_with_few_classes ? few_classes : many_classes; }
  bool one_pass() const {
    const auto tiles = [](int places, int tile) { return (places + tile - 1) / tile * tile; };
    const int columns = call.search + (octet_columns_of(word_pitch) - 1) * call.grid.spacing;
    const int rows = call.search + call.grid.spacing + side;
    return call.nearly && call.integers.most == 0 && classes() == few_classes && kernel_pitch() > 0 &&
           tiles(columns, tile_columns) <= 1 << place_bits && tiles(rows, side) <= 1 << place_bits;
  }
  // Of shared memory, before the queues.
  __host__ __device__ int image_words() const {
    return 2 * copy_words + norm_pitch_of(word_pitch) * norm_rows;
  }
  int shared_bytes() const {
    const int queues = one_pass() ? 0 : warps() * queue_length(classes(), warps()) * warp_size;
    return (image_words() + queues) * static_cast<int>(sizeof(std::uint32_t));
  }
  // The pitch for which the kernel was compiled, or 0.
  int kernel_pitch() const {
    const bool compiled =
        classes() == few_classes
            ? word_pitch == narrow_pitch || word_pitch == middle_pitch || word_pitch == wide_pitch
            : word_pitch == long_list_pitch || word_pitch == sparse_pitch;
    return compiled ? word_pitch : 0;
  }
  int warps() const { return warps_of(kernel_pitch()); }
  int octet_rows() const { return octet / octet_columns_of(kernel_pitch()); }
  // Octets of two rows begin at even rows in every call.
  int first_row() const { return call.grid.first_j / octet_rows() * octet_rows(); }
  __host__ __device__ int end_j() const { return call.grid.first_j + call.grid.count_j; }
  __device__ bool has(int i, int j) const {
    return i >= call.grid.first_i && i < end_i() && j >= call.grid.first_j && j < end_j();
  }

  // Positions in the window in reading order, from 1; 0 is the reference itself.
  __device__ int centre() const { return reach() * call.search + reach() + 1; }
  // dx in the lower byte, dy in the upper one.
  __device__ unsigned offset(unsigned position) const {
    if (position == 0) return 0;
    const unsigned from_first = position - 1;
    const unsigned row = from_first * inverse_side >> 21;  // exact: search cubed is less than 2^21
    const unsigned column = from_first - row * call.search;
    return ((column - reach()) & 0xFFU) | ((row - reach()) & 0xFFU) << 8;
  }
};

inline dim3 grid_of(const HalvesCall& halves) {
  return tall_grid(blocks_for(halves.end_i() - halves.first_octet(), columns_of_block),
                   blocks_for(halves.end_j() - halves.first_row(), halves.rows_of_block));
}

void launch_prepare(const HalvesCall& halves, Stream stream);
void launch_one_pass(const HalvesCall& halves, Stream stream);
void launch_two_passes(const HalvesCall& halves, Stream stream);

}  // namespace ungrain::cuda::halves_match
