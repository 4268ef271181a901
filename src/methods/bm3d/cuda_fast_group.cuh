// The fast filter of groups of 8 x 8 patches on a GPU: what a lane of a warp holds of a group, and what its
// kernels share; see cuda_fast.cu.
#pragma once

#include <algorithm>
#include <type_traits>

#include "cuda/products.cuh"
#include "cuda/warp.cuh"
#include "methods/bm3d/cuda_filter.h"
#include "methods/bm3d/cuda_halves.cuh"

namespace ungrain::cuda::bm3d_fast {

constexpr int patch = 8;

struct BlockShape {
  int warps;
  int resident;  // blocks that a multiprocessor should hold

  constexpr int threads() const { return 32 * warps; }
};
// By the registers that a group's coefficients take.
constexpr BlockShape block_shape(int most, bool wiener, bool halves) {
  if (wiener || most > 16) return {8, 2};
  return {halves ? 10 : 8, 3};
}

// The range of 32-bit sums: an estimate of so many sigma times its weight.
constexpr float largest_estimate = 32;
// Words from one patch's corner to the next: avoids bank conflicts of lanes that read 8 patches at once.
constexpr int corner_words = 12;
constexpr std::size_t most_shared_bytes = 99 * 1024;  // available on every GPU from compute capability 8.0 on

// Words of Wiener factors that a lane keeps in registers, where coefficients are floats.
constexpr int shares_in_registers = 16;
constexpr int corner_table_words = 2 * 4 * 32;

// Words of shared memory that a warp owns: places of patches, and Wiener factors or corners.
constexpr int own_words(int most, bool wiener, bool wavelet, bool halves) {
  if (wiener) return most + (halves ? 0 : std::max(0, most - shares_in_registers) * 32);
  return most + (wavelet ? most * corner_words : 0);
}

struct FastCall {
  Bm3dFilterCall filter;
  Bm3dTile tile;
  Bm3dFastTables tables;
  // Of cuda_fast_halves.cu, here so that they take no registers.
  float basic_per_noisy = 1;            // units of pixels
  float mean_per_first_row = 0;         // a mean's coefficient over what the first product makes of the mean
  float middles[max_channels][2] = {};  // coefficients of the middle of values, noisy and basic
};

// Calls work(n) for n = 0, 2, 4 ... below `size`, a power of two, and otherwise(n) for the rest up to Most.
// One branch for every doubling.
template <int Most, int Begin = 0, class Work, class Otherwise>
__device__ __forceinline__ void for_pairs(int size, Work work, Otherwise otherwise) {
  if constexpr (Begin < Most) {
    constexpr int end = Begin == 0 ? 2 : 2 * Begin;
    if (Begin == 0 || Begin < size) {
#pragma unroll
      for (int n = Begin; n < end; n += 2) work(n);
      for_pairs<Most, end>(size, work, otherwise);
    } else {
#pragma unroll
      for (int n = Begin; n < Most; n += 2) otherwise(n);
    }
  }
}

template <class T>
__device__ T* bytes_after(T* start, int bytes) {
  using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
  return reinterpret_cast<T*>(reinterpret_cast<Byte*>(start) + bytes);
}

// Makes the value uniform for the compiler, so that branches on it are taken by the whole warp.
__device__ inline int same_in_all_lanes(int value) { return __shfl_sync(all_lanes, value, 0); }

// Returns the value, opaque to the compiler, so that it stays in a register instead of being loaded again
// from constant memory. Lanes that read different constants are serialised.
__device__ inline std::uint32_t kept_in_register(std::uint32_t value) {
  return __shfl_sync(all_lanes, value, static_cast<int>(threadIdx.x) % 32);
}

// A zero that the compiler materialises only here. A known zero would be made for every group, before the
// branch that needs it.
__device__ inline float zero_here() {
  float zero;
  asm volatile("mov.f32 %0, 0f00000000;" : "=f"(zero));
  return zero;
}

// Whether the lane holds coefficients of the low-low quadrant.
__device__ inline bool in_corner(int lane) { return lane < 16 && (lane & 3) < 2; }

// A group of up to Most patches: its places, the way from pixels to coefficients and back, and the sums.
template <int Most, bool Wavelet>
class PatchGroup {
 public:
  // `own`: the warp's words of shared memory. `corner_tables`: FastCall's, in shared memory.
  __device__ PatchGroup(const FastCall& call, int plane, std::uint32_t* own,
                        const std::uint32_t* corner_tables)
      : call_(call),
        places_(reinterpret_cast<int*>(own)),
        own_(own + Most),
        corner_tables_(corner_tables),
        lane_(static_cast<int>(threadIdx.x) % 32),
        inverse_sigma_(1 / call.filter.sigma[plane]),
        inverse_noise_(1 / (call.filter.sigma[plane] * call.filter.strength)) {
#pragma unroll
    for (int way = 0; way < 2; ++way) {
      // Each of the four from its own place: equal ones would share a register, and then be copied for every
      // product.
#pragma unroll
      for (int i = 0; i < 4; ++i) first_[way][i] = kept_in_register(call.tables.first[way][i][lane_]);
      second_[way] = kept_in_register(call.tables.second[way][lane_]);
    }
    const float* const window = call.filter.window;
    const float of_row = window[lane_ / 4] * call.filter.sums.value_steps / call.filter.sums.weight_steps;
    window_[0] = of_row * window[lane_ % 4];
    window_[1] = of_row * window[lane_ % 4 + 4];
  }

