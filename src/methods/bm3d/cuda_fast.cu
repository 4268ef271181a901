// The fast filter of groups of 8 x 8 patches on a GPU.
//
//   block   a tile of references and the pixels that their groups may lie on, 8 warps
//           shared memory: noisy | basic    | sums of values | sums of weights | corner tables | warps' own
//                          float   (step 2)   int              int               (wavelets)
//   warp    one group at a time: 1, 2, 4 ... 32 patches
//   lane    4 g + t: of each patch, row g, the pixels of columns t and t + 4;
//           of its transform, column g, the coefficients of rows 2 t and 2 t + 1
//
//   pixels of 2 patches X -> (pixel - mean) / sigma, halves -> M X^T -> (M X^T) M^T     tensor cores
//                         -> Haar along the group -> what threshold or Wiener takes     registers of a lane
//                         -> Haar back -> the two products back                         tensor cores
//                         -> times weight and window, whole numbers -> block's sums     shared atomics
//   block's 32-bit sums   -> the call's 64-bit sums, once at the end                    global atomics
//
// A product leaves its numbers in the lanes as the next one takes them, so nothing is moved between lanes.
// Rows of the tile are 4 mod 32 words apart: no two lanes meet in a bank when a patch is loaded or added.
// The sums are of what the filter takes away, in units of sigma; see Bm3dFilterCall. Pixels within 256 sigma
// of the reference patch's mean are rounded to halves with an error of at most 0.06 sigma. Groups with other
// pixels, and groups whose estimates would not fit the sums, are left to the general kernel.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "cuda/async_copy.cuh"
#include "cuda/launch.cuh"
#include "cuda/products.cuh"
#include "cuda/warp.cuh"
#include "methods/bm3d/cuda_filter.h"
#include "methods/bm3d/cuda_halves.cuh"
#include "methods/bm3d/transforms.h"
#include "ungrain/error.h"
#include "ungrain/half.h"

namespace ungrain::cuda {
namespace {

constexpr int patch = 8;
constexpr int warps = 8;
constexpr int threads = 32 * warps;
// Pixels farther than this from the reference patch's mean, in sigma, are too coarse as halves.
constexpr float largest_pixel = 256;
// The range of 32-bit sums: an estimate of so many sigma times its weight.
constexpr float largest_estimate = 32;
// Words from one patch's corner to the next: avoids bank conflicts of lanes that read 8 patches at once.
constexpr int corner_words = 12;
constexpr std::size_t most_shared_bytes = 99 * 1024;  // available on every GPU from compute capability 8.0 on

// Words of Wiener factors that a lane keeps in registers.
constexpr int shares_in_registers = 16;
constexpr int corner_table_words = 2 * 4 * 32;

// Words of shared memory that a warp owns.
constexpr int own_words(int most, bool wiener, bool wavelet) {
  if (wiener) return std::max(0, most - shares_in_registers) * 32;
  return wavelet ? most * corner_words : 0;
}

struct FastCall {
  Bm3dFilterCall filter;
  Bm3dTile tile;
  Bm3dFastTables tables;
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

template <int Most, bool Wiener, bool Wavelet, bool Model>
class GroupFilter {
 public:
  // `own`: the warp's words of shared memory. `corner_tables`: FastCall's, in shared memory.
  __device__ GroupFilter(const FastCall& call, int plane, std::uint32_t* own,
                         const std::uint32_t* corner_tables)
      : call_(call),
        own_(own),
        corner_tables_(corner_tables),
        lane_(static_cast<int>(threadIdx.x) % 32),
        inverse_sigma_(1 / call.filter.sigma[plane]),
        inverse_noise_(1 / (call.filter.sigma[plane] * call.filter.strength)) {
#pragma unroll
    for (int i = 0; i < 4; ++i) matrices_[i] = kept_in_register(call.tables.matrices[i][lane_]);
    const float* const window = call.filter.window;
    const float of_row = window[lane_ / 4] * call.filter.sums.value_steps / call.filter.sums.weight_steps;
    window_[0] = of_row * window[lane_ % 4];
    window_[1] = of_row * window[lane_ % 4 + 4];
    if constexpr (Model) {
      limit_ = call.filter.strength * call.filter.noise.strength[plane];
      // Coefficients are stored transposed: see above.
      const float* const shares = call.filter.noise.shares + plane * patch * patch;
#pragma unroll
      for (int i = 0; i < 2; ++i) shares_[i] = shares[(lane_ % 4 * 2 + i) * patch + lane_ / 4];
    }
  }

