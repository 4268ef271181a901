// The search of the whole image for similar patches, on tensor cores.
//
// The distance of two patches is |a|² + |b|² - 2 a b, and all of them together are a product of matrices. A
// pixel is a vector: the pixels of its patch less the middle of the image's values, each times the root of
// its weight and of the strength, as halves, and four more numbers by which both norms ride along in the
// product: what the tensor cores return is the exponent itself. Norms are those of the rounded vectors, so
// that distances are exact for an image rounded to halves; a norm is two halves, 22 bits. For more precision
// every component is two halves as well, and three products stand for one.
//
// A warp holds the vectors of 16 or 32 pixels (queries) in registers; those of all pixels (keys) stream
// through shared memory in the order in which the tensor cores' lanes take them, three stages deep, for the 8
// warps of a block. While one set of products is made, the exponentials of the one before are taken: nothing
// of the size of the distances is ever stored. A row's sums are folded once a stage, so that rounding does
// not grow with the image.
//
// Bound by exponentials (16 a cycle and multiprocessor), with the products close behind.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "cuda/launch.cuh"
#include "cuda/load.cuh"
#include "cuda/search_weights.cuh"

namespace ungrain::cuda {

inline constexpr int most_whole_image_patch = 9;

struct WholeImageCall {
  BorderedPlane in;
  Planes out;
  int first_channel;
  int channels;
  int patch;    // side
  float scale;  // values times this, their differences squared and averaged over a patch, are exponents
  float roots[most_whole_image_patch];  // of the patch's weights along one axis, times the root of scale
  float centre_root;                    // of the patch's middle pixel, which may count for itself as well
  float noise;                          // what noise alone adds to an exponent
  float space_root;                     // positions times this, their differences squared, are exponents
  bool self_is_max;
  int groups;           // into which the keys are split
  bool halves_allowed;  // or only pairs of halves
  unsigned* range;      // of the image's values: see ValueRange
  std::uint32_t* keys;  // [tile of 8 keys][4 words each][lane][4]
  float* values;        // [stage][channels, and positions where they count][key]
  float* sums;          // [group][weights, values of each channel, largest][pixel of the area]

  __host__ __device__ int pixels() const { return in.image.width * in.image.height; }
  __host__ __device__ int components() const { return channels * patch * patch; }
};

// The smallest and the largest value of an image as its kernels find them: as unsigned numbers in the same
// order, the smallest negated, so that both start at zero and only grow.
__device__ inline unsigned ordered(float value) {
  const unsigned bits = __float_as_uint(value);
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}
__device__ inline float from_ordered(unsigned bits) {
  return __uint_as_float((bits & 0x80000000U) != 0 ? bits & 0x7FFFFFFFU : ~bits);
}

// How an image's patches are compared.
enum class WholeImagePrecision {
  halves,  // each pixel one half
  pairs,   // each pixel two halves
  floats,  // differences of floats: no product at all
};

struct ValueRange {
  float centre;
  float spread;

  __device__ explicit ValueRange(const WholeImageCall& call) {
    float high = from_ordered(call.range[0]);
    float low = -from_ordered(call.range[1]);
    if (call.in.border == Border::constant) {
      high = fmaxf(high, 0.0F);
      low = fminf(low, 0.0F);
    }
    centre = 0.5F * low + 0.5F * high;
    spread = 0.5F * high - 0.5F * low;
  }

  // By the largest norm that a vector can have. Norms must fit halves, and a product's rounding grows with
  // them; the bounds are from measurements, see the method's README.
  __device__ WholeImagePrecision precision(const WholeImageCall& call) const {
    constexpr float most_for_halves = 4000;
    constexpr float most_for_pairs = 30000;
    const float own = call.centre_root * spread;
    const float mean = call.scale * spread;
    const float norm = static_cast<float>(call.channels) * (mean * mean + own * own);
    if (call.halves_allowed && norm <= most_for_halves) return WholeImagePrecision::halves;
    const bool fits = 3 * call.components() + 4 <= 8 * 56;
    return norm <= most_for_pairs && fits ? WholeImagePrecision::pairs : WholeImagePrecision::floats;
  }
};

// The components of pixels' vectors.
struct PixelVectors {
  const WholeImageCall& call;
  float centre;
  bool pairs;

