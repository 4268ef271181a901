// The search of the whole image for similar patches on tensor cores: what its kernels share.
//
// The distance of two patches is |a|² + |b|² - 2 a b, and all distances together are a product of matrices. A
// pixel is a vector: the pixels of its patch less the middle of the image's values, each times the root of
// its weight and of the strength, as halves. Four more numbers carry both norms into the product, so that the
// tensor cores return the exponent itself. Norms are those of the rounded vectors, so that distances are
// exact for an image rounded to halves; a norm is two halves, 22 bits. For more precision every component is
// two halves as well, and three products replace one.
//
// A block holds the vectors of some pixels (queries) in registers; those of all pixels (keys) stream through
// shared memory. The distances are never stored. A row's sums are folded once a stage, so that rounding does
// not grow with the image.
//
// The effect of rounding to halves on a weight grows with the distance. It matters where even the nearest
// patch is far and the pixel's own weight is no larger than that patch's: such pixels are listed, and
// searched for again with pairs of halves. Where a sample of the image's pixels says that they are many, all
// are searched for with pairs of halves at once.
#pragma once

#include <cuda_fp16.h>

#include <climits>
#include <cstdint>

#include "cuda/exp2.cuh"
#include "cuda/launch.cuh"
#include "cuda/load.cuh"
#include "cuda/products.cuh"
#include "cuda/search_weights.cuh"
#include "cuda/whole_image_sample.h"

namespace ungrain::cuda {

inline constexpr int most_whole_image_patch = 9;

// How an image's patches are compared.
enum class WholeImagePrecision {
  halves,  // each pixel one half
  pairs,   // each pixel two halves
  floats,  // differences of floats: no product at all
};

// The layout of the keys' vectors and values for the kernel that reads them: tiles of 8 keys. In a tile, lane
// 4 n + t of a warp has the numbers 2 t and 2 t + 1 of every eight of key n, two to a word.
struct KeyLayout {
  int words = 0;           // of a lane in a tile
  int adjacent_words = 0;  // of them side by side: [tile][words / adjacent_words][lane][adjacent_words]
  int keys = 0;            // of a stage
  int planes = 0;          // of values: the channels, and both coordinates where they count
  // Values of channels are pairs of halves, for the tensor cores; otherwise floats. See half_of().
  bool values_are_halves = false;

  __host__ __device__ int word(int word, int lane) const {
    return (word / adjacent_words * 32 + lane) * adjacent_words + word % adjacent_words;
  }
  // Place of the upper half of a key's value in its plane of a stage; the lower half is `to_lower_half`
  // halves further. Of every 32 keys a lane reads those that it needs at once, as the factor b of two
  // products (cuda/products.cuh).
  __host__ __device__ static int half_of(int key) {
    const int in_product = key % 16;
    const int word = in_product % 8 / 2 * 4 + key % 32 / 16 * 2 + in_product / 8;
    return key / 32 * 64 + 2 * word + key % 2;
  }
  static constexpr int to_lower_half = 32;
};

// Weights as halves are raised by this power of two, so that small ones keep their digits: the largest is
// 2^14, the smallest 2^-38.
inline constexpr int raised_weights = 14;

// Sums as integers, of which atomic additions in any order give the same bits: raised weights, and these
// times values from -1 to 1, both times this. At most 2^34 times the number of pixels.
inline constexpr float integer_sums_scale = 1 << 20;

struct WholeImageCall {
  BorderedPlane in;
  Planes out;
  int first_channel;
  int channels;
  int patch;    // side
  float scale;  // values times this, their differences squared and averaged over a patch, are exponents
  float roots[most_whole_image_patch];  // of the patch's weights along one axis, times the root of scale
  float centre_root;                    // of the middle pixel, which may have a weight of its own
  float noise;                          // that noise alone adds to an exponent
  float space_root;                     // positions times this, their differences squared, are exponents
  bool self_is_max;
  bool halves_allowed;  // or only pairs of halves
  WholeImagePrecision precision;
  KeyLayout layout;
  int groups;           // of keys
  int samples;          // not 0: only this many pixels are searched for, for their nearest patch alone
  unsigned* header;     // see HeaderField
  unsigned* nearest;    // a sampled pixel's largest weight; its bits have the order of such numbers
  unsigned* list;       // pixels of the area that must be searched for again
  float* norms;         // of the vectors, negated
  std::uint32_t* keys;  // as layout says
  float* values;        // [stage][plane][key]
  float* sums;          // [group][weights, values of each channel, largest][pixel of the area]
  unsigned long long* integer_sums;  // [values of each channel, weights][pixel of the image]