  // Offset of a lane's first pixel in the tile's first patch.
  __device__ static int lane_at(int pitch) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    return lane / 4 * pitch + lane % 4;
  }

  // Filters a group. The images begin at this lane's first pixel; `place` is the byte offset of the patch of
  // this lane's number. Returns whether the group was filtered: then `parts_` is what its patches lose and
  // `weight_` their weight, in steps. `deviation`: the group's, of a model, in units of sigma.
  __device__ bool filter(const float* noisy, const float* basic, int place, int size, float deviation) {
    float kept = 0;
    float scale = inverse_sigma_;
    if constexpr (Model) {
      deviation_ = deviation;
      scale *= approximate_reciprocal(deviation);
    }
    if constexpr (Wiener) {
      const float noise_scale = Model ? scale * approximate_reciprocal(limit_) : inverse_noise_;
      if (!forward(basic, place, size, noise_scale)) return false;
      std::uint32_t shares[shares_in_registers];
      kept = lost_shares(size, shares);
      if (!forward(noisy, place, size, scale)) return false;
#pragma unroll
      for (int n = 0; n < Most; ++n) {
        const float2 share = unpack_halves(n < shares_in_registers ? shares[n] : *share_at(n));
        parts_[n][0] *= share.x;
        parts_[n][1] *= share.y;
      }
    } else {
      if (!forward(noisy, place, size, scale)) return false;
      kept = Model ? threshold_by_share(size) : threshold(size);
    }
    set_weight(kept);
    return inverse(size);
  }

  // Adds the group to the block's sums: values from this lane's first pixel on, weights from the tile's first
  // pixel on.
  __device__ void add(int* values, int* weights, int place, int size) const {
    if (lane_ < size) atomicAdd(bytes_after(weights, place), weight_);
    const float factor = static_cast<float>(weight_) * (Model ? deviation_ : 1.0F);
    const float scale[2] = {factor * window_[0], factor * window_[1]};
    const auto add_patch = [&](int n) {
      int* const to = bytes_after(values, __shfl_sync(all_lanes, place, n));
      atomicAdd(to, rounded(parts_[n][0], scale[0]));
      atomicAdd(to + 4, rounded(parts_[n][1], scale[1]));
    };
    for_pairs<Most>(
        size,
        [&](int n) {
          add_patch(n);
          if (n > 0 || size > 1) add_patch(n + 1);
        },
        [](int) {});
  }

 private:
  // The other factors lie in shared memory: registers do not suffice for them and for two numbers of each
  // patch.
  __device__ std::uint32_t* share_at(int n) const { return own_ + (n - shares_in_registers) * 32 + lane_; }

  // Transforms two patches X: M X^T, then (M X^T) M^T; see cuda/products.cuh. `largest` becomes the maximum
  // of itself and the numbers between the products.
  template <int Way>
  __device__ void transform(std::uint32_t first_halves, std::uint32_t second_halves, float (&first)[2],
                            float (&second)[2], std::uint32_t* largest) const {
    float above[4];
    float below[4];
    // The forward and the inverse matrix are stacked: the same two registers serve all products.
    multiply(above, matrices_[0], matrices_[2], first_halves);
    multiply(below, matrices_[0], matrices_[2], second_halves);
    first_halves = pack_halves(above[2 * Way], above[2 * Way + 1]);
    second_halves = pack_halves(below[2 * Way], below[2 * Way + 1]);
    if (largest != nullptr) *largest = larger_halves(larger_halves(*largest, first_halves), second_halves);
    float c[4];
    multiply(c, first_halves, second_halves, matrices_[2 * Way + 1]);
    first[0] = c[0];
    first[1] = c[1];
    second[0] = c[2];
    second[1] = c[3];
  }

  __device__ static bool all_within(std::uint32_t largest, float limit) {
    const float2 values = unpack_halves(largest);
    return __all_sync(all_lanes, values.x <= limit && values.y <= limit);
  }