  __device__ float component(int x, int y, int index) const {
    const int area = call.patch * call.patch;
    const int channel = index / area;
    const int row = index % area / call.patch;
    const int column = index % call.patch;
    const int around = call.patch / 2;
    const float pixel =
        call.in.at(call.first_channel + channel, x + column - around, y + row - around, 0.0F) - centre;
    const bool is_centre = row == around && column == around;
    return pixel * (is_centre ? call.centre_root : call.roots[row] * call.roots[column]);
  }

  __device__ static __half high(float value) { return __float2half_rn(value); }
  __device__ static __half low(float value) { return __float2half_rn(value - __half2float(high(value))); }

  // What a component is after rounding.
  __device__ float rounded(float value) const {
    const float first = __half2float(high(value));
    return pairs ? first + __half2float(low(value)) : first;
  }

  // Of the whole vector, by four lanes side by side.
  __device__ __noinline__ float norm(int x, int y, int lane) const {
    float sum = 0;
    for (int i = lane; i < call.components(); i += 4) {
      const float value = rounded(component(x, y, i));
      sum = fmaf(value, value, sum);
    }
    sum += __shfl_xor_sync(~0U, sum, 1);
    return sum + __shfl_xor_sync(~0U, sum, 2);
  }

  // The numbers of a key's vector and of a query's: their products, summed, are the exponent.
  __device__ __half of_key(int x, int y, int slot, float norm) const {
    const int count = call.components();
    const int after = slot - (pairs ? 3 : 1) * count;
    if (after >= 0) {
      return after < 2 ? __float2half_rn(1.0F) : after == 2 ? high(norm) : after == 3 ? low(norm) : __half{};
    }
    const float value = component(x, y, slot % count);
    return slot / count == 1 ? low(value) : high(value);
  }
  __device__ __half of_query(int x, int y, int slot, float norm) const {
    const int count = call.components();
    const int after = slot - (pairs ? 3 : 1) * count;
    if (after >= 0) {
      return after == 0 ? high(norm) : after == 1 ? low(norm) : after < 4 ? __float2half_rn(1.0F) : __half{};
    }
    const float value = component(x, y, slot % count);
    return __hmul(__float2half_rn(2.0F), slot / count == 2 ? low(value) : high(value));
  }
};

// A lane's numbers of a query's vector. Not inlined: it is done once, and would be most of a kernel's code.
__device__ __noinline__ inline void query_words(const PixelVectors& vectors, int x, int y, float norm, int count,
                                         int lane, std::uint32_t* words) {
  for (int k = 0; k < count; ++k) {
    const int slot = 8 * k + 2 * lane;
    const __half2 both =
        __halves2half2(vectors.of_query(x, y, slot, norm), vectors.of_query(x, y, slot + 1, norm));
    words[k] = reinterpret_cast<const std::uint32_t&>(both);
  }
}

// The sizes of the kernel for vectors of 8 K8 numbers.
template <int K8>
struct WholeImageShape {
  static constexpr int warps = 8;
  static constexpr int threads = 32 * warps;
  static constexpr int m_tiles = K8 <= 31 ? 2 : 1;  // of 16 queries, a warp's
  static constexpr int queries = 16 * m_tiles;
  static constexpr int words = K8 == 2 ? 2 : (K8 + 3) / 4 * 4;      // of a key's vector that a lane takes
  static constexpr int keys = K8 <= 11 ? 128 : K8 <= 31 ? 64 : 32;  // of a stage
  static constexpr int tiles = keys / 8;
  static constexpr int buffers = 3;
};

__device__ inline void copy_async(void* to, const void* from) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from));
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;"); }
template <int Pending>
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending));
}