  __host__ __device__ int pixels() const { return in.image.width * in.image.height; }
  __host__ __device__ int components() const { return channels * patch * patch; }
  // Numbers of a vector before those for the norms.
  __host__ __device__ int factors() const {
    return (precision == WholeImagePrecision::pairs ? 3 : 1) * components();
  }
};

// Values that kernels leave for later ones.
enum HeaderField {
  highest_value,  // of the image, and the lowest negated: see ordered()
  lowest_value,
  left_undone,  // 1: differences of floats are needed instead of products
  listed,       // pixels
  only_pairs,   // 1: halves are not worthwhile, because too many pixels would be listed
  header_fields,
};
// Samples follow the fields; the keys that follow are copied by 16 bytes.
inline constexpr std::size_t header_words = (header_fields + 3) / 4 * 4 + most_samples;
static_assert(header_words % 4 == 0);

// Maps the smallest and the largest value of an image to unsigned numbers in the same order, the smallest
// negated, so that both start at zero and only grow.
__device__ inline unsigned ordered(float value) {
  const unsigned bits = __float_as_uint(value);
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}
__device__ inline float from_ordered(unsigned bits) {
  return __uint_as_float((bits & 0x80000000U) != 0 ? bits & 0x7FFFFFFFU : ~bits);
}

struct ValueRange {
  float centre;
  float spread;

  __device__ explicit ValueRange(const WholeImageCall& call) {
    float high = from_ordered(call.header[highest_value]);
    float low = -from_ordered(call.header[lowest_value]);
    if (call.in.border == Border::constant) {
      high = fmaxf(high, 0.0F);
      low = fminf(low, 0.0F);
    }
    centre = 0.5F * low + 0.5F * high;
    spread = 0.5F * high - 0.5F * low;
  }

  // Values as halves: from -1 to 1.
  __device__ float narrowed(float value) const { return spread > 0 ? (value - centre) / spread : 0.0F; }

  // Decided by the largest possible norm of a vector. Norms must fit halves, and a product's rounding grows
  // with them: 2^-22 of 4000 is 1e-3 of an exponent, of 30000 7e-3.
  __device__ WholeImagePrecision precision(const WholeImageCall& call) const {
    constexpr float most_for_halves = 4000;
    constexpr float most_for_pairs = 30000;
    constexpr int most_factors = 444;  // of the longest vectors that a kernel is compiled for
    const float own = call.centre_root * spread;
    const float mean = call.scale * spread;
    const float norm = static_cast<float>(call.channels) * (mean * mean + own * own);
    if (call.halves_allowed && norm <= most_for_halves) return WholeImagePrecision::halves;
    const bool fits = norm <= most_for_pairs && 3 * call.components() <= most_factors;
    return fits ? WholeImagePrecision::pairs : WholeImagePrecision::floats;
  }
};

// Which pixels a call's kernels search for.
enum class QuerySet { none, all, listed };

__device__ inline QuerySet query_set(const WholeImageCall& call) {
  WholeImagePrecision chosen = ValueRange(call).precision(call);
  if (chosen == WholeImagePrecision::halves && call.header[only_pairs] != 0) {
    chosen = WholeImagePrecision::pairs;
  }
  if (chosen == call.precision) return QuerySet::all;
  const bool again = chosen == WholeImagePrecision::halves && call.precision == WholeImagePrecision::pairs &&
                     call.header[listed] > 0;
  return again ? QuerySet::listed : QuerySet::none;
}

// From a pixel's sums: whether halves were precise enough for it. See the README of nlm for the bound.
__device__ inline bool are_precise(const WholeImageCall& call, float largest) {
  constexpr float near_enough = 0.5F;
  return call.precision != WholeImagePrecision::halves || !call.self_is_max || largest >= near_enough;
}
__device__ inline void list_pixel(const WholeImageCall& call, int pixel) {
  call.list[atomicAdd(&call.header[listed], 1U)] = static_cast<unsigned>(pixel);
}

__device__ inline __half high_half(float value) { return __float2half_rn(value); }
__device__ inline __half low_half(float value) {
  return __float2half_rn(value - __half2float(high_half(value)));
}

// Two numbers of a query's vector, made from its pixel's vector as a key. Without branches, so that all loads
// of a vector are in flight together.
template <int Words, int AdjacentWords>
__device__ std::uint32_t query_word(const WholeImageCall& call, int position, float norm, int slot) {
  constexpr KeyLayout layout{Words, AdjacentWords};
  const std::ptrdiff_t tile = static_cast<std::ptrdiff_t>(position / 8) * Words * 32;
  const auto* const halves = reinterpret_cast<const __half*>(call.keys + tile);
  const auto number = [&](int at) {
    const int after = at - call.factors();
    // With pairs, a key has high, low and high parts, a query high, high and low parts.
    const int part = after >= 0 ? 0 : at < call.components() ? at : at - call.components();
    const int lane = position % 8 * 4 + part % 8 / 2;
    const __half factor = __hmul(__float2half_rn(2.0F), halves[2 * layout.word(part / 8, lane) + part % 2]);
    const __half of_norm = after == 0   ? high_half(norm)
                           : after == 1 ? low_half(norm)
                                        : __float2half_rn(after < 4 ? 1.0F : 0.0F);
    return after < 0 ? factor : of_norm;
  };
  const __half2 both = __halves2half2(number(slot), number(slot + 1));
  return reinterpret_cast<const std::uint32_t&>(both);
}

// A warp's queries (rows of the product) and their sums: `Tiles` tiles, `Apart` queries from one to the next,
// of 16 rows. A lane has a fourth of two of the rows. `OfHalves`: the sums are products too, of the weights
// as halves and the values as pairs of halves.
template <int Channels, SearchWeights Weights, int Tiles, int Apart, bool OfHalves = false>
class QueryRows {
 public:
  static constexpr bool has_space = Weights == SearchWeights::bilateral;
  static constexpr bool is_general = Weights == SearchWeights::general;
  static constexpr int planes = Channels + (has_space ? 2 : 0);