  // Coefficients in units of 1 / scale. Sums and differences along the group are not normalised, except the
  // sum of all, which becomes the mean.
  __device__ bool forward(const float* image, int place, int size, float scale) {
    const float* const reference = bytes_after(image, __shfl_sync(all_lanes, place, 0));
    float mean = reference[0] + reference[4];
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) mean += __shfl_xor_sync(all_lanes, mean, apart);
    mean *= scale / (patch * patch);

    std::uint32_t largest = 0;
    for_pairs<Most>(
        size,
        [&](int n) {
          const float* const first = bytes_after(image, __shfl_sync(all_lanes, place, n));
          const float* const second = bytes_after(image, __shfl_sync(all_lanes, place, n + 1));
          const std::uint32_t first_halves =
              pack_halves(fmaf(first[0], scale, -mean), fmaf(first[4], scale, -mean));
          std::uint32_t second_halves =
              pack_halves(fmaf(second[0], scale, -mean), fmaf(second[4], scale, -mean));
          // The second patch of a group of one is 0.
          if (n == 0 && size == 1) second_halves = 0;
          largest = larger_halves(larger_halves(largest, first_halves), second_halves);
          transform<0>(first_halves, second_halves, parts_[n], parts_[n + 1], nullptr);
        },
        [&](int n) {
          parts_[n][0] = zero_here();
          parts_[n][1] = zero_here();
          parts_[n + 1][0] = zero_here();
          parts_[n + 1][1] = zero_here();
        });
    mean_of_all_ = patch * mean;
    // A mean that is not finite would leave no numbers to compare.
    if (!all_within(largest, fabsf(mean) < 1e30F ? largest_pixel : -1.0F)) return false;

      // Haar: a sum stays at the first patch of its stretch, a difference goes to the first patch of the
      // stretch's second half. Missing patches are 0, so the sum of all passes through the remaining levels
      // unchanged, and their differences are ignored.
#pragma unroll
    for (int step = 1; step < Most; step *= 2) {
#pragma unroll
      for (int n = 0; n < Most; n += 2 * step) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const float sum = parts_[n][i] + parts_[n + step][i];
          const float difference = parts_[n][i] - parts_[n + step][i];
          parts_[n + step][i] = n > 0 || step < size ? difference : 0.0F;
          parts_[n][i] = sum;
        }
      }
    }
    const float of_all = approximate_reciprocal(static_cast<float>(size));
    parts_[0][0] *= of_all;
    parts_[0][1] *= of_all;
    // The mean subtracted from every pixel is part of the mean's coefficient only.
    if (!Wavelet && lane_ == 0) parts_[0][0] += mean_of_all_;
    return true;
  }

  // Number of patches in a difference of the transform along the group.
  __device__ static constexpr int patches_in(int n) { return 2 * (n & -n); }

  // Zeroes coefficients above the threshold, which leaves what is taken away. Returns how many were kept.
  __device__ float threshold(int size) {
    const float limit = call_.filter.strength;
    const float limit_of_all = limit * rsqrtf(static_cast<float>(size));
    const bool corner = Wavelet && in_corner(lane_);
    if constexpr (Wavelet) {
      if (corner) {
        std::uint32_t* const to = own_ + lane_ / 4 * 2 + lane_ % 4;
#pragma unroll
        for (int n = 0; n < Most; ++n) to[n * corner_words] = pack_halves(parts_[n][0], parts_[n][1]);
      }
      __syncwarp();
    }
    float kept = 0;
#pragma unroll
    for (int n = 0; n < Most; ++n) {
      const float of_n = n == 0 ? limit_of_all : limit * constant_root(patches_in(n));
#pragma unroll
      for (int i = 0; i < 2; ++i) kept += take_away_up_to(of_n, parts_[n][i]);
    }
    if constexpr (Wavelet) {
      // Replaces the count of the corner's lanes.
      if (corner) kept = 0;
      kept += threshold_corner(size, limit, limit_of_all);
      __syncwarp();
      if (corner) {
        const std::uint32_t* const from = own_ + lane_ / 4 * 2 + lane_ % 4;
#pragma unroll
        for (int n = 0; n < Most; ++n) {
          const float2 values = unpack_halves(from[n * corner_words]);
          parts_[n][0] = values.x;
          parts_[n][1] = values.y;
        }
      }
      __syncwarp();
    }
    return static_cast<float>(warp_sum(static_cast<int>(kept)));
  }

  // The same with a threshold for each coefficient; the group's mean is always kept. Returns the sum of the
  // kept coefficients' shares.
  __device__ float threshold_by_share(int size) {
    float limits[2];
    float of_all[2];
    float kept[2] = {};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      limits[i] = limit_ * sqrtf(shares_[i]);
      of_all[i] = limits[i] * rsqrtf(static_cast<float>(size));
    }
    if (lane_ == 0) of_all[0] = -1;
