// The search for similar patches of 8 x 8 on tensor cores.
//
// Half the distance of two patches is |a|²/2 + |b|²/2 - a b. Pixels are halves of (pixel - middle) * scale,
// and the norms are those of the rounded pixels: distances are exact for the rounded image up to the rounding
// of sums of floats, and altogether exact where the rounded pixels are whole numbers of 8 bits. A first
// kernel makes halves and norms once. Norms also say which candidates there are: `outside` for positions
// outside the image, `unfit` where a pixel is too large for halves.
//
// A block of 8 warps takes 16 references of a row and some rows of them. The area that they search lies in
// shared memory twice, one copy shifted by a pixel, so that two neighbouring pixels at any x are one aligned
// word; the norms lie beside it. A warp takes 8 references of one row (an octet) at a time. A product has as
// its rows 16 candidates side by side, as its columns the references, negated, and 4 products of two rows of
// patches each make 128 distances; sums start as the norms, so that what the tensor cores return is the
// ranking itself. Going down y, a lane keeps the 8 rows of its two columns of candidates in registers: each
// further row takes the place of the oldest and needs 2 words and 2 norms from shared memory.
//
// The nearest are found in two passes. The first keeps the smallest distance of each of 64 or 128 classes of
// candidates, by y mod 8 and x mod 8 or 16; they are sorted in registers, and at least N candidates are no
// farther than the N-th of them. The second pass computes all distances again, the same bits, and queues the
// candidates up to that threshold: each lane has a queue of its own in shared memory, for the first of its
// two references from one end, for the second from the other. Queued are 32-bit keys, the distance as a
// number of fixed point and below it the position in reading order, so that no two are equal. When a queue
// may overflow in the next rows, which is rare, all queues of the warp are cut down to the nearest N and the
// threshold is tightened: what is found does not depend on when that happens. At the end the keys of a
// reference are sorted over 8 lanes.
//
// What a reference finds depends on its position in the image alone: octets begin at columns of references
// that are multiples of 8, and the rows of a window are counted from its first.
//
// For every 4 products the first pass has 13 other instructions, the second 15 and about 35 more where one of
// the 128 candidates is a hit: the first is bound by the tensor cores, the second by instruction issue. The
// sorts add about a tenth.
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>

#include "cuda/async_copy.cuh"
#include "cuda/launch.cuh"
#include "cuda/products.cuh"
#include "methods/bm3d/cuda_match_halves.h"

namespace ungrain::cuda {
namespace {

constexpr int side = 8;  // of a patch
constexpr int warp_size = 32;
constexpr int warps_of_block = 8;
constexpr unsigned all_lanes = ~0U;
constexpr int octet = 8;                     // references that a warp takes at a time, in one row or in two
constexpr int columns_of_block = 2 * octet;  // of references
constexpr int tile_columns = 16;             // of candidates
constexpr int most_rows_of_block = 16;
constexpr int fewest_rows_of_block = 4;
constexpr int rows_step = 4;        // so that all warps have the same number of octets
constexpr int widest_search = 127;  // divided by with a multiplication, see HalvesCall::offset()
constexpr int most_wanted = 64;
constexpr int few_classes = 8;  // in a lane
constexpr int many_classes = 16;
constexpr int most_with_few_classes = 32;

// Rows whose products are under way at the same time.
constexpr int rows_together = 4;
// Rows of the second pass without a look at the queues, and how many keys they may add to a lane's.
constexpr int rows_at_once = 4;
constexpr int most_added = 4 * rows_at_once;
// Long enough that queues rarely fill up. One that was cut down has 8 keys for each of two references at
// most.
__host__ __device__ constexpr int queue_length(int classes) { return classes == few_classes ? 40 : 56; }
static_assert(queue_length(few_classes) >= 2 * most_wanted / 8 + most_added);

// Half distances are at most 2^27: twice the largest pixel, squared, 64 times, halved.
constexpr float largest_pixel = 1024;
constexpr float largest_half_distance = 134217728;
// Instead of norms, each far beyond what is added to it: of patches with larger pixels, and of none at all.
constexpr float unfit = -1e30F;
constexpr float outside = 1e33F;
constexpr float far_beyond = 1e29F;  // any of these
constexpr float no_threshold = -1e38F;
// Added to all half distances, so that none is negative, however it is rounded.
constexpr float bias = 256;

// Of the shared words of the commonest searches, for which kernels are compiled: windows 39 wide around every
// pixel; around every third, or 45 wide around every second; 25 wide around every fifth.
constexpr int narrow_pitch = 40;
constexpr int middle_pitch = 56;
constexpr int wide_pitch = 64;
// Two norms a word, less what patches reach beyond their first pixels. Whole pieces of 16 bytes, as they are
// copied.
__host__ __device__ constexpr int norm_pitch_of(int word_pitch) { return 2 * word_pitch - 8; }
constexpr int piece_words = 4;
constexpr int columns_step = 2 * piece_words;  // pixels
// Octets of references that lie apart are two rows of four: fewer candidates lie in one of their windows and
// not in the others. Of neighbours, and in general, they are one row.
__host__ __device__ constexpr int octet_columns_of(int word_pitch) {
  return word_pitch == middle_pitch || word_pitch == wide_pitch ? octet / 2 : octet;
}

struct HalvesCall {
  Bm3dMatchCall call;
  // All pixels that are looked at, and the norms of the patches that begin at them.
  std::uint32_t* words[2];  // [rows][width / 2], two pixels each; the second begins a pixel later
  float* norms;             // [rows][width]
  int x0;                   // in the image; even
  int y0;
  int width;  // a multiple of 8
  int rows;
  // A block's part of it in shared memory.
  int rows_of_block;  // of references
  int word_pitch;
  int word_rows;
  int copy_words;  // of one of the two copies
  int norm_rows;