  // Offset of a lane's first pixel in the tile's first patch.
  __device__ static int lane_at(int pitch) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    return lane / 4 * pitch + lane % 4;
  }

  // Sets the patches of a group: `place` is the byte offset of that of this lane's number.
  __device__ void set_places(int place) const {
    __syncwarp();  // the last group's are no longer read
    if (lane_ < Most) places_[lane_] = place;
    __syncwarp();
  }

 protected:
  // Places of patches, read four at a time.
  struct FourPlaces {
    int4 places;
    __device__ int of(const int* all, int n) {
      if (n % 4 == 0) places = reinterpret_cast<const int4*>(all)[n / 4];
      return n % 4 == 0 ? places.x : n % 4 == 1 ? places.y : n % 4 == 2 ? places.z : places.w;
    }
  };

  // Two patches X of the group, as pairs of halves: M X^T, then (M X^T) M^T; see cuda/products.cuh. The first
  // product is one for both patches, with M twice on the diagonal: it costs less than two of half the size.
  // Plus d: the same pair of numbers for all columns of a row, of each patch.
  template <int Way>
  __device__ void first_products(std::uint32_t (&products)[2], std::uint32_t first, std::uint32_t second,
                                 const std::uint32_t (&d)[2] = {0, 0}) const {
    multiply_add(products, first_[Way], first, second, d);
  }
  template <int Way, class T, int Size>
  __device__ void second_product(T (&c)[Size], std::uint32_t first, std::uint32_t second) const {
    multiply(c, first, second, second_[Way]);
  }

  // The mean of a patch, from the lane's two pixels of it.
  __device__ static float mean_of_patch(float first, float second) {
    return sum_over_warp(first + second) / (patch * patch);
  }

  // Adds the group's weight, from the tile's first pixel on.
  __device__ void add_weight(int* weights, int place, int size) const {
    if (lane_ < size) atomicAdd(bytes_after(weights, place), weight_);
  }

  // Adds what a patch loses, the lane's two pixels of it.
  __device__ static void add_patch(int* to, float first, float second, const float (&scale)[2]) {
    atomicAdd(to, rounded(first, scale[0]));
    atomicAdd(to + 4, rounded(second, scale[1]));
  }

  __device__ static bool all_within(std::uint32_t largest, float limit) {
    const float2 values = unpack_halves(largest);
    return __all_sync(all_lanes, values.x <= limit && values.y <= limit);
  }

  // Whether the estimates fit the sums. `largest`: of the numbers between the products of the way back, which
  // at most grow by sqrt 8, sqrt 8 x 1.2 for wavelets.
  __device__ bool fit_sums(std::uint32_t largest) const {
    constexpr float growth = 3.5F;
    const float limit = largest_estimate / growth * call_.filter.sums.weight_steps;
    return all_within(largest, limit * approximate_reciprocal(static_cast<float>(weight_) * deviation_));
  }