#pragma unroll
    for (int n = 0; n < Most; ++n) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float limit = n == 0 ? of_all[i] : limits[i] * constant_root(patches_in(n));
        kept[i] += take_away_up_to(limit, parts_[n][i]);
      }
    }
    return sum_over_warp(fmaf(kept[0], shares_[0], kept[1] * shares_[1]));
  }

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

  // Computes the share that each noisy coefficient loses from the basic estimate's, as pairs of halves; those
  // of differences are scaled, see inverse(). Returns the sum of the squared kept shares, with a model times
  // the coefficients' shares of variance.
  __device__ float lost_shares(int size, std::uint32_t* shares) const {
    float kept[2] = {};
    float inverse_shares[2] = {1, 1};
#pragma unroll
    for (int i = 0; Model && i < 2; ++i) inverse_shares[i] = approximate_reciprocal(shares_[i]);
#pragma unroll
    for (int n = 0; n < Most; ++n) {
      // The noise's square, in units of a coefficient that is a difference of sums; that of an orthonormal
      // one is 1. The mean of all has its own unit. The shares of differences are divided by theirs, which
      // saves the division in the transform back.
      const auto noise = static_cast<float>(patches_in(n));
      float share[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float part = parts_[n][i];
        const float over_share = Model ? part * inverse_shares[i] : part;
        float keeps;
        if (n == 0) {
          share[i] = approximate_reciprocal(fmaf(part * over_share, static_cast<float>(size), 1.0F));
          keeps = 1 - share[i];
        } else {
          share[i] = approximate_reciprocal(fmaf(part, over_share, noise));
          keeps = fmaf(-noise, share[i], 1.0F);
        }
        float& sum = kept[Model ? i : 0];
        sum = fmaf(keeps, keeps, sum);
      }
      const std::uint32_t both = pack_halves(share[0], share[1]);
      if (n < shares_in_registers) {
        shares[n] = both;
      } else {
        *share_at(n) = both;
      }
    }
    return sum_over_warp(Model ? fmaf(kept[0], shares_[0], kept[1] * shares_[1]) : kept[0]);
  }

  // Returns whether the estimates fit the sums.
  __device__ bool inverse(int size) {
#pragma unroll
    for (int step = Most / 2; step > 0; step /= 2) {
      // Wiener: lost_shares() has divided them already.
      const float share = Wiener ? 1.0F : 0.5F / static_cast<float>(step);
#pragma unroll
      for (int n = 0; n < Most; n += 2 * step) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const float mean = parts_[n][i];
          const float difference = parts_[n + step][i];
          parts_[n][i] = fmaf(difference, share, mean);
          parts_[n + step][i] = fmaf(difference, -share, mean);
        }
      }
    }
    // Only the mean's coefficient may exceed halves, because it is not relative to a mean.
    const bool is_half = fabsf(parts_[0][0]) < 60000.0F;
    std::uint32_t largest = 0;
    for_pairs<Most>(
        size,
        [&](int n) {
          transform<1>(pack_halves(parts_[n][0], parts_[n][1]),
                       pack_halves(parts_[n + 1][0], parts_[n + 1][1]), parts_[n], parts_[n + 1], &largest);
        },
        [](int) {});
    // A product's numbers are at most sqrt 8 times the largest of its factor's, sqrt 8 x 1.2 for wavelets.
    constexpr float growth = 3.5F;
    const float limit = largest_estimate / growth * call_.filter.sums.weight_steps;
    const float factor = static_cast<float>(weight_) * (Model ? deviation_ : 1.0F);
    return all_within(largest, is_half ? limit * approximate_reciprocal(factor) : -1.0F);
  }

  __device__ void set_weight(float kept) {
    const float left = fmaxf(kept, 1.0F) * (Model ? deviation_ * deviation_ : 1.0F);
    weight_ = max(1, __float2int_rn(call_.filter.sums.weight_steps * approximate_reciprocal(left)));
  }

  // Rounds to the nearest whole number, below 2^22: the low bits of a float addition.
  __device__ static int rounded(float value, float scale) {
    return __float_as_int(fmaf(value, scale, 12582912.0F)) - __float_as_int(12582912.0F);
  }

  const FastCall& call_;
  std::uint32_t* own_;
  const std::uint32_t* corner_tables_;
  int lane_;
  float inverse_sigma_;
  float inverse_noise_;
  std::uint32_t matrices_[4];
  float window_[2];
  float mean_of_all_ = 0;
  int weight_ = 1;
  // With a noise model each group has its own sigma, the unit of its pixels. The sums' unit is the least
  // sigma of all groups.
  float shares_[2];  // of variance, of this lane's coefficients
  float limit_ = 1;
  float deviation_ = 1;
  float parts_[Most][2];
};