  int position_bits;      // of keys
  unsigned inverse_side;  // of the search
  float farthest;         // half distance allowed, with the bias

  __host__ __device__ int reach() const { return call.search / 2; }
  __host__ __device__ int first_octet() const { return call.grid.first_i / octet * octet; }
  __host__ __device__ int end_i() const { return call.grid.first_i + call.grid.count_i; }
  int classes() const { return call.count <= most_with_few_classes ? few_classes : many_classes; }
  int shared_bytes() const {
    const int queues = warps_of_block * queue_length(classes()) * warp_size;
    const int words_there = 2 * copy_words + norm_pitch_of(word_pitch) * norm_rows + queues;
    return words_there * static_cast<int>(sizeof(std::uint32_t));
  }
  int octet_rows() const { return classes() == few_classes ? octet / octet_columns_of(word_pitch) : 1; }
  // Octets of two rows begin at even ones, wherever a call begins.
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

// ---- Halves and norms ----

constexpr int prepared_rows = 8;                        // of a thread
constexpr int prepared_columns = warp_size - side + 1;  // of a warp: its last lanes only have neighbours
constexpr int preparing_warps = 4;

struct PreparedPixel {
  __half value = __half(0.0F);
  bool fits = true;

  __device__ PreparedPixel(const Bm3dMatchCall& call, int x, int y) {
    const Rect& rect = call.plane.rect;
    if (x < rect.x0 || x >= rect.x1 || y < rect.y0 || y >= rect.y1) return;
    const float scaled = (call.plane.at(0, x, y) - call.middle) * call.scale;
    fits = fabsf(scaled) <= largest_pixel;
    if (fits) value = __float2half_rn(scaled);
  }
};

// A thread makes a few rows of one column.
__global__ void __launch_bounds__(preparing_warps* warp_size) prepare_kernel(const HalvesCall halves) {
  const Bm3dMatchCall& call = halves.call;
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const int warp = static_cast<int>(blockIdx.x * preparing_warps + threadIdx.x / warp_size);
  const int column = warp * prepared_columns + lane;
  const int first_row = static_cast<int>(blockIdx.y) * prepared_rows;
  const int x = halves.x0 + column;
  const bool mine = lane < prepared_columns && column < halves.width;
  const Rect& rect = call.plane.rect;
  const bool columns_exist = x >= max(0, rect.x0) && x + side <= min(call.image.width, rect.x1);
  const auto at = [&](int i) { return static_cast<std::ptrdiff_t>(first_row + i) * halves.width + column; };

  float sums[prepared_rows + side - 1];  // of a row of 8 squares
#pragma unroll
  for (int i = 0; i < prepared_rows + side - 1; ++i) {
    const PreparedPixel pixel(call, x, halves.y0 + first_row + i);
    if (mine && i < prepared_rows && first_row + i < halves.rows) {
      reinterpret_cast<__half*>(halves.words[0])[at(i)] = pixel.value;
      auto* const later = reinterpret_cast<__half*>(halves.words[1]);
      if (column > 0) later[at(i) - 1] = pixel.value;
      if (column == halves.width - 1) later[at(i)] = __half(0.0F);
    }
    float sum = pixel.fits ? __half2float(pixel.value) * __half2float(pixel.value) : -unfit;
#pragma unroll
    for (int apart = 1; apart < side; apart *= 2) sum += __shfl_down_sync(all_lanes, sum, apart);
    sums[i] = sum;
  }
#pragma unroll
  for (int i = 0; i < prepared_rows; ++i) {
    const int y = halves.y0 + first_row + i;
    const bool exists = columns_exist && y >= max(0, rect.y0) && y + side <= min(call.image.height, rect.y1);
    const float sum = ((sums[i] + sums[i + 1]) + (sums[i + 2] + sums[i + 3])) +
                      ((sums[i + 4] + sums[i + 5]) + (sums[i + 6] + sums[i + 7]));
    const float norm = !exists ? outside : sum > far_beyond ? unfit : 0.5F * sum;
    if (mine && first_row + i < halves.rows) halves.norms[at(i)] = norm;
  }
}

// ---- Sorting ----
// Numbers of 8 lanes, lane 4 g + t with the same t: number g * Each + i is register i of lane g.

__device__ inline float smaller(float a, float b) { return fminf(a, b); }
__device__ inline float larger(float a, float b) { return fmaxf(a, b); }
__device__ inline unsigned smaller(unsigned a, unsigned b) { return min(a, b); }
__device__ inline unsigned larger(unsigned a, unsigned b) { return max(a, b); }

// Of a lane's numbers i and i ^ Apart the smaller goes to the lower place.
template <int Apart, int Each, class T>
__device__ void order_within(T (&numbers)[Each]) {
#pragma unroll
  for (int i = 0; i < Each; ++i) {
    const int other = i ^ Apart;
    if (other < i) continue;
    const T low = smaller(numbers[i], numbers[other]);
    numbers[other] = larger(numbers[i], numbers[other]);
    numbers[i] = low;
  }
}

// The same between lanes g and g ^ Apart; Reversed: number i meets number Each - 1 - i.
template <int Apart, bool Reversed, int Each, class T>
__device__ void order_across(T (&numbers)[Each]) {
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  constexpr int highest = Apart >= 4 ? 4 : Apart >= 2 ? 2 : 1;
  const bool upper = (lane / 4 & highest) != 0;
  T others[Each];
#pragma unroll
  for (int i = 0; i < Each; ++i) {
    others[i] = __shfl_xor_sync(all_lanes, numbers[Reversed ? Each - 1 - i : i], 4 * Apart);
  }
#pragma unroll
  for (int i = 0; i < Each; ++i) {
    numbers[i] = upper ? larger(numbers[i], others[i]) : smaller(numbers[i], others[i]);
  }
}

// Number i is in order with i ^ Apart, and so on down to i ^ 1.
template <int Apart, int Each, class T>
__device__ void order_all_within(T (&numbers)[Each]) {
  if constexpr (Apart > 0) {
    order_within<Apart>(numbers);
    order_all_within<Apart / 2>(numbers);
  }
}

// What Lanes lanes have first falls and then rises, or the other way round: makes it rise.
template <int Lanes, int Each, class T>
__device__ void merge(T (&numbers)[Each]) {
  if constexpr (Lanes > 1) {
    order_across<Lanes / 2, false>(numbers);
    merge<Lanes / 2>(numbers);
  } else {
    order_all_within<Each / 2>(numbers);
  }
}

// Runs of Size numbers rise: makes runs of all that a lane has rise.
template <int Size, int Each, class T>
__device__ void sort_within(T (&numbers)[Each]) {
  if constexpr (Size < Each) {
    order_within<2 * Size - 1>(numbers);
    order_all_within<Size / 2>(numbers);
    sort_within<2 * Size>(numbers);
  }
}

template <int Each, class T>
__device__ void sort(T (&numbers)[Each]) {
  sort_within<1>(numbers);
  order_across<1, true>(numbers);
  merge<1>(numbers);
  order_across<3, true>(numbers);
  merge<2>(numbers);
  order_across<7, true>(numbers);
  merge<4>(numbers);
}

// Number `index` of a lane, of Count from First on.
template <int First, int Count, int Each, class T>
__device__ T pick(const T (&numbers)[Each], int index) {
  if constexpr (Count == 1) {
    return numbers[First];
  } else {
    const T lower = pick<First, Count / 2>(numbers, index);
    const T upper = pick<First + Count / 2, Count / 2>(numbers, index);
    return (index & Count / 2) != 0 ? upper : lower;
  }
}

template <int Each, class T>
__device__ T number_at(const T (&numbers)[Each], int place) {
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  return __shfl_sync(all_lanes, pick<0, Each>(numbers, place), place / Each * 4 + lane % 4);
}

// The larger of the numbers of Lanes lanes.
template <int Lanes, int Each>
__device__ float largest_of(const float (&numbers)[Each]) {
  float largest = numbers[0];
#pragma unroll
  for (int i = 1; i < Each; ++i) largest = fmaxf(largest, numbers[i]);
#pragma unroll
  for (int apart = 1; apart < Lanes; apart *= 2)
    largest = fmaxf(largest, __shfl_xor_sync(all_lanes, largest, 4 * apart));
  return largest;
}

// Of two sorted halves, in lanes g and g ^ Apart of runs of lanes, the smaller numbers, in both: first rising
// and then falling, or the other way round.
template <int Apart, int Each>
__device__ void keep_smaller_half(float (&numbers)[Each]) {
  float others[Each];
#pragma unroll
  for (int i = 0; i < Each; ++i) others[i] = __shfl_xor_sync(all_lanes, numbers[Each - 1 - i], 4 * Apart);
#pragma unroll
  for (int i = 0; i < Each; ++i) numbers[i] = fminf(numbers[i], others[i]);
}

// The smallest and the n-th smallest of what 8 lanes have. For the usual n of 8 numbers each less than a
// sort: what cannot be among the n is dropped on the way, and the n are not put in order at the end.
template <int Each>
__device__ void find_least_and_nth(float (&numbers)[Each], int n, float& least, float& nth) {
  sort_within<1>(numbers);
  least = numbers[0];
#pragma unroll
  for (int apart = 1; apart < 8; apart *= 2)
    least = fminf(least, __shfl_xor_sync(all_lanes, least, 4 * apart));
  order_across<1, true>(numbers);
  merge<1>(numbers);
  if (Each == 8 && n == 2 * Each) {
    keep_smaller_half<3>(numbers);
    merge<2>(numbers);
    keep_smaller_half<7>(numbers);
    nth = largest_of<2>(numbers);
    return;
  }
  order_across<3, true>(numbers);
  merge<2>(numbers);
  if (Each == 8 && n == 4 * Each) {
    keep_smaller_half<7>(numbers);
    nth = largest_of<4>(numbers);
    return;
  }
  order_across<7, true>(numbers);
  merge<4>(numbers);
  nth = number_at(numbers, n - 1);
}

// ---- Distances ----

// A block's part of the image.
struct SharedArea {
  const std::uint32_t* words;
  const float* norms;
  int x0;  // even
  int y0;
};

// 8 references of a row, of which lane 4 g + t ranks candidates for the 2 t-th and the one after it, and the
// candidates around them, 16 columns (a tile) at a time: the lane's are those of columns g and g + 8. Pitch
// is that of the shared words, or 0 where it is known at run time only.
template <int Pitch>
class Octet {
 public:
  static constexpr int columns = octet_columns_of(Pitch);
  static constexpr int rows_of_references = octet / columns;