// volatile, as the exponentials among them are: they stay in the order in which they are written, by turns.
__device__ inline void multiply_16(float (&c)[4], const std::uint32_t* a, const std::uint32_t* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ inline void multiply_8(float (&c)[4], const std::uint32_t* a, const std::uint32_t* b) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}
__device__ inline float exp2_in_order(float x) {
  float result;
  asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

template <int K8, int Channels, SearchWeights Weights>
class WholeImageBlock {
 public:
  using Shape = WholeImageShape<K8>;
  static constexpr bool has_space = Weights == SearchWeights::bilateral;
  static constexpr bool is_general = Weights == SearchWeights::general;
  static constexpr int planes = Channels + (has_space ? 2 : 0);
  static constexpr int m_tiles = Shape::m_tiles;
  static constexpr int stage_words = Shape::tiles * Shape::words * 32;
  static constexpr int stage_values = planes * Shape::keys;
  static constexpr std::size_t shared_bytes =
      sizeof(float) * Shape::buffers * static_cast<std::size_t>(stage_words + stage_values);

  __device__ WholeImageBlock(const WholeImageCall& call, const ValueRange& range, bool pairs, float* shared)
      : call_(call),
        area_(call.out.rect),
        keys_(reinterpret_cast<std::uint32_t*>(shared)),
        values_(shared + Shape::buffers * stage_words),
        lane_(static_cast<int>(threadIdx.x) % 32),
        first_((static_cast<int>(blockIdx.x) * Shape::warps + static_cast<int>(threadIdx.x) / 32) *
               Shape::queries) {
    load_queries({call, range.centre, pairs});
  }

  __device__ void filter() {
    const int stages = (call_.pixels() + Shape::keys - 1) / Shape::keys;
    const auto group = static_cast<int>(blockIdx.y);
    int from = static_cast<int>(static_cast<long long>(stages) * group / call_.groups);
    int to = static_cast<int>(static_cast<long long>(stages) * (group + 1) / call_.groups);
    if constexpr (has_space) leave_out_far_rows(from, to);
#pragma unroll
    for (int ahead = 0; ahead < Shape::buffers - 1; ++ahead) {
      if (from + ahead < to) copy_stage(from + ahead, ahead);
      commit_copies();
    }
    int buffer = 0;
    for (int stage = from; stage < to; ++stage) {
      wait_for_copies<Shape::buffers - 2>();
      __syncthreads();
      const int next = stage + Shape::buffers - 1;
      if (next < to) copy_stage(next, buffer == 0 ? Shape::buffers - 1 : buffer - 1);
      commit_copies();
      add_stage(stage, buffer);
      buffer = buffer == Shape::buffers - 1 ? 0 : buffer + 1;
    }
    wait_for_copies<0>();
    store();
  }

 private:
  struct Sums {
    float weights[m_tiles][2] = {};
    float values[Channels][m_tiles][2] = {};
  };
  static constexpr int no_query = -1;

  __device__ int query_count() const { return area_.width() * area_.height(); }
  // Of a query's pixel in the image, counted row by row.
  __device__ int position_of(int query) const {
    return (area_.y0 + query / area_.width()) * call_.in.image.width + area_.x0 + query % area_.width();
  }
  __device__ int query_of(int tile, int half) const { return first_ + 16 * tile + 8 * half + lane_ / 4; }

  __device__ void load_queries(const PixelVectors& vectors) {
    const int width = call_.in.image.width;
#pragma unroll
    for (int tile = 0; tile < m_tiles; ++tile) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int query = query_of(tile, half);
        const bool exists = query < query_count();
        const int position = exists ? position_of(query) : no_query;
        const int x = exists ? position % width : 0;
        const int y = exists ? position / width : 0;
        positions_[tile][half] = position;
        const float norm = vectors.norm(x, y, lane_ % 4);
        std::uint32_t words[K8];
        query_words(vectors, x, y, -norm, K8, lane_ % 4, words);
#pragma unroll
        for (int k = 0; k < K8; ++k) queries_[tile][2 * k + half] = words[k];
        if constexpr (has_space) {
          x_[tile][half] = static_cast<float>(x) * call_.space_root;
          y_[tile][half] = static_cast<float>(y) * call_.space_root;
        }
      }
    }
    lowest_ = first_ < query_count() ? position_of(first_) : no_query;
    highest_ =
        first_ < query_count() ? position_of(min(first_ + Shape::queries, query_count()) - 1) : no_query;
  }

  // Rows so far away that no weight is left: the same for the whole block.
  __device__ void leave_out_far_rows(int& from, int& to) const {
    constexpr float nothing_left = 11.5F;  // its square is an exponent below those of floats
    const int rows = static_cast<int>(fminf(nothing_left / call_.space_root, 1e6F)) + 1;
    const int first = static_cast<int>(blockIdx.x) * Shape::warps * Shape::queries;
    const int last = min(first + Shape::warps * Shape::queries, query_count()) - 1;
    const int width = call_.in.image.width;
    const int top = max(position_of(first) / width - rows, 0);
    const int bottom = min(position_of(last) / width + rows, call_.in.image.height - 1);
    from = max(from, top * width / Shape::keys);
    to = min(to, ((bottom + 1) * width - 1) / Shape::keys + 1);
  }

  __device__ void copy_stage(int stage, int buffer) {
    const std::uint32_t* const keys = call_.keys + static_cast<std::size_t>(stage) * stage_words;
    for (int i = static_cast<int>(threadIdx.x) * 4; i < stage_words; i += Shape::threads * 4) {
      copy_async(keys_ + buffer * stage_words + i, keys + i);
    }
    const float* const values = call_.values + static_cast<std::size_t>(stage) * stage_values;
    for (int i = static_cast<int>(threadIdx.x) * 4; i < stage_values; i += Shape::threads * 4) {
      copy_async(values_ + buffer * stage_values + i, values + i);
    }
  }

  using Products = float[2][m_tiles][4];  // of two tiles of keys

  __device__ void load_keys(int buffer, int pair, std::uint32_t (&keys)[2][Shape::words]) const {
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const std::uint32_t* const tile = keys_ + buffer * stage_words + (2 * pair + n) * Shape::words * 32;
      if constexpr (Shape::words == 2) {
        const uint2 two = reinterpret_cast<const uint2*>(tile)[lane_];
        keys[n][0] = two.x;
        keys[n][1] = two.y;
      } else {
#pragma unroll
        for (int word = 0; word < Shape::words; word += 4) {
          const uint4 four = reinterpret_cast<const uint4*>(tile + word * 32)[lane_];
          keys[n][word] = four.x;
          keys[n][word + 1] = four.y;
          keys[n][word + 2] = four.z;
          keys[n][word + 3] = four.w;
        }
      }
    }
  }

  static constexpr int steps = (K8 + 1) / 2;              // products of 16, the last perhaps of 8
  static constexpr int operations = steps * 2 * m_tiles;  // for two tiles of keys
  static constexpr int exponentials = 2 * m_tiles * 4;    // of them, a lane's

  template <int Operation>
  __device__ void multiply(Products& c, const std::uint32_t (&keys)[2][Shape::words]) const {
    constexpr int step = Operation / (2 * m_tiles);
    constexpr int n = Operation % (2 * m_tiles) / m_tiles;
    constexpr int tile = Operation % m_tiles;
    if constexpr (step == 0) {
#pragma unroll
      for (float& sum : c[n][tile]) sum = 0;
    }
    if constexpr (2 * step + 1 < K8) {
      multiply_16(c[n][tile], queries_[tile] + 4 * step, keys[n] + 2 * step);
    } else {
      multiply_8(c[n][tile], queries_[tile] + 4 * step, keys[n] + 2 * step);
    }
  }

  // What a lane knows of the two tiles of keys whose weights it takes.
  struct Pair {
    float2 columns[2][planes];
  };

  __device__ Pair load_pair(int buffer, int pair) const {
    Pair loaded;
#pragma unroll
    for (int n = 0; n < 2; ++n) {
#pragma unroll
      for (int plane = 0; plane < planes; ++plane) {
        loaded.columns[n][plane] = *reinterpret_cast<const float2*>(
            values_ + buffer * stage_values + plane * Shape::keys + (2 * pair + n) * 8 + 2 * (lane_ % 4));
      }
    }
    return loaded;
  }

  template <int Exponential>
  __device__ void weigh(const Products& c, const Pair& pair, Sums& sums) {
    constexpr int n = Exponential / (4 * m_tiles);
    constexpr int tile = Exponential / 4 % m_tiles;
    constexpr int half = Exponential / 2 % 2;
    constexpr bool second = Exponential % 2 == 1;
    const auto of_key = [&](int plane) {
      return second ? pair.columns[n][plane].y : pair.columns[n][plane].x;
    };
    float exponent = c[n][tile][Exponential % 4];
    if constexpr (is_general) exponent = fminf(exponent, 0.0F);
    if constexpr (has_space) {
      const float dx = of_key(Channels) - x_[tile][half];
      const float dy = of_key(Channels + 1) - y_[tile][half];
      exponent = fmaf(-dx, dx, fmaf(-dy, dy, exponent));
    }
    const float weight = exp2_in_order(exponent);
    sums.weights[tile][half] += weight;
    if constexpr (is_general) largest_[tile][half] = fmaxf(largest_[tile][half], weight);
#pragma unroll
    for (int channel = 0; channel < Channels; ++channel) {
      sums.values[channel][tile][half] = fmaf(weight, of_key(channel), sums.values[channel][tile][half]);
    }
  }

  // A pixel is not compared with itself.
  __device__ void leave_out_self(Products& c, int first_key) const {
    if (first_key > highest_ || first_key + 16 <= lowest_) return;
#pragma unroll
    for (int n = 0; n < 2; ++n) {
#pragma unroll
      for (int tile = 0; tile < m_tiles; ++tile) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int key = first_key + 8 * n + 2 * (lane_ % 4) + i % 2;
          if (key == positions_[tile][i / 2]) c[n][tile][i] = -1e30F;
        }
      }
    }
  }

  // The products of the next keys and the exponentials of these, by turns.
  template <int Exponential = 0>
  __device__ void by_turns(Products& next, const std::uint32_t (&keys)[2][Shape::words], const Products& c,
                           const Pair& pair, Sums& sums) {
    if constexpr (Exponential < exponentials) {
      constexpr int from = operations * Exponential / exponentials;
      constexpr int to = operations * (Exponential + 1) / exponentials;
      multiply_range<from, to>(next, keys);
      weigh<Exponential>(c, pair, sums);
      by_turns<Exponential + 1>(next, keys, c, pair, sums);
    }
  }
  template <int From, int To>
  __device__ void multiply_range(Products& c, const std::uint32_t (&keys)[2][Shape::words]) const {
    if constexpr (From < To) {
      multiply<From>(c, keys);
      multiply_range<From + 1, To>(c, keys);
    }
  }
  template <int Exponential = 0>
  __device__ void weigh_all(const Products& c, const Pair& pair, Sums& sums) {
    if constexpr (Exponential < exponentials) {
      weigh<Exponential>(c, pair, sums);
      weigh_all<Exponential + 1>(c, pair, sums);
    }
  }

  __device__ void add_stage(int stage, int buffer) {
    constexpr int pairs = Shape::keys / 16;
    static_assert(pairs % 2 == 0);
    Sums sums;
    Products even;
    Products odd;
    std::uint32_t keys[2][Shape::words];
    const int first_key = stage * Shape::keys;
    load_keys(buffer, 0, keys);
    multiply_range<0, operations>(even, keys);
#pragma unroll 1
    for (int pair = 0; pair < pairs; pair += 2) {
      load_keys(buffer, pair + 1, keys);
      leave_out_self(even, first_key + 16 * pair);
      by_turns(odd, keys, even, load_pair(buffer, pair), sums);
      leave_out_self(odd, first_key + 16 * (pair + 1));
      if (pair + 2 < pairs) {
        load_keys(buffer, pair + 2, keys);
        by_turns(even, keys, odd, load_pair(buffer, pair + 1), sums);
      } else {
        weigh_all(odd, load_pair(buffer, pair + 1), sums);
      }
    }
#pragma unroll
    for (int tile = 0; tile < m_tiles; ++tile) {
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

  // The four lanes of a row together.
  __device__ static float joined(float sum) {
    sum += __shfl_xor_sync(~0U, sum, 1);
    return sum + __shfl_xor_sync(~0U, sum, 2);
  }

  __device__ void store() {
#pragma unroll
    for (int tile = 0; tile < m_tiles; ++tile) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float weights = joined(totals_.weights[tile][half]);
        float values[Channels];
#pragma unroll
        for (int channel = 0; channel < Channels; ++channel) {
          values[channel] = joined(totals_.values[channel][tile][half]);
        }
        float largest = largest_[tile][half];
        largest = fmaxf(largest, __shfl_xor_sync(~0U, largest, 1));
        largest = fmaxf(largest, __shfl_xor_sync(~0U, largest, 2));
        if (positions_[tile][half] == no_query || lane_ % 4 != 0) continue;
        const int query = query_of(tile, half);
        if (call_.groups > 1) {
          const std::ptrdiff_t kind = query_count();
          float* const to =
              call_.sums + static_cast<std::ptrdiff_t>(blockIdx.y) * (Channels + 2) * kind + query;
          to[0] = weights;
#pragma unroll
          for (int channel = 0; channel < Channels; ++channel) to[(1 + channel) * kind] = values[channel];
          to[(Channels + 1) * kind] = largest;
          continue;
        }
        const float self = self_weight(call_.self_is_max, largest);
        const int x = positions_[tile][half] % call_.in.image.width;
        const int y = positions_[tile][half] / call_.in.image.width;
#pragma unroll
        for (int channel = 0; channel < Channels; ++channel) {
          const int plane = call_.first_channel + channel;
          const float own = call_.in.inside(plane, x, y);
          call_.out.at(plane, x, y) = fmaf(self, own, values[channel]) / (weights + self);
        }
      }
    }
  }

  const WholeImageCall& call_;
  const Rect& area_;
  std::uint32_t* keys_;
  float* values_;
  int lane_;
  int first_;   // query of the warp
  int lowest_;  // positions of its first and its last one
  int highest_;
  std::uint32_t queries_[m_tiles][2 * K8];
  int positions_[m_tiles][2];
  float x_[has_space ? m_tiles : 1][2];
  float y_[has_space ? m_tiles : 1][2];
  Sums totals_;
  float largest_[m_tiles][2] = {};
};