// Shared memory: noisy pixels, the basic estimate's (step 2), sums of values, sums of weights, the tables of
// corners, the warps' own words.
template <int Most, bool Wiener, bool Wavelet, bool Model>
__global__ void __launch_bounds__(threads, Wiener || Most > 16 ? 2 : 3)
    filter_kernel(const __grid_constant__ FastCall call) {
  extern __shared__ float shared[];
  const Bm3dTile& tile = call.tile;
  const Bm3dFilterCall& filter = call.filter;
  const ReferenceGrid& grid = filter.grid;
  const int plane = filter.first_plane + block_plane(filter.planes);
  const int pixels = tile.height * tile.pitch;
  float* const noisy = shared;
  float* const basic = noisy + (Wiener ? pixels : 0);
  int* const values = reinterpret_cast<int*>(basic + pixels);
  int* const weights = values + pixels;
  const int weight_rows = tile.height - (patch - 1);
  const int warp = same_in_all_lanes(static_cast<int>(threadIdx.x) / 32);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  auto* const corner_tables = reinterpret_cast<std::uint32_t*>(weights + weight_rows * tile.pitch);
  std::uint32_t* const own =
      corner_tables + (Wavelet ? corner_table_words : 0) + warp * own_words(Most, Wiener, Wavelet);

  const int first_i = static_cast<int>(blockIdx.x) * tile.columns;
  const int first_j = block_row(filter.planes) * tile.rows;
  if (first_j >= grid.count_j) return;
  const int columns = min(tile.columns, grid.count_i - first_i);
  const int rows = min(tile.rows, grid.count_j - first_j);
  const int left = min((grid.first_i + first_i) * grid.spacing, grid.last_x) - tile.reach;
  const int top = min((grid.first_j + first_j) * grid.spacing, grid.last_y) - tile.reach;

  const auto copy_rows = [&](const ConstPlanes& planes, float* to) {
    const Rect& rect = planes.rect;
    for (int y = warp; y < tile.height; y += warps) {
      // Clamped, so that every address lies in the plane.
      const float* const row = &planes.at(plane, rect.x0, min(max(top + y, rect.y0), rect.y1 - 1)) - rect.x0;
      const bool row_there = top + y >= rect.y0 && top + y < rect.y1;
      for (int x = lane; x < tile.pitch; x += 32) {
        const int from = min(max(left + x, rect.x0), rect.x1 - 1);
        copy_async(to + y * tile.pitch + x, row + from, row_there && from == left + x);
      }
    }
  };
  copy_rows(filter.noisy, noisy);
  if constexpr (Wiener) copy_rows(filter.basic, basic);
  for (int i = static_cast<int>(threadIdx.x); i < pixels + weight_rows * tile.pitch; i += threads)
    values[i] = 0;
  if constexpr (Wavelet) {
    for (int i = static_cast<int>(threadIdx.x); i < corner_table_words; i += threads)
      corner_tables[i] = (&call.tables.corner[0][0][0])[i];
  }
  wait_for_all_copies();
  __syncthreads();

  GroupFilter<Most, Wiener, Wavelet, Model> group(call, plane, own, corner_tables);
  const int references = columns * rows;
  const int lane_at = GroupFilter<Most, Wiener, Wavelet, Model>::lane_at(tile.pitch);
  const float* const own_noisy = noisy + lane_at;
  const float* const own_basic = basic + lane_at;
  int* const own_values = values + lane_at;
  const float* const deviations =
      Model ? filter.noise.deviations + static_cast<std::size_t>(plane) * filter.references() : nullptr;
  // A group as the search stored it. It is loaded while the previous group is filtered, and used only
  // afterwards, so that the loads overlap.
  struct FoundGroup {
    int i;  // in the tile
    int j;
    int count;
    char2 offset;  // of the patch of this lane's number
    float deviation;
  };
  const auto read = [&](int i, int j) {
    const std::size_t index = static_cast<std::size_t>(first_j + j) * grid.count_i + first_i + i;
    FoundGroup found{i, j, filter.found[index], make_char2(0, 0), 1};
    if constexpr (Model) found.deviation = deviations[index];
    if (lane < filter.count)
      found.offset = reinterpret_cast<const char2*>(filter.offsets)[index * filter.count + lane];
    return found;
  };
  const int columns_on = warps % columns;
  const int rows_on = warps / columns;
  FoundGroup next = read(warp % columns, min(warp / columns, rows - 1));
  for (int reference = warp; reference < references; reference += warps) {
    const int size = same_in_all_lanes(1 << (31 - __clz(min(next.count, min(filter.count, Most)))));
    const int x = min((grid.first_i + first_i + next.i) * grid.spacing, grid.last_x) + next.offset.x - left;
    const int y = min((grid.first_j + first_j + next.j) * grid.spacing, grid.last_y) + next.offset.y - top;
    const int place = 4 * (y * tile.pitch + x);
    const float deviation = next.deviation;
    const bool wraps = next.i + columns_on >= columns;
    next =
        read(next.i + columns_on - (wraps ? columns : 0), min(next.j + rows_on + (wraps ? 1 : 0), rows - 1));
    if (group.filter(own_noisy, own_basic, place, size, deviation)) {
      group.add(own_values, weights, place, size);
    } else if (lane == 0) {
      const int i = first_i + reference % columns;
      const int j = first_j + reference / columns;
      const unsigned at = atomicAdd(filter.left_over, 1U);
      filter.left_over[1 + at] = static_cast<unsigned>(plane - filter.first_plane) * filter.references() +
                                 static_cast<unsigned>(j * grid.count_i + i);
    }
  }
  __syncthreads();

  const Rect weight_rect = filter.sums.weight_rect();
  const auto flush = [&](int value, unsigned long long* to, const Rect& rect, int x, int y) {
    if (value == 0 || !Bm3dSums::holds(rect, x, y)) return;
    atomicAdd(&to[Bm3dSums::index(rect, plane, x, y)],
              static_cast<unsigned long long>(static_cast<long long>(value)));
  };
  for (int y = warp; y < tile.height; y += warps) {
    for (int x = lane; x < tile.width; x += 32) {
      const int at = y * tile.pitch + x;
      flush(values[at], filter.sums.values, filter.sums.rect, left + x, top + y);
      if (y < weight_rows) flush(weights[at], filter.sums.weights, weight_rect, left + x, top + y);
    }
  }
}