  __device__ Octet(const HalvesCall& halves, const SharedArea& area, int first_i, int j)
      : halves_(halves),
        area_(area),
        lane_(static_cast<int>(threadIdx.x) % warp_size),
        first_i_(first_i),
        first_j_(j),
        y_(halves.call.grid.y(j)) {
    const Bm3dGrid& grid = halves.call.grid;
    rows_down_ = rows_of_references > 1 ? grid.y(j + 1) - y_ : 0;
    own_down_ = j_of(0) > j ? rows_down_ : 0;
#pragma unroll
    for (int which = 0; which < 2; ++which)
      norms_[which] = *norms_at(grid.x(i_of(which)), y_ + own_down_) + bias;
    const int g = lane_ / 4;
    const std::uint32_t* const from =
        words_at(grid.x(first_i + g % columns) + 2 * (lane_ % 4), grid.y(j + g / columns));
    constexpr std::uint32_t both_signs = 0x80008000U;
#pragma unroll
    for (int row = 0; row < side; ++row) {
      pairs_[0][row / 2][row % 2] = from[row * word_pitch()] ^ both_signs;
      // Products take pairs of registers, and each row is in two pairs. Read apart, so that the compiler does
      // not take the second for the first and copy it before each product.
      const volatile std::uint32_t& again = from[row * word_pitch()];
      pairs_[1][(row + 7) % side / 2][(row + 1) % 2] = again ^ both_signs;
    }
  }