  // Number of patches in a difference of the transform along the group.
  __device__ static constexpr int patches_in(int n) { return 2 * (n & -n); }

  __device__ static float sum_over_warp(float value) {
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) value += __shfl_xor_sync(all_lanes, value, apart);
    return value;
  }

  // Returns 1 for a kept coefficient.
  __device__ static float take_away_up_to(float limit, float& coefficient) {
    const float keep = one_above(fabsf(coefficient), limit);
    coefficient = fmaf(-coefficient, keep, coefficient);
    return keep;
  }

  // Levels 2 and 3 of wavelets, after the transform along the group. bior1.5 at sides 4 and 2 is Haar's,
  // since its corrections wrap around and cancel. So both levels are one orthonormal 16 x 16 matrix, applied
  // to the low-low quadrants of 16 patches by two products. In place: a lane reads and writes the same words.
  __device__ float threshold_corner(int size, float limit, float limit_of_all) {
    const int g = lane_ / 4;
    const int t = lane_ % 4;
    float kept = 0;
#pragma unroll
    for (int from = 0; from < Most; from += 16) {
      if (from < size) {
        std::uint32_t* const upper = own_ + (from + g) * corner_words + t;
        std::uint32_t* const lower = upper + 8 * corner_words;
        const std::uint32_t a[4] = {upper[0], lower[0], upper[4], lower[4]};
        std::uint32_t left[4];
        // The thresholds of the patches from + g and from + g + 8.
        const float limits[2] = {limit_of(from + g, limit, limit_of_all),
                                 limit_of(from + g + 8, limit, limit_of_all)};
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float c[4];
          multiply(c, a[0], a[1], a[2], a[3], corner_table(0, 2 * half), corner_table(0, 2 * half + 1));
          if (half == 0 && from == 0 && lane_ == 0) c[0] += mean_of_all_;
#pragma unroll
          for (int i = 0; i < 4; ++i) kept += take_away_up_to(limits[i / 2], c[i]);
          left[2 * half] = pack_halves(c[0], c[1]);
          left[2 * half + 1] = pack_halves(c[2], c[3]);
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float c[4];
          multiply(c, left[0], left[1], left[2], left[3], corner_table(1, 2 * half),
                   corner_table(1, 2 * half + 1));
          upper[4 * half] = pack_halves(c[0], c[1]);
          lower[4 * half] = pack_halves(c[2], c[3]);
        }
      }
    }
    return kept;
  }

  __device__ std::uint32_t corner_table(int back, int part) const {
    return corner_tables_[(back * 4 + part) * 32 + lane_];
  }

  __device__ static float limit_of(int n, float limit, float limit_of_all) {
    return n == 0 ? limit_of_all : limit * sqrtf(static_cast<float>(patches_in(n)));
  }

  // Square roots of 2, 4 ... 32.
  __device__ static constexpr float constant_root(int power) {
    return power == 2    ? 1.41421356F
           : power == 4  ? 2.0F
           : power == 8  ? 2.82842712F
           : power == 16 ? 4.0F
                         : 5.65685425F;
  }

  __device__ void set_weight(float kept) {
    const float left = fmaxf(kept, 1.0F) * (deviation_ * deviation_);
    weight_ = max(1, __float2int_rn(call_.filter.sums.weight_steps * approximate_reciprocal(left)));
  }

  // Rounds to the nearest whole number, below 2^22: the low bits of a float addition.
  __device__ static int rounded(float value, float scale) {
    return __float_as_int(fmaf(value, scale, 12582912.0F)) - __float_as_int(12582912.0F);
  }

  const FastCall& call_;
  int* places_;
  std::uint32_t* own_;
  const std::uint32_t* corner_tables_;
  int lane_;
  float inverse_sigma_;
  float inverse_noise_;
  std::uint32_t first_[2][4];
  std::uint32_t second_[2];
  float window_[2];
  float mean_of_all_ = 0;
  int weight_ = 1;
  // With a noise model each group has its own sigma, the unit of its pixels. The sums' unit is the least
  // sigma of all groups.
  float deviation_ = 1;
};

}  // namespace ungrain::cuda::bm3d_fast