std::uint32_t halves(double first, double second) {
  return float_to_half(static_cast<float>(first)) |
         static_cast<std::uint32_t>(float_to_half(static_cast<float>(second))) << 16U;
}

// The pixel columns that a lane holds.
int column_of(int slot) { return slot / 2 + slot % 2 * 4; }

Bm3dFastTables make_tables(const std::vector<TransformPair>& levels) {
  Bm3dFastTables tables;
  const TransformMatrix& forward = levels[0].forward;
  const TransformMatrix& inverse = levels[0].inverse;
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4;
    const int t = lane % 4;
    const auto pair = [&](const TransformMatrix& m, int row, int first, int second) {
      return halves(m.at(row, first).real(), m.at(row, second).real());
    };
    tables.matrices[0][lane] = pair(forward, g, column_of(2 * t), column_of(2 * t + 1));
    tables.matrices[1][lane] = pair(forward, g, 2 * t, 2 * t + 1);
    tables.matrices[2][lane] = pair(inverse, g, 2 * t, 2 * t + 1);
    tables.matrices[3][lane] = pair(inverse, column_of(g), 2 * t, 2 * t + 1);
  }
  if (levels.size() == 1) return tables;

  // The levels after the first, applied to each unit vector of the quadrant's 16 places: the columns of their
  // matrix.
  constexpr int side = patch / 2;
  double corner[side * side][side * side];
  for (int place = 0; place < side * side; ++place) {
    double values[side * side] = {};
    values[place] = 1;
    for (std::size_t level = 1; level < levels.size(); ++level) {
      const TransformMatrix& m = levels[level].forward;
      double columns[side * side] = {};
      for (int f = 0; f < m.side; ++f) {
        for (int x = 0; x < m.side; ++x) {
          for (int y = 0; y < m.side; ++y) columns[f * side + x] += m.at(f, y).real() * values[y * side + x];
        }
      }
      for (int y = 0; y < m.side; ++y) {
        for (int f = 0; f < m.side; ++f) {
          double sum = 0;
          for (int x = 0; x < m.side; ++x) sum += m.at(f, x).real() * columns[y * side + x];
          values[y * side + f] = sum;
        }
      }
    }
    for (int c = 0; c < side * side; ++c) corner[c][place] = values[c];
  }
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4;
    const int t = lane % 4;
    for (int half = 0; half < 2; ++half) {
      for (int part = 0; part < 2; ++part) {
        const int k = 2 * t + 8 * part;
        const int n = 8 * half + g;
        tables.corner[0][2 * half + part][lane] = halves(corner[n][k], corner[n][k + 1]);
        tables.corner[1][2 * half + part][lane] = halves(corner[k][n], corner[k + 1][n]);
      }
    }
  }
  return tables;
}