  __device__ int tiles() const {
    const Bm3dGrid& grid = halves_.call.grid;
    const int across = grid.x(first_i_ + columns - 1) - grid.x(first_i_) + halves_.call.search;
    return (across + tile_columns - 1) / tile_columns;
  }
  // Of all references' windows.
  __device__ int rows() const { return halves_.call.search + rows_down_; }
  // Whether 8 rows from there on lie in all their windows.
  __device__ bool all_have(int row) const { return row >= rows_down_ && row + side <= halves_.call.search; }

  // The references that this lane ranks candidates for.
  __device__ int i_of(int which) const { return first_i_ + (2 * (lane_ % 4) + which) % columns; }
  __device__ int j_of(int which) const { return first_j_ + (2 * (lane_ % 4) + which) / columns; }

  __device__ void begin_tile(int tile) {
    const int x = halves_.call.grid.x(first_i_) - halves_.reach() + tile_columns * tile + lane_ / 4;
    const int y = y_ - halves_.reach();
    next_words_ = words_at(x + 2 * (lane_ % 4), y);
    next_norms_ = norms_at(x, y);
#pragma unroll
    for (int row = 0; row < side; ++row) load_row(row, row);
    next_words_ += side * word_pitch();
#pragma unroll
    for (int which = 0; which < 2; ++which) {
      const int dx = x - halves_.call.grid.x(i_of(which));
      columns_[which] = dx + halves_.reach() + 1 - own_down_ * halves_.call.search;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        starts_[half][which] = abs(dx + 8 * half) <= halves_.reach() ? norms_[which] : outside;
      }
    }
  }

  // Column g of the tile in the octet's first row, counted as positions in the window of a reference are.
  __device__ int column(int which) const { return columns_[which]; }

  // Half the distances of the lane's candidates in `Rows` rows from `first` on, which is Phase or that and a
  // multiple of 8: calls visit(row - first, distances) for every few rows, in each those of column g and then
  // of g + 8, for the lane's two references each. `Some`: not all rows need lie in all windows, or be there.
  template <int Rows, bool Some, int Phase, class Visit>
  __device__ void take_rows(int first, const Visit& visit) {
#pragma unroll
    for (int i = 0; i < Rows; i += rows_together) {
      if (Some && first + i >= rows()) break;
      float distances[rows_together][4];
#pragma unroll
      for (int k = 0; k < rows_together; ++k) {
        const auto own_row = static_cast<unsigned>(first + i + k - own_down_);
        const bool mine = !Some || own_row < static_cast<unsigned>(halves_.call.search);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float norm = next_norms_[(i + k) * norm_pitch() + 8 * half];
          if (!mine) norm = outside;
          distances[k][2 * half] = norm + starts_[half][0];
          distances[k][2 * half + 1] = norm + starts_[half][1];
        }
        // The patches' rows lie in the ring from here on; that which comes next replaces the first.
        const int top = Phase + i + k;
#pragma unroll
        for (int product = 0; product < 4; ++product) {
          const std::uint32_t(&rows)[4] = ring_[((top + 1) / 2 + product) % 4];
          const std::uint32_t(&references)[2] = pairs_[top % 2][product];
          add_product(distances[k], rows[0], rows[1], rows[2], rows[3], references[0], references[1]);
        }
        load_row(top % side, i + k);
      }
      visit(i, distances);
    }
    next_words_ += Rows * word_pitch();
    next_norms_ += Rows * norm_pitch();
  }

