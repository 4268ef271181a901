// The fast filter of groups of 8 x 8 patches on a GPU, with coefficients that are halves; see cuda_fast.cu.
//
// A lane's two coefficients of a patch are one word, and one instruction adds, scales or thresholds both: 15
// % fewer instructions than with floats. For strong noise, where white is at most 32 sigma. Sums along the
// group are rounded: a difference of 32 patches that all have an edge of 32 sigma is off by up to 0.2 sigma,
// others by much less; images lose less than 0.002 dB. Groups with pixels beyond 64 sigma of the reference's
// mean are left to the general kernel.
#include "methods/bm3d/cuda_fast_kernel.cuh"

namespace ungrain::cuda::bm3d_fast {
namespace {

constexpr float largest_pixel = 64;
constexpr std::uint32_t both_signs = 0x80008000U;
// Beyond it the mean's coefficient does not matter: nothing is taken away from it.
constexpr float largest_mean = 30000;

// ---- Pairs of halves as words, which the compiler never takes apart ----

__device__ inline __half2 as_pair(std::uint32_t halves) { return *reinterpret_cast<const __half2*>(&halves); }
__device__ inline std::uint32_t as_word(__half2 pair) {
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}
__device__ inline std::uint32_t twice(float value) { return as_word(__float2half2_rn(value)); }
__device__ inline std::uint32_t sum_of(std::uint32_t a, std::uint32_t b) {
  return as_word(__hadd2(as_pair(a), as_pair(b)));
}
__device__ inline std::uint32_t difference_of(std::uint32_t a, std::uint32_t b) {
  return as_word(__hsub2(as_pair(a), as_pair(b)));
}
__device__ inline std::uint32_t product_of(std::uint32_t a, std::uint32_t b) {
  return as_word(__hmul2(as_pair(a), as_pair(b)));
}
// a b + c
__device__ inline std::uint32_t multiply_add(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  return as_word(__hfma2(as_pair(a), as_pair(b), as_pair(c)));
}
// 1 where the magnitude is above the limit, else 0.
__device__ inline std::uint32_t ones_above(std::uint32_t values, std::uint32_t limits) {
  return as_word(__hgt2(__habs2(as_pair(values)), as_pair(limits)));
}

template <int Most, bool Wiener, bool Wavelet>
class HalvesGroupFilter : public PatchGroup<Most, Wavelet> {
  using Group = PatchGroup<Most, Wavelet>;
  using Group::call_, Group::own_, Group::lane_, Group::parts_, Group::mean_of_all_, Group::patches_in,
      Group::sum_over_warp, Group::constant_root;

 public:
  static constexpr int most = Most;
  static constexpr bool wiener = Wiener;
  static constexpr bool wavelet = Wavelet;
  static constexpr bool model = false;

  using Group::Group;

  // As GroupFilter's in cuda_fast.cu.
  __device__ bool filter(const float* noisy, const float* basic, int size, float /*deviation*/) {
    std::uint32_t coefficients[Most];
    float kept = 0;
    if constexpr (Wiener) {
      if (!forward(basic, size, this->inverse_noise_, coefficients)) return false;
      std::uint32_t shares[shares_in_registers];
      kept = lost_shares(size, coefficients, shares);
      if (!forward(noisy, size, this->inverse_sigma_, coefficients)) return false;
#pragma unroll
      for (int n = 0; n < Most; ++n) {
        const std::uint32_t share = n < shares_in_registers ? shares[n] : *share_at(n);
        coefficients[n] = product_of(coefficients[n], share);
      }
    } else {
      if (!forward(noisy, size, this->inverse_sigma_, coefficients)) return false;
      kept = threshold(size, coefficients);
    }
    this->set_weight(kept);
    return inverse(size, coefficients);
  }

 private:
  // The other factors lie in shared memory.
  __device__ std::uint32_t* share_at(int n) const { return own_ + (n - shares_in_registers) * 32 + lane_; }

  // Coefficients in units of 1 / scale. Sums and differences along the group are not normalised, except the
  // sum of all, which becomes the mean.
  __device__ bool forward(const float* image, int size, float scale, std::uint32_t (&coefficients)[Most]) {
    const bool fits = this->load(
        image, size, scale, largest_pixel,
        [&](int n, std::uint32_t first, std::uint32_t second) {
          std::uint32_t c[2];
          this->template second_product<0>(c, this->template first_product<0>(first),
                                           this->template first_product<0>(second));
          coefficients[n] = c[0];
          coefficients[n + 1] = c[1];
        },
        [&](int n) { coefficients[n] = coefficients[n + 1] = __float_as_uint(zero_here()); });
    if (!fits) return false;

      // Haar, as in cuda_fast.cu.
#pragma unroll
    for (int step = 1; step < Most; step *= 2) {
#pragma unroll
      for (int n = 0; n < Most; n += 2 * step) {
        const std::uint32_t sum = sum_of(coefficients[n], coefficients[n + step]);
        const std::uint32_t difference = difference_of(coefficients[n], coefficients[n + step]);
        coefficients[n + step] = n > 0 || step < size ? difference : 0;
        coefficients[n] = sum;
      }
    }
    float2 of_all = unpack_halves(coefficients[0]);
    const float inverse_size = approximate_reciprocal(static_cast<float>(size));
    of_all.x *= inverse_size;
    of_all.y *= inverse_size;
    // The mean subtracted from every pixel is part of the mean's coefficient only.
    if (!Wavelet && lane_ == 0) of_all.x = fminf(fmaxf(of_all.x + mean_of_all_, -largest_mean), largest_mean);
    coefficients[0] = pack_halves(of_all.x, of_all.y);
    return true;
  }