  struct Sums {
    float weights[Tiles][2] = {};
    float values[Channels][Tiles][2] = {};
  };
  // Sums by products: the columns are the upper and the lower part of each channel's values, then the
  // weights.
  struct Products {
    float sums[Tiles][4] = {};
  };
  static constexpr int columns_of_values = 2 * Channels;
  static_assert(!OfHalves || (!is_general && columns_of_values < 8));

  // `first` is the warp's first query; a block has `of_block` from `first_of_block` on.
  __device__ QueryRows(const WholeImageCall& call, QuerySet which, int first_of_block, int of_block,
                       int first)
      : call_(call),
        area_(call.out.rect),
        from_list_(which == QuerySet::listed),
        lane_(static_cast<int>(threadIdx.x) % 32),
        first_of_block_(first_of_block),
        last_of_block_(min(first_of_block + of_block, count()) - 1),
        first_(first) {
    const int width = call_.in.image.width;
#pragma unroll
    for (int tile = 0; tile < Tiles; ++tile) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int position = query_of(tile, half) < count() ? position_of(query_of(tile, half)) : no_query;
        positions_[tile][half] = position;
        if constexpr (has_space) {
          x_[tile][half] = static_cast<float>(position % width) * call_.space_root;
          y_[tile][half] = static_cast<float>(position / width) * call_.space_root;
        }
      }
    }
    lowest_ = INT_MAX;
    highest_ = no_query;
#pragma unroll
    for (int tile = 0; tile < Tiles; ++tile) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int position = positions_[tile][half];
        highest_ = max(highest_, position);
        if (position != no_query) lowest_ = min(lowest_, position);
      }
    }
    for (int apart = 16; apart > 0; apart /= 2) {
      lowest_ = min(lowest_, __shfl_xor_sync(~0U, lowest_, apart));
      highest_ = max(highest_, __shfl_xor_sync(~0U, highest_, apart));
    }
  }

  // Whether the block has no query.
  __device__ bool is_idle() const { return first_of_block_ >= count(); }
  __device__ int lane() const { return lane_; }
  // A lane's numbers of the queries' vectors, `K8` times eight of them: [tile][2 k + half].
  template <int K8, int Words, int AdjacentWords>
  __device__ void load(std::uint32_t (&numbers)[Tiles][2 * K8]) const {
#pragma unroll
    for (int tile = 0; tile < Tiles; ++tile) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int position = max(positions_[tile][half], 0);  // without a query: any will do
        const float norm = call_.norms[position];
#pragma unroll
        for (int k = 0; k < K8; ++k) {
          numbers[tile][2 * k + half] =
              query_word<Words, AdjacentWords>(call_, position, norm, 8 * k + 2 * (lane_ % 4));
        }
      }
    }
  }

  // The stages that this block of the grid takes.
  __device__ void stages(int keys, int& from, int& to) const {
    const int all = (call_.pixels() + keys - 1) / keys;
    from = static_cast<int>(static_cast<long long>(all) * blockIdx.y / call_.groups);
    to = static_cast<int>(static_cast<long long>(all) * (blockIdx.y + 1) / call_.groups);
    if constexpr (has_space) leave_out_far_rows(keys, from, to);
  }

  // A lane's numbers of the values, as a factor of a product: its column's, of every stage.
  struct LaneValues {
    const float* first;  // of the first buffer
    int apart;           // from one buffer to the next

    __device__ const uint4* of(int buffer) const {
      return reinterpret_cast<const uint4*>(first + buffer * apart);
    }
  };
  // `ones` holds as many words as a plane, all of them pairs of ones.
  __device__ LaneValues values_of_lane(const float* values, int stage_values, const float* ones,
                                       int keys_of_stage) const {
    const int column = lane_ / 4;
    const bool of_value = column < columns_of_values;
    const int lower = column % 2 * KeyLayout::to_lower_half / 2;
    const float* const first = of_value ? values + column / 2 * keys_of_stage + lower : ones;
    return {first + 4 * (lane_ % 4), of_value ? stage_values : 0};
  }
  // Turns a lane's products of a tile of queries and 32 keys into weights of `of_values` (see LaneValues).
  // Polynomials give `Polynomials` of every eight weights: those of the same keys for every query, so that a
  // pixel's bits do not depend on its row.
  template <int Polynomials>
  __device__ void weigh(const float (*products)[4], int tile, const uint4* of_values, const float* values,
                        int keys_of_stage, int key_in_stage, Products& to) const {
    std::uint32_t weights[4][2];
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      float2 columns[planes];
      if constexpr (has_space) load_columns(columns, values, keys_of_stage, key_in_stage + 8 * n);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float first = exponent_of(products[n][2 * half], tile, half, columns, 0);
        const float second = exponent_of(products[n][2 * half + 1], tile, half, columns, 1);
        const __half2 both = __floats2half2_rn(
            exp2_fast(first), n < Polynomials ? exp2_by_polynomial<4>(second) : exp2_fast(second));
        weights[n][half] = reinterpret_cast<const std::uint32_t&>(both);
      }
    }
    const uint4 value = of_values[key_in_stage / 4];
    add_product(to.sums[tile], weights[0][0], weights[0][1], weights[1][0], weights[1][1], value.x, value.y);
    add_product(to.sums[tile], weights[2][0], weights[2][1], weights[3][0], weights[3][1], value.z, value.w);
  }

  // Turns a lane's four products of a tile of queries and one of keys, in rows of two, into weights of
  // `values`.
  __device__ void weigh(float (&products)[4], int tile, const float* values, int keys_of_stage,
                        int key_in_stage, Sums& sums) {
    float2 columns[planes];
    load_columns(columns, values, keys_of_stage, key_in_stage);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int half = i / 2;
      const float weight = exp2_fast(exponent_of(products[i], tile, half, columns, i % 2));
      sums.weights[tile][half] += weight;
      if constexpr (is_general) largest_[tile][half] = fmaxf(largest_[tile][half], weight);
#pragma unroll
      for (int channel = 0; channel < Channels; ++channel) {
        const float value = i % 2 == 0 ? columns[channel].x : columns[channel].y;
        sums.values[channel][tile][half] = fmaf(weight, value, sums.values[channel][tile][half]);
      }
    }
  }

  // Whether one of these keys is one of the queries: a pixel is not compared with itself.
  __device__ bool meet(int first_key, int keys) const {
    return first_key <= highest_ && first_key + keys > lowest_;
  }
  __device__ void leave_out_self(float (&products)[4], int tile, int first_key) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int key = first_key + 2 * (lane_ % 4) + i % 2;
      if (key == positions_[tile][i / 2]) products[i] = -1e30F;
    }
  }

  __device__ void fold(const Sums& sums) {
#pragma unroll
    for (int tile = 0; tile < Tiles; ++tile) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        totals_.weights[tile][half] += sums.weights[tile][half];
#pragma unroll
        for (int channel = 0; channel < Channels; ++channel) {
          totals_.values[channel][tile][half] += sums.values[channel][tile][half];
        }
      }
    }
  }

  __device__ void fold(const Products& products) {
#pragma unroll
    for (int tile = 0; tile < Tiles; ++tile) {
#pragma unroll
      for (int i = 0; i < 4; ++i) products_.sums[tile][i] += products.sums[tile][i];
    }
  }

  __device__ void store() const {
#pragma unroll
    for (int tile = 0; tile < Tiles; ++tile) {
#pragma unroll
      for (int half = 0; half < 2; ++half) store(tile, half);
    }
  }

 private:
  static constexpr int no_query = -1;

  __device__ int pixels() const { return area_.width() * area_.height(); }
  // Only the general kernel's pixels are ever searched for again.
  __device__ bool samples() const { return is_general && call_.samples > 0; }
  __device__ int count() const {
    if (samples()) return call_.samples;
    return from_list_ ? static_cast<int>(call_.header[listed]) : pixels();
  }
  // A query's pixel, counted row by row: in the area, and in the image.
  __device__ int pixel_of(int query) const {
    return from_list_ ? static_cast<int>(call_.list[query]) : query;
  }
  __device__ int position_of(int query) const {
    if (samples()) return sample_position(query, call_.in.image);
    const int pixel = pixel_of(query);
    return (area_.y0 + pixel / area_.width()) * call_.in.image.width + area_.x0 + pixel % area_.width();
  }
  __device__ int query_of(int tile, int half) const { return first_ + Apart * tile + 8 * half + lane_ / 4; }

  // Leaves out rows so far away that their weights are 0: the same for the whole block.
  __device__ void leave_out_far_rows(int keys, int& from, int& to) const {
    constexpr float nothing_left = 11.5F;  // its square is an exponent below those of floats
    const int rows = static_cast<int>(fminf(nothing_left / call_.space_root, 1e6F)) + 1;
    const int width = call_.in.image.width;
    const int top = max(position_of(first_of_block_) / width - rows, 0);
    const int bottom = min(position_of(last_of_block_) / width + rows, call_.in.image.height - 1);
    from = max(from, top * width / keys);
    to = min(to, ((bottom + 1) * width - 1) / keys + 1);
  }

  __device__ void load_columns(float2 (&columns)[planes], const float* values, int keys_of_stage,
                               int key_in_stage) const {
#pragma unroll
    for (int plane = OfHalves ? Channels : 0; plane < planes; ++plane) {
      columns[plane] =
          *reinterpret_cast<const float2*>(values + plane * keys_of_stage + key_in_stage + 2 * (lane_ % 4));
    }
  }
  __device__ float exponent_of(float product, int tile, int half, const float2 (&columns)[planes],
                               int key) const {
    float exponent = product;
    if constexpr (is_general) exponent = fminf(exponent, 0.0F);
    if constexpr (has_space) {
      const auto of_key = [&](int plane) { return key == 0 ? columns[plane].x : columns[plane].y; };
      const float dx = of_key(Channels) - x_[tile][half];
      const float dy = of_key(Channels + 1) - y_[tile][half];
      exponent = fmaf(-dx, dx, fmaf(-dy, dy, exponent));
    }
    return exponent;
  }

  // Sums of a row that products gave: lane 4 g + t has those of two columns, 2 t and 2 t + 1.
  __device__ void read_products(int tile, int half, float& weights, float (&values)[Channels]) const {
    const float even = products_.sums[tile][2 * half];
    const float odd = products_.sums[tile][2 * half + 1];
    const auto from_lane = [&](float sum, int t) { return __shfl_sync(~0U, sum, lane_ / 4 * 4 + t); };
    const ValueRange range(call_);
    constexpr float lowered = 1.0F / (1 << raised_weights);
    weights = lowered * from_lane(even, Channels);
#pragma unroll
    for (int channel = 0; channel < Channels; ++channel) {
      const float narrowed = lowered * from_lane(even + odd, channel);
      values[channel] = fmaf(range.spread, narrowed, range.centre * weights);
    }
  }

  // Sum over the four lanes of a row.
  __device__ static float joined(float sum) {
    sum += __shfl_xor_sync(~0U, sum, 1);
    return sum + __shfl_xor_sync(~0U, sum, 2);
  }

  __device__ void store(int tile, int half) const {
    float weights = 0;
    float values[Channels];
    if constexpr (OfHalves) {
      read_products(tile, half, weights, values);
    } else {
      weights = joined(totals_.weights[tile][half]);
#pragma unroll
      for (int channel = 0; channel < Channels; ++channel) {
        values[channel] = joined(totals_.values[channel][tile][half]);
      }
    }
    float largest = largest_[tile][half];
    largest = fmaxf(largest, __shfl_xor_sync(~0U, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(~0U, largest, 2));
    const int position = positions_[tile][half];
    if (position == no_query || lane_ % 4 != 0) return;
    if (samples()) {
      atomicMax(&call_.nearest[query_of(tile, half)], __float_as_uint(largest));
      return;
    }
    const int pixel = pixel_of(query_of(tile, half));
    if (call_.groups > 1) {
      const std::ptrdiff_t kind = pixels();
      float* const to = call_.sums + static_cast<std::ptrdiff_t>(blockIdx.y) * (Channels + 2) * kind + pixel;
      to[0] = weights;
#pragma unroll
      for (int channel = 0; channel < Channels; ++channel) to[(1 + channel) * kind] = values[channel];
      to[(Channels + 1) * kind] = largest;
      return;
    }
    if (!are_precise(call_, largest)) list_pixel(call_, pixel);
    const float self = self_weight(call_.self_is_max, largest);
    const int x = position % call_.in.image.width;
    const int y = position / call_.in.image.width;
#pragma unroll
    for (int channel = 0; channel < Channels; ++channel) {
      const int plane = call_.first_channel + channel;
      call_.out.at(plane, x, y) =
          fmaf(self, call_.in.inside(plane, x, y), values[channel]) / (weights + self);
    }
  }

  const WholeImageCall& call_;
  const Rect& area_;
  bool from_list_;
  int lane_;
  int first_of_block_;
  int last_of_block_;
  int first_;   // query of the warp
  int lowest_;  // position of them all
  int highest_;
  int positions_[Tiles][2];
  float x_[has_space ? Tiles : 1][2];
  float y_[has_space ? Tiles : 1][2];
  Sums totals_;
  Products products_;
  float largest_[Tiles][2] = {};
};