 private:
  __device__ int word_pitch() const { return Pitch > 0 ? Pitch : halves_.word_pitch; }
  __device__ int norm_pitch() const { return norm_pitch_of(word_pitch()); }
  __device__ const std::uint32_t* words_at(int x, int y) const {
    const int column = x - area_.x0;
    return area_.words + column % 2 * halves_.copy_words + (y - area_.y0) * word_pitch() + column / 2;
  }
  __device__ const float* norms_at(int x, int y) const {
    return area_.norms + (y - area_.y0) * norm_pitch() + x - area_.x0;
  }
  __device__ void load_row(int place, int row) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      ring_[place / 2][place % 2 * 2 + half] = next_words_[row * word_pitch() + 4 * half];
    }
  }

  const HalvesCall& halves_;
  const SharedArea& area_;
  int lane_;
  int first_i_;
  int first_j_;
  int y_;           // of the first row of references
  int rows_down_;   // from there to the last
  int own_down_;    // and to this lane's
  float norms_[2];  // with the bias
  // Pixels 2 t and 2 t + 1 of the rows of reference g, negated, two rows as one product takes them: 0 and 1,
  // 2 and 3 ...; and 1 and 2, 3 and 4 ..., 7 and 0.
  std::uint32_t pairs_[2][4][2];
  const std::uint32_t* next_words_;
  const float* next_norms_;
  // Pixels of the lane's columns in the 8 rows of its candidates: row y of the window at y mod 8, two rows as
  // one product takes them.
  std::uint32_t ring_[4][4];
  float starts_[2][2];
  int columns_[2];
};

// ---- The nearest ----

// What a lane knows of one of its references.
struct Nearness {
  bool wanted;      // it is one of the call's
  bool left_out;    // by this kernel
  float threshold;  // half the distance, with the bias
  float scale;      // to numbers of fixed point, a power of two
  unsigned limit;   // keys are smaller
};

// The first pass.
template <int Classes, int Pitch>
__device__ void find_thresholds(const HalvesCall& halves, Octet<Pitch>& candidates, Nearness (&nearness)[2]) {
  float smallest[2][Classes];
#pragma unroll
  for (int i = 0; i < Classes; ++i) smallest[0][i] = smallest[1][i] = outside;
  const auto keep_smallest = [&](int first_row, const float(&distances)[rows_together][4]) {
#pragma unroll
    for (int k = 0; k < rows_together; ++k) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = first_row + k;
        float& least = smallest[i % 2][Classes == many_classes ? 2 * row + i / 2 : row];
        least = fminf(least, distances[k][i]);
      }
    }
  };
  const int tiles = candidates.tiles();
  const int rows = candidates.rows();
  for (int tile = 0; tile < tiles; ++tile) {
    candidates.begin_tile(tile);
    for (int row = 0; row < rows; row += side) {
      if (candidates.all_have(row)) {
        candidates.template take_rows<side, false, 0>(row, keep_smallest);
      } else {
        candidates.template take_rows<side, true, 0>(row, keep_smallest);
      }
    }
  }

  // One after the other, here and where keys are sorted: code for each would make more of it than the
  // instruction cache holds together with the passes.
#pragma unroll 1
  for (int which = 0; which < 2; ++which) {
    float own[Classes];
#pragma unroll
    for (int i = 0; i < Classes; ++i) own[i] = which == 0 ? smallest[0][i] : smallest[1][i];
    float least = 0;
    float enough = 0;
    find_least_and_nth(own, halves.call.count, least, enough);
    Nearness of;
    of.wanted = halves.has(candidates.i_of(which), candidates.j_of(which));
    of.left_out = least < -far_beyond || (enough > far_beyond && halves.farthest > largest_half_distance);
    of.threshold = of.wanted && !of.left_out ? fminf(enough, halves.farthest) : no_threshold;
    // Thresholds become numbers of just as many bits as there are.
    const unsigned bits = 32 - halves.position_bits;
    const unsigned exponent = __float_as_uint(fmaxf(of.threshold, bias)) >> 23;
    of.scale = __uint_as_float((bits - 1 + 254 - exponent) << 23);
    of.limit = ~0U;
    if (which == 0) {
      nearness[0] = of;
    } else {
      nearness[1] = of;
    }
  }
}

constexpr unsigned no_key = ~0U;

// The keys of a lane: of its first reference from the lower end up, of its second from the upper end down.
template <int Length>
class LaneQueue {
 public:
  __device__ explicit LaneQueue(unsigned* places) : places_(places) { clear(); }

  __device__ void clear() {
    next_[0] = 0;
    next_[1] = highest;
  }
  __device__ void push(int which, unsigned key) {
    places_[next_[which]] = key;
    next_[which] += which == 0 ? warp_size : -warp_size;
  }
  __device__ bool may_overflow() const { return next_[1] - next_[0] < (most_added - 1) * warp_size; }
  __device__ int size(int which) const { return (which == 0 ? next_[0] : highest - next_[1]) / warp_size; }
  __device__ unsigned at(int which, int index) const {
    return places_[which == 0 ? index * warp_size : highest - index * warp_size];
  }

 private:
  static constexpr int highest = (Length - 1) * warp_size;

  unsigned* places_;  // every 32nd is the lane's
  int next_[2];
};

// Of the keys that 8 lanes have for a reference the smallest 64 in their order, but not that of the
// reference itself as a candidate: `centre`.
template <int Length>
__device__ void sort_keys(const LaneQueue<Length>& queue, int which, unsigned position_mask, unsigned centre,
                          unsigned (&keys)[8]) {
  const int size = queue.size(which);
  const auto load = [&](int first, unsigned(&to)[8]) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      to[i] = first + i < size ? queue.at(which, first + i) : no_key;
      if ((to[i] & position_mask) == centre) to[i] = no_key;
    }
  };