  // As in cuda_fast.cu: the shares that the noisy coefficients lose, from the basic estimate's.
  __device__ float lost_shares(int size, const std::uint32_t (&coefficients)[Most],
                               std::uint32_t (&shares)[shares_in_registers]) const {
    // Counts of kept shares, in two parts: each is at most 16, exact to a hundredth.
    std::uint32_t kept[2] = {};
    float kept_of_all = 0;
#pragma unroll
    for (int n = 0; n < Most; ++n) {
      if (n == 0) {
        const float2 part = unpack_halves(coefficients[0]);
        const auto patches = static_cast<float>(size);
        const float first = approximate_reciprocal(fmaf(part.x * part.x, patches, 1.0F));
        const float second = approximate_reciprocal(fmaf(part.y * part.y, patches, 1.0F));
        kept_of_all = fmaf(1 - first, 1 - first, (1 - second) * (1 - second));
        shares[0] = pack_halves(first, second);
        continue;
      }
      const auto noise = static_cast<float>(patches_in(n));
      const float2 sums = unpack_halves(multiply_add(coefficients[n], coefficients[n], twice(noise)));
      const std::uint32_t share = pack_halves(approximate_reciprocal(sums.x), approximate_reciprocal(sums.y));
      const std::uint32_t keeps = multiply_add(twice(-noise), share, twice(1));
      kept[n % 2] = multiply_add(keeps, keeps, kept[n % 2]);
      if (n < shares_in_registers) {
        shares[n] = share;
      } else {
        *share_at(n) = share;
      }
    }
    const float2 even = unpack_halves(kept[0]);
    const float2 odd = unpack_halves(kept[1]);
    return sum_over_warp(kept_of_all + ((even.x + even.y) + (odd.x + odd.y)));
  }

  // Zeroes coefficients above the threshold, which leaves what is taken away. Returns how many were kept.
  __device__ float threshold(int size, std::uint32_t (&coefficients)[Most]) {
    const float limit = call_.filter.strength;
    const float limit_of_all = limit * rsqrtf(static_cast<float>(size));
    const bool corner = Wavelet && in_corner(lane_);
    std::uint32_t* const of_corner = own_ + lane_ / 4 * 2 + lane_ % 4;
    if constexpr (Wavelet) {
      if (corner) {
#pragma unroll
        for (int n = 0; n < Most; ++n) of_corner[n * corner_words] = coefficients[n];
      }
      __syncwarp();
    }
    std::uint32_t kept = 0;  // exact counts
#pragma unroll
    for (int n = 0; n < Most; ++n) {
      const std::uint32_t keep =
          ones_above(coefficients[n], twice(n == 0 ? limit_of_all : limit * constant_root(patches_in(n))));
      coefficients[n] = multiply_add(coefficients[n] ^ both_signs, keep, coefficients[n]);
      kept = sum_of(kept, keep);
    }
    const float2 counts = unpack_halves(kept);
    float count = counts.x + counts.y;
    if constexpr (Wavelet) {
      // Replaces the count of the corner's lanes.
      if (corner) count = 0;
      count += this->threshold_corner(size, limit, limit_of_all);
      __syncwarp();
      if (corner) {
#pragma unroll
        for (int n = 0; n < Most; ++n) coefficients[n] = of_corner[n * corner_words];
      }
      __syncwarp();
    }
    return static_cast<float>(warp_sum(static_cast<int>(count)));
  }

  // Returns whether the estimates fit the sums.
  __device__ bool inverse(int size, std::uint32_t (&coefficients)[Most]) {
#pragma unroll
    for (int step = Most / 2; step > 0; step /= 2) {
      // Wiener: lost_shares() has divided them already.
      const float share = Wiener ? 1.0F : 0.5F / static_cast<float>(step);
#pragma unroll
      for (int n = 0; n < Most; n += 2 * step) {
        const std::uint32_t mean = coefficients[n];
        const std::uint32_t difference = coefficients[n + step];
        if constexpr (Wiener) {
          coefficients[n] = sum_of(mean, difference);
          coefficients[n + step] = difference_of(mean, difference);
        } else {
          coefficients[n] = multiply_add(difference, twice(share), mean);
          coefficients[n + step] = multiply_add(difference, twice(-share), mean);
        }
      }
    }
    std::uint32_t largest = 0;
    for_pairs<Most>(
        size,
        [&](int n) {
          const std::uint32_t first = this->template first_product<1>(coefficients[n]);
          const std::uint32_t second = this->template first_product<1>(coefficients[n + 1]);
          largest = larger_halves(larger_halves(largest, first), second);
          float c[4];
          this->template second_product<1>(c, first, second);
          parts_[n][0] = c[0];
          parts_[n][1] = c[1];
          parts_[n + 1][0] = c[2];
          parts_[n + 1][1] = c[3];
        },
        [](int) {});
    return this->fit_sums(largest);
  }
};

}  // namespace

void launch_halves(const Bm3dFast& fast, const FastCall& call, Stream stream) {
  if (fast.wiener) {
    return fast.most == 16 ? launch_filter<HalvesGroupFilter<16, true, false>>(call, stream)
                           : launch_filter<HalvesGroupFilter<32, true, false>>(call, stream);
  }
  if (fast.wavelet) {
    return fast.most == 16 ? launch_filter<HalvesGroupFilter<16, false, true>>(call, stream)
                           : launch_filter<HalvesGroupFilter<32, false, true>>(call, stream);
  }
  return fast.most == 16 ? launch_filter<HalvesGroupFilter<16, false, false>>(call, stream)
                         : launch_filter<HalvesGroupFilter<32, false, false>>(call, stream);
}

}  // namespace ungrain::cuda::bm3d_fast