template <int K8, int Channels, SearchWeights Weights>
inline constexpr int whole_image_blocks = K8 <= 7 || (K8 <= 11 && Channels == 1) ? 2 : 1;

template <int K8, int Channels, SearchWeights Weights>
__global__ void __launch_bounds__(WholeImageShape<K8>::threads, whole_image_blocks<K8, Channels, Weights>)
    whole_image_kernel(const __grid_constant__ WholeImageCall call, WholeImagePrecision precision) {
  extern __shared__ float shared[];
  const ValueRange range(call);
  if (range.precision(call) != precision) return;
  WholeImageBlock<K8, Channels, Weights>(call, range, precision == WholeImagePrecision::pairs, shared)
      .filter();
}

// A kernel and what its caller has to know of it.
struct WholeImageKernel {
  void (*kernel)(WholeImageCall, WholeImagePrecision) = nullptr;
  std::size_t shared = 0;
  int threads = 0;
  int queries = 0;   // of a block
  int resident = 0;  // blocks that a multiprocessor holds
  int words = 0;     // of a key's vector that a lane takes
  int keys = 0;      // of a stage
  int planes = 0;    // of values beside the keys
};

template <int K8, int Channels, SearchWeights Weights>
WholeImageKernel whole_image_instance() {
  using Shape = WholeImageShape<K8>;
  using Block = WholeImageBlock<K8, Channels, Weights>;
  return {.kernel = whole_image_kernel<K8, Channels, Weights>,
          .shared = Block::shared_bytes,
          .threads = Shape::threads,
          .queries = Shape::warps * Shape::queries,
          .resident = whole_image_blocks<K8, Channels, Weights>,
          .words = Shape::words,
          .keys = Shape::keys,
          .planes = Block::planes};
}