#pragma unroll 1
  for (int first = 0; first == 0 || __any_sync(all_lanes, first < size); first += 8) {
    unsigned more[8];
    load(first, more);
    sort(more);
    if (first == 0) {
#pragma unroll
      for (int i = 0; i < 8; ++i) keys[i] = more[i];
      continue;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      keys[i] = min(keys[i], __shfl_xor_sync(all_lanes, more[7 - i], 4 * 7));
    }
    merge<8>(keys);
  }
}

__device__ void store(const HalvesCall& halves, const unsigned (&keys)[8], unsigned position_mask, int i,
                      int j, bool wanted, bool left_out) {
  const Bm3dMatchCall& call = halves.call;
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const int first_place = lane / 4 * 8;
  unsigned offsets[8];
  int found = 0;
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    const bool is_there = keys[k] != no_key && first_place + k < call.count;
    offsets[k] = is_there ? halves.offset(keys[k] & position_mask) : 0;
    found += is_there ? 1 : 0;
  }
#pragma unroll
  for (int apart = 4; apart < warp_size; apart *= 2) found += __shfl_xor_sync(all_lanes, found, apart);
  if (!wanted) return;
  const std::ptrdiff_t reference =
      static_cast<std::ptrdiff_t>(j - call.grid.first_j) * call.grid.count_i + (i - call.grid.first_i);
  if (lane / 4 == 0) call.found[reference] = static_cast<std::uint8_t>(left_out ? 0 : found);
  auto* const places = reinterpret_cast<std::uint16_t*>(call.offsets) + reference * call.count + first_place;
  if (call.count % 8 == 0) {
    if (first_place < call.count) {
      *reinterpret_cast<uint4*>(places) =
          make_uint4(offsets[0] | offsets[1] << 16, offsets[2] | offsets[3] << 16,
                     offsets[4] | offsets[5] << 16, offsets[6] | offsets[7] << 16);
    }
  } else {
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      if (first_place + k < call.count) places[k] = static_cast<std::uint16_t>(offsets[k]);
    }
  }
}

// The second pass.
template <int Pitch, int Length>
__device__ void queue_nearest(const HalvesCall& halves, Octet<Pitch>& candidates, Nearness (&nearness)[2],
                              LaneQueue<Length>& queue) {
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  unsigned positions = 1U << halves.position_bits;
  const unsigned position_mask = positions - 1;
  // A number that the compiler does not know as a power of two: multiplying and adding are one instruction,
  // shifting and adding are two.
  asm("" : "+r"(positions));
  if (lane / 4 == 0) {  // the reference itself
    queue.push(0, 0);
    queue.push(1, 0);
  }

  const int tiles = candidates.tiles();
  const int rows = candidates.rows();
  int tile = 0;
  int row = 0;
  while (true) {
    const auto push_hits = [&](int first_row, const float(&distances)[rows_together][4]) {
      // All questions before the first answer is needed.
      bool hits[rows_together];
#pragma unroll
      for (int k = 0; k < rows_together; ++k) {
        hits[k] = __any_sync(all_lanes, distances[k][0] <= nearness[0].threshold ||
                                            distances[k][1] <= nearness[1].threshold ||
                                            distances[k][2] <= nearness[0].threshold ||
                                            distances[k][3] <= nearness[1].threshold);
      }
#pragma unroll
      for (int k = 0; k < rows_together; ++k) {
        if (!hits[k]) continue;
        const int first_position = (row + first_row + k) * halves.call.search;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const Nearness& of = nearness[i % 2];
          const int position = first_position + candidates.column(i % 2) + i / 2 * 8;
          // The lower bits of a float from 2^23 on are a whole number.
          constexpr float whole = 8388608;
          const unsigned fixed = __float_as_uint(__fmaf_rz(distances[k][i], of.scale, whole));
          const unsigned key = fixed * positions + static_cast<unsigned>(position);
          if (distances[k][i] <= of.threshold && key < of.limit) queue.push(i % 2, key);
        }
      }
    };
    // Whether all queues have room for what the next rows may add.
    const auto have_room = [&] { return !__any_sync(all_lanes, queue.may_overflow()); };
    bool room = true;
    if (row % side != 0) {  // queues were full in the middle of 8 rows
      candidates.template take_rows<rows_at_once, true, rows_at_once>(row, push_hits);
      row += rows_at_once;
      if (row >= rows) row = 0, ++tile;
      room = have_room();
    }
    while (room && tile < tiles) {
      if (row == 0) candidates.begin_tile(tile);
      if (candidates.all_have(row)) {
        candidates.template take_rows<rows_at_once, false, 0>(row, push_hits);
        row += rows_at_once;
        room = have_room();
        if (!room) break;
        candidates.template take_rows<rows_at_once, false, rows_at_once>(row, push_hits);
        row += rows_at_once;
        if (row >= rows) row = 0, ++tile;
      } else {
        candidates.template take_rows<rows_at_once, true, 0>(row, push_hits);
        row += rows_at_once;
        room = have_room();
        if (!room && row < rows) break;
        if (row < rows) candidates.template take_rows<rows_at_once, true, rows_at_once>(row, push_hits);
        row += rows_at_once;
        if (row >= rows) row = 0, ++tile;
      }
      room = have_room();
    }

    const bool is_end = tile == tiles;
    unsigned keys[8] = {};
    unsigned keys_of_first[8] = {};
#pragma unroll 1
    for (int which = 0; which < 2; ++which) {
#pragma unroll
      for (int i = 0; i < 8; ++i) keys_of_first[i] = keys[i];
      sort_keys(queue, which, position_mask, static_cast<unsigned>(halves.centre()), keys);
      if (is_end) {
        store(halves, keys, position_mask, candidates.i_of(which), candidates.j_of(which),
              which == 0 ? nearness[0].wanted : nearness[1].wanted,
              which == 0 ? nearness[0].left_out : nearness[1].left_out);
      }
    }
    if (is_end) return;
    queue.clear();
    const auto tighten = [&](int which, const unsigned(&nearest)[8]) {
      Nearness& of = nearness[which];
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const bool stays = lane / 4 * 8 + i < halves.call.count && nearest[i] != no_key;
        if (stays) queue.push(which, nearest[i]);
      }
      of.limit = number_at(nearest, halves.call.count - 1);
      const auto beyond = static_cast<float>((of.limit >> halves.position_bits) + 1) / of.scale;
      of.threshold = fminf(of.threshold, beyond);
    };
    tighten(0, keys_of_first);
    tighten(1, keys);
  }
}