// A kernel and what its caller must know about it.
struct WholeImageKernel {
  void (*kernel)(WholeImageCall) = nullptr;
  std::size_t shared = 0;
  int threads = 0;
  int queries = 0;   // of a block
  int resident = 0;  // blocks that a multiprocessor holds
  KeyLayout layout = {};
  // Whether it finds the weight of two pixels once and adds it to the integer sums of both.
  bool is_symmetric = false;
};

template <class Block>
WholeImageKernel kernel_of(void (*kernel)(WholeImageCall)) {
  return {.kernel = kernel,
          .shared = Block::Stages::shared_bytes,
          .threads = Block::threads,
          .queries = Block::queries,
          .resident = Block::resident,
          .layout = Block::layout};
}

// The body of such a kernel: does nothing unless the image needs it.
template <class Block>
__device__ void search_whole_image(const WholeImageCall& call, float* shared) {
  const QuerySet which = query_set(call);
  if (which != QuerySet::none) Block(call, which, shared).filter();
}

// The kernel for vectors of at least `numbers` numbers; null where none is compiled for that many.
WholeImageKernel whole_image_plain(int channels, int numbers);
WholeImageKernel whole_image_general(int channels, int numbers);
WholeImageKernel whole_image_bilateral(int channels, int numbers);

// The same for GPUs of compute capability 9.0.
namespace hopper {
WholeImageKernel whole_image_plain(int channels, int numbers);
WholeImageKernel whole_image_general(int channels, int numbers);
WholeImageKernel whole_image_bilateral(int channels, int numbers);
WholeImageKernel whole_image_symmetric(int channels, int numbers);  // plain weights
}  // namespace hopper

}  // namespace ungrain::cuda