// For vectors of at least `numbers` numbers; none where no kernel is compiled for as many.
template <SearchWeights Weights>
WholeImageKernel whole_image_instances(int channels, int numbers) {
  if (channels == 1) {
    if (numbers <= 16) return whole_image_instance<2, 1, Weights>();
    if (numbers <= 32) return whole_image_instance<4, 1, Weights>();
    if (numbers <= 56) return whole_image_instance<7, 1, Weights>();
    if (numbers <= 88) return whole_image_instance<11, 1, Weights>();
    if (numbers <= 152) return whole_image_instance<19, 1, Weights>();
    if (numbers <= 248) return whole_image_instance<31, 1, Weights>();
  }
  if (channels == 3) {
    if (numbers <= 32) return whole_image_instance<4, 3, Weights>();
    if (numbers <= 88) return whole_image_instance<11, 3, Weights>();
    if (numbers <= 152) return whole_image_instance<19, 3, Weights>();
    if (numbers <= 248) return whole_image_instance<31, 3, Weights>();
    if (numbers <= 448) return whole_image_instance<56, 3, Weights>();
  }
  return {};
}

WholeImageKernel whole_image_plain(int channels, int numbers);
WholeImageKernel whole_image_general(int channels, int numbers);
WholeImageKernel whole_image_bilateral(int channels, int numbers);

}  // namespace ungrain::cuda