template <int Classes, int Pitch>
__global__ void __launch_bounds__(warps_of_block* warp_size, 2) halves_match_kernel(const HalvesCall halves) {
  extern __shared__ std::uint32_t shared[];
  std::uint32_t* const words = shared;
  auto* const norms = reinterpret_cast<float*>(shared + 2 * halves.copy_words);
  const int word_pitch = halves.word_pitch;
  const int norm_pitch = norm_pitch_of(word_pitch);
  unsigned* const queues = shared + 2 * halves.copy_words + norm_pitch * halves.norm_rows;
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  const Bm3dGrid& grid = halves.call.grid;
  const int first_i = halves.first_octet() + static_cast<int>(blockIdx.x) * columns_of_block;
  constexpr int octet_columns = Octet<Pitch>::columns;
  constexpr int octet_rows = Octet<Pitch>::rows_of_references;
  const int first_j =
      grid.first_j / octet_rows * octet_rows + static_cast<int>(blockIdx.y) * halves.rows_of_block;
  // Where a row of 16-byte pieces begins. References past the last lie upon it: then it is their window that
  // begins in the middle of a piece, and they need less than other blocks.
  const int column = (grid.x(first_i) - halves.reach() - halves.x0) / columns_step * columns_step;
  const SharedArea area{words, norms, halves.x0 + column, grid.y(first_j) - halves.reach()};
  const int row = area.y0 - halves.y0;
  const auto copy = [&](const auto* from, int columns_a_word, std::uint32_t* to, int pitch, int rows) {
    const int row_words = halves.width / columns_a_word;
    const int first_word = column / columns_a_word;
    const int pieces = min(pitch, row_words - first_word) / piece_words;
    for (int y = warp; y < min(rows, halves.rows - row); y += warps_of_block) {
      const auto* const from_row = from + static_cast<std::ptrdiff_t>(row + y) * row_words + first_word;
      for (int piece = lane; piece < pieces; piece += warp_size)
        copy_async(to + y * pitch + piece * piece_words, from_row + piece * piece_words);
    }
  };
#pragma unroll
  for (int which = 0; which < 2; ++which)
    copy(halves.words[which], 2, words + which * halves.copy_words, word_pitch, halves.word_rows);
  copy(halves.norms, 1, reinterpret_cast<std::uint32_t*>(norms), norm_pitch, halves.norm_rows);
  wait_for_all_copies();
  __syncthreads();

  constexpr int octets_across = columns_of_block / octet_columns;
  const int octets = 2 * halves.rows_of_block;
  for (int index = warp; index < octets; index += warps_of_block) {
    const int i = first_i + index % octets_across * octet_columns;
    const int j = first_j + index / octets_across * octet_rows;
    if (j >= halves.end_j()) break;
    if (i >= halves.end_i()) continue;
    Octet<Pitch> candidates(halves, area, i, j);
    Nearness nearness[2];
    find_thresholds<Classes>(halves, candidates, nearness);
    constexpr int length = queue_length(Classes);
    LaneQueue<length> queue(queues + warp * length * warp_size + lane);
    queue_nearest(halves, candidates, nearness, queue);
  }
}

// ---- The call ----