std::size_t bytes_of(const Bm3dTile& tile, bool wiener, bool wavelet, int most) {
  const auto pixels = static_cast<std::size_t>(tile.height) * tile.pitch;
  const auto weights = static_cast<std::size_t>(tile.height - (patch - 1)) * tile.pitch;
  const std::size_t own = static_cast<std::size_t>(warps) * own_words(most, wiener, wavelet);
  return 4 * ((wiener ? 3 : 2) * pixels + weights + (wavelet ? corner_table_words : 0) + own);
}

// Chosen by the settings alone: the sums' units depend on the tile, and results must not differ from band to
// band.
std::optional<Bm3dTile> make_tile(int spacing, int reach, bool wiener, bool wavelet, int most) {
  Bm3dTile tile;
  tile.reach = reach;
  const int least = 2 * reach + patch;
  constexpr int wanted_columns = 16;  // pixels of references, at least
  constexpr int wanted_rows = 39;
  const int least_rows = wiener ? 10 : 9;  // of references, if they lie far apart
  constexpr int most_references = 512;
  tile.pitch = 4;
  while (tile.pitch < least + wanted_columns) tile.pitch += 32;
  tile.columns = (tile.pitch - least) / spacing + 1;
  tile.width = (tile.columns - 1) * spacing + least;
  for (tile.rows = std::min(std::max(wanted_rows / spacing, least_rows), most_references / tile.columns);
       tile.rows > 0; --tile.rows) {
    tile.height = (tile.rows - 1) * spacing + least;
    tile.bytes = bytes_of(tile, wiener, wavelet, most);
    if (tile.bytes <= most_shared_bytes) return tile;
  }
  return std::nullopt;
}

// Levels 2 and 3 of bior1.5 must be orthonormal for the kernel, which holds at sides 4 and 2.
template <int Most, bool Wiener, bool Wavelet, bool Model = false>
void launch_for(const Bm3dFast& fast, const FastCall& call, Stream stream) {
  const dim3 blocks = tall_grid(blocks_for(call.filter.grid.count_i, fast.tile.columns),
                                blocks_for(call.filter.grid.count_j, fast.tile.rows), call.filter.planes);
  launch(filter_kernel<Most, Wiener, Wavelet, Model>, blocks, dim3(threads), fast.tile.bytes, stream, call);
}