HalvesCall halves_call(const Bm3dMatchCall& call, int rows_of_block) {
  HalvesCall halves{};
  halves.call = call;
  const Bm3dGrid& grid = call.grid;
  const int reach = call.search / 2;
  halves.rows_of_block = rows_of_block;
  const int across = (columns_of_block - 1) * grid.spacing + 2 * reach;
  const int down = (rows_of_block - 1) * grid.spacing + 2 * reach;
  const int pitch = ((across + 23) / 2 + 2 + piece_words - 1) / piece_words * piece_words;
  halves.word_pitch = pitch <= narrow_pitch   ? narrow_pitch
                      : pitch <= middle_pitch ? middle_pitch
                      : pitch <= wide_pitch   ? wide_pitch
                                              : pitch;

  // What is looked at past the windows: rows so that there are enough together, one row for what follows, and
  // columns that fill up tiles.
  const int more_rows = rows_together - 1;
  const int last_i = (halves.end_i() - 1) / octet * octet + octet - 1;
  const int last_j =
      (halves.end_j() - 1) / halves.octet_rows() * halves.octet_rows() + halves.octet_rows() - 1;
  halves.x0 = (grid.x(halves.first_octet()) - reach) & ~1;
  halves.y0 = grid.y(halves.first_row()) - reach;
  const int width = grid.x(last_i) + reach + 26 - halves.x0;
  halves.width = (width + columns_step - 1) / columns_step * columns_step;
  halves.rows = grid.y(last_j) + reach + more_rows + side + 1 - halves.y0;
  const std::size_t words = static_cast<std::size_t>(halves.width / 2) * halves.rows;
  if (call.scratch != nullptr) {
    halves.words[0] = reinterpret_cast<std::uint32_t*>(call.scratch);
    halves.words[1] = halves.words[0] + words;
    halves.norms = call.scratch + 2 * words;
  }

  halves.word_rows = down + more_rows + side + 1;
  // A warp loads from 7 neighbouring banks of each copy: the copies are 16 banks apart.
  halves.copy_words = (halves.word_pitch * halves.word_rows + 15) / 32 * 32 + 16;
  halves.norm_rows = down + more_rows + 1;

  constexpr int fewest_position_bits = 9;  // what is left is no more than a float has
  halves.position_bits = fewest_position_bits;
  while (call.search * call.search >= 1 << halves.position_bits) ++halves.position_bits;
  halves.inverse_side = ((1U << 21) + call.search - 1) / call.search;
  const double scale = call.scale;
  halves.farthest = static_cast<float>(0.5 * call.max_distance * scale * scale + bias);
  return halves;
}

dim3 grid_of(const HalvesCall& halves) {
  return {static_cast<unsigned>(blocks_for(halves.end_i() - halves.first_octet(), columns_of_block)),
          static_cast<unsigned>(blocks_for(halves.end_j() - halves.first_row(), halves.rows_of_block))};
}

int attribute(cudaDeviceAttr which) {
  int device = 0;
  int value = 0;
  check(cudaGetDevice(&device), "asking for the GPU");
  check(cudaDeviceGetAttribute(&value, which, device), "asking for the GPU");
  return value;
}

// The rows of references of a block with which all blocks are done soonest, of those that leave room for two
// blocks on a multiprocessor, or at least for one; 0 where there is no room.
int rows_of_block(const Bm3dMatchCall& call) {
  constexpr int kept_back = 1024;  // of shared memory, by the driver for each block
  const int of_block = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  const int of_two = attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor) / 2 - kept_back;
  const int processors = attribute(cudaDevAttrMultiProcessorCount);
  for (const int together : {2, 1}) {
    const int most_bytes = together == 2 ? std::min(of_block, of_two) : of_block;
    int best = 0;
    double best_time = 0;
    for (int rows = most_rows_of_block; rows >= fewest_rows_of_block; rows -= rows_step) {
      const HalvesCall halves = halves_call(call, rows);
      if (halves.shared_bytes() > most_bytes) continue;
      const dim3 grid = grid_of(halves);
      constexpr double filling = 0.5;  // shared memory takes about as long as searching for so many rows
      const double time =
          blocks_for(static_cast<int>(grid.x * grid.y), together * processors) * (rows + filling);
      if (best == 0 || time < best_time) {
        best = rows;
        best_time = time;
      }
    }
    if (best > 0) return best;
  }
  return 0;
}

auto kernel_for(const HalvesCall& halves) {
  // Long lists are rare.
  if (halves.classes() == many_classes) return halves_match_kernel<many_classes, 0>;
  const int pitch = halves.word_pitch;
  return pitch == narrow_pitch   ? halves_match_kernel<few_classes, narrow_pitch>
         : pitch == middle_pitch ? halves_match_kernel<few_classes, middle_pitch>
         : pitch == wide_pitch   ? halves_match_kernel<few_classes, wide_pitch>
                                 : halves_match_kernel<few_classes, 0>;
}

bool shape_suits(const Bm3dMatchCall& call) {
  return call.patch == side && call.search <= widest_search && call.count <= most_wanted;
}

}  // namespace

std::size_t halves_match_scratch(const Bm3dMatchCall& call) {
  if (!shape_suits(call) || call.grid.references() == 0) return 0;
  const HalvesCall halves = halves_call(call, fewest_rows_of_block);
  const std::size_t pixels = static_cast<std::size_t>(halves.width) * halves.rows;
  return 2 * pixels;  // two copies of halves, and the norms
}

bool halves_suit(const Bm3dMatchCall& call) {
  constexpr int first_with_products = 8;
  return shape_suits(call) && attribute(cudaDevAttrComputeCapabilityMajor) >= first_with_products &&
         rows_of_block(call) > 0;
}

void launch_halves_match(const Bm3dMatchCall& call, Stream stream) {
  const HalvesCall halves = halves_call(call, rows_of_block(call));
  launch(prepare_kernel,
         dim3(blocks_for(halves.width, preparing_warps * prepared_columns),
              blocks_for(halves.rows, prepared_rows)),
         preparing_warps * warp_size, 0, stream, halves);
  launch(kernel_for(halves), grid_of(halves), warps_of_block * warp_size, halves.shared_bytes(), stream,
         halves);
}

}  // namespace ungrain::cuda