// Whether the model's deviations and shares are within the range of the sums and shares.
bool takes_model(const PlaneNoise& noise) {
  constexpr double most_apart = 1024;
  constexpr double least_share = 1e-6;
  const auto [least, most] = std::minmax_element(noise.variances.begin(), noise.variances.end());
  return *most <= most_apart * *least &&
         *std::min_element(noise.shares.begin(), noise.shares.end()) >= least_share * mean_share(noise);
}

}  // namespace

double fast_sigma(const Bm3dSettings& settings, int plane) {
  if (settings.model.empty()) return settings.sigma[plane];
  const PlaneNoise& noise = settings.model[plane];
  return std::sqrt(*std::min_element(noise.variances.begin(), noise.variances.end()) * mean_share(noise));
}

std::optional<Bm3dFast> bm3d_fast_filter(const Bm3dSettings& settings, int index) {
  const Bm3dStep& step = index == 0 ? settings.first : settings.second;
  constexpr int largest_group = 32;
  bool noise_known = settings.sigma_map.data == nullptr && !is_correlated(settings) &&
                     std::all_of(settings.model.begin(), settings.model.end(), takes_model);
  for (int plane = 0; plane < static_cast<int>(settings.sigma.size()); ++plane)
    noise_known = noise_known && fast_sigma(settings, plane) > std::numeric_limits<float>::min() * 1e3;
  Bm3dFast fast;
  fast.model = !settings.model.empty();
  fast.wiener = index == 1;
  fast.wavelet = step.transform == PatchTransform::bior15;
  fast.most = step.group > 16 ? 32 : 16;
  const bool takes = noise_known && !(fast.model && step.transform != PatchTransform::dct) &&
                     step.patch == patch && step.along == GroupTransform::haar &&
                     step.group <= largest_group && step.transform != PatchTransform::dft &&
                     !(fast.wiener && fast.wavelet) && (fast.wiener ? step.strength > 0 : true);
  if (!takes) return std::nullopt;
  const std::optional<Bm3dTile> tile =
      make_tile(step.spacing, group_reach(settings, index), fast.wiener, fast.wavelet, fast.most);
  if (!tile) return std::nullopt;
  fast.tile = *tile;
  fast.tables = make_tables(patch_transform(step.transform, patch));
  return fast;
}

void set_fast_units(const Bm3dFast& fast, Bm3dSums& sums) {
  // A group gives a pixel at most one estimate for each of its patches, and at most patch x patch. A patch
  // begins at a pixel at most once a group.
  const double groups = static_cast<double>(fast.tile.columns) * fast.tile.rows;
  const double estimates = groups * std::min(fast.most, patch * patch);
  const auto power_below = [](double value) { return std::exp2(std::floor(std::log2(value))); };
  constexpr double room = 2147483000;
  constexpr double most_value_steps = 0x1p22 / 2 / largest_estimate;  // the range of rounded()
  constexpr double most_weight_steps = 0x1p23;                        // weights are exact floats
  sums.value_steps = static_cast<float>(
      std::min(power_below(room / (estimates * (largest_estimate + 1e-3))), most_value_steps));
  sums.weight_steps = static_cast<float>(std::min(power_below(room / groups), most_weight_steps));
}

void launch_bm3d_fast(const Bm3dFast& fast, const Bm3dFilterCall& filter, Stream stream) {
  const FastCall call{filter, fast.tile, fast.tables};
  if (fast.model) {
    if (fast.wiener) {
      return fast.most == 16 ? launch_for<16, true, false, true>(fast, call, stream)
                             : launch_for<32, true, false, true>(fast, call, stream);
    }
    return fast.most == 16 ? launch_for<16, false, false, true>(fast, call, stream)
                           : launch_for<32, false, false, true>(fast, call, stream);
  }
  if (fast.wiener) {
    return fast.most == 16 ? launch_for<16, true, false>(fast, call, stream)
                           : launch_for<32, true, false>(fast, call, stream);
  }
  if (fast.wavelet) {
    return fast.most == 16 ? launch_for<16, false, true>(fast, call, stream)
                           : launch_for<32, false, true>(fast, call, stream);
  }
  return fast.most == 16 ? launch_for<16, false, false>(fast, call, stream)
                         : launch_for<32, false, false>(fast, call, stream);
}

}  // namespace ungrain::cuda
