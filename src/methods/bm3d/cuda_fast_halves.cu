// The fast filter of groups of 8 x 8 patches on a GPU, with coefficients that are halves; see cuda_fast.cu.
//
// A lane's two coefficients of a patch are one word, and one instruction adds, scales or thresholds both. So
// are its two pixels of a patch: a tile's pixels lie in shared memory as halves in units of the noise, each
// with the pixel four columns to its right, and in step 2 beside those of the basic estimate: one load brings
// what a lane needs of a patch.
//
// For strong noise, where white is at most 32 sigma: pixels, less the middle of their range, are rounded by
// 1/256 sigma or less. Sums along the group are rounded: a difference of 32 patches that all have an edge of
// 32 sigma is off by up to 0.2 sigma, others by much less; images lose less than 0.002 dB. Pixels beyond 64
// sigma become NaN; groups that have one are left to the general kernel.
#include "methods/bm3d/cuda_fast_kernel.cuh"

namespace ungrain::cuda::bm3d_fast {
namespace {

// Pixels farther than this from the middle, in sigma, are too coarse as halves. They become NaN, and so do
// all estimates of their groups.
constexpr float largest_pixel = 64;
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
// All bits, which is NaN, where the magnitude is above the limit or NaN.
__device__ inline std::uint32_t all_ones_unless_within(std::uint32_t values, std::uint32_t limits) {
  return __hgtu2_mask(__habs2(as_pair(values)), as_pair(limits));
}
// All bits where the magnitude is above the limit, else 0.
__device__ inline std::uint32_t all_ones_above(std::uint32_t values, std::uint32_t limits) {
  return __hgt2_mask(__habs2(as_pair(values)), as_pair(limits));
}

template <int Most, bool Wiener, bool Wavelet>
class HalvesGroupFilter : public PatchGroup<Most, Wavelet> {
  using Group = PatchGroup<Most, Wavelet>;
  using Group::call_, Group::own_, Group::lane_, Group::places_, Group::mean_of_all_, Group::patches_in,
      Group::sum_over_warp, Group::constant_root;
  using typename Group::FourPlaces;

 public:
  static constexpr int most = Most;
  static constexpr bool wiener = Wiener;
  static constexpr bool wavelet = Wavelet;
  static constexpr bool model = false;
  static constexpr bool halves = true;
  // Pairs of a pixel and the one four columns to its right, in units of the noise: of the noisy image, then
  // of the basic estimate. One load takes both.
  static constexpr int images = Wiener ? 2 : 1;
  struct alignas(4 * images) Pixel {
    std::uint32_t pairs[images];
  };

  __device__ HalvesGroupFilter(const FastCall& call, int plane, std::uint32_t* own,
                               const std::uint32_t* corner_tables)
      : Group(call, plane, own, corner_tables), plane_(plane), row_sum_(call.tables.row_sums[lane_]) {}

  __device__ Pixel pairs_of(const float (&pixels)[images], const float (&right)[images]) const {
    const float middle = call_.filter.middle[plane_];
    Pixel pixel;
#pragma unroll
    for (int i = 0; i < images; ++i) {
      const float scale = i == 0 ? this->inverse_sigma_ : this->inverse_noise_;
      const std::uint32_t pair = pack_halves((pixels[i] - middle) * scale, (right[i] - middle) * scale);
      pixel.pairs[i] = pair | all_ones_unless_within(pair, twice(largest_pixel));
    }
    return pixel;
  }

  // As GroupFilter's in cuda_fast.cu, except that estimates are left half transformed, for add().
  __device__ bool filter(const Pixel* pixels, const Pixel* /*basic*/, int size, float /*deviation*/) {
    std::uint32_t coefficients[images][Most];
    forward(pixels, size, coefficients);
    float kept = 0;
    if constexpr (Wiener) {
      kept = find_lost_shares(size, coefficients[1]);
#pragma unroll
      for (int n = 0; n < Most; ++n) parts_[n] = product_of(coefficients[0][n], coefficients[1][n]);
    } else {
      kept = threshold(size, coefficients[0]);
#pragma unroll
      for (int n = 0; n < Most; ++n) parts_[n] = coefficients[0][n];
    }
    this->set_weight(kept);
    return inverse(size);
  }

  // Adds the group to the block's sums: values from this lane's first pixel on, weights from the tile's first
  // pixel on.
  __device__ void add(int* values, int* weights, int place, int size) const {
    this->add_weight(weights, place, size);
    const auto factor = static_cast<float>(this->weight_);
    const float scale[2] = {factor * this->window_[0], factor * this->window_[1]};
    FourPlaces four;
    for_pairs<Most>(
        size,
        [&](int n) {
          float c[4];
          this->template second_product<1>(c, parts_[n], parts_[n + 1]);
          this->add_patch(bytes_after(values, four.of(places_, n)), c[0], c[1], scale);
          int* const second = bytes_after(values, four.of(places_, n + 1));
          if (n > 0 || size > 1) this->add_patch(second, c[2], c[3], scale);
        },
        [](int) {});
  }

 private:
  __device__ static const Pixel& pixel_at(const Pixel* pixels, int place) {
    return *bytes_after(pixels, place * images);
  }

  // Coefficients of the group in each image. Sums and differences along the group are not normalised, except
  // the sum of all, which becomes the mean. The reference's mean is taken off by the first product, which
  // starts with what it makes of that mean. Sets mean_of_all_, of the noisy image.
  __device__ void forward(const Pixel* pixels, int size, std::uint32_t (&coefficients)[images][Most]) {
    const float2 of_lane = unpack_halves(pixel_at(pixels, places_[0]).pairs[0]);
    const float mean = this->mean_of_patch(of_lane.x, of_lane.y);
    const float of_row = -mean * row_sum_;
    // Of what a product takes at a time: a patch of both images, or two patches.
    std::uint32_t less_mean[2];
    less_mean[0] = twice(of_row);
    // A register of its own: the product takes a pair of them.
    less_mean[1] = Wiener ? twice(of_row * call_.basic_per_noisy) : kept_in_register(less_mean[0]);
    FourPlaces four;
    for_pairs<Most>(
        size,
        [&](int n) {
          const Pixel first = pixel_at(pixels, four.of(places_, n));
          const Pixel second = pixel_at(pixels, four.of(places_, n + 1));
          std::uint32_t c[2];
          if constexpr (Wiener) {
            transform(c, first.pairs[0], first.pairs[1], less_mean);
            coefficients[0][n] = c[0];
            coefficients[1][n] = c[1];
            transform(c, second.pairs[0], second.pairs[1], less_mean);
            coefficients[0][n + 1] = c[0];
            coefficients[1][n + 1] = c[1];
          } else {
            transform(c, first.pairs[0], second.pairs[0], less_mean);
            coefficients[0][n] = c[0];
            coefficients[0][n + 1] = c[1];
          }
          // The second patch of a group of one is 0.
          if (n == 0 && size == 1) {
#pragma unroll
            for (int i = 0; i < images; ++i) coefficients[i][1] = 0;
          }
        },
        [&](int n) {
#pragma unroll
          for (int i = 0; i < images; ++i)
            coefficients[i][n] = coefficients[i][n + 1] = __float_as_uint(zero_here());
        });
    // Of lane 0, the only one that adds it, in which a row of the first product is a sum.
    float mean_of_all[images];
#pragma unroll
    for (int i = 0; i < images; ++i) {
      mean_of_all[i] =
          fmaf(-unpack_halves(less_mean[i]).x, call_.mean_per_first_row, call_.middles[plane_][i]);
      add_along(size, mean_of_all[i], coefficients[i]);
    }
    mean_of_all_ = mean_of_all[0];
  }

  // Both products of two patches, forward.
  __device__ void transform(std::uint32_t (&c)[2], std::uint32_t first, std::uint32_t second,
                            const std::uint32_t (&less_mean)[2]) const {
    std::uint32_t firsts[2];
    this->template first_products<0>(firsts, first, second, less_mean);
    this->template second_product<0>(c, firsts[0], firsts[1]);
  }

  // Haar along the group, as in cuda_fast.cu. `mean_of_all`: of the group's pixels, times the patch's side.
  __device__ void add_along(int size, float mean_of_all, std::uint32_t (&coefficients)[Most]) const {
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
    // The mean subtracted from every pixel is part of the mean's coefficient only. fminf() would replace NaN.
    if (!Wavelet && lane_ == 0) {
      of_all.x += mean_of_all;
      if (fabsf(of_all.x) > largest_mean) of_all.x = copysignf(largest_mean, of_all.x);
    }
    coefficients[0] = pack_halves(of_all.x, of_all.y);
  }

  // As lost_shares() in cuda_fast.cu: replaces the basic estimate's coefficients by the shares that the noisy
  // ones lose.
  __device__ float find_lost_shares(int size, std::uint32_t (&coefficients)[Most]) const {
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
        coefficients[0] = pack_halves(first, second);
        continue;
      }
      const auto noise = static_cast<float>(patches_in(n));
      const float2 sums = unpack_halves(multiply_add(coefficients[n], coefficients[n], twice(noise)));
      const std::uint32_t share = pack_halves(approximate_reciprocal(sums.x), approximate_reciprocal(sums.y));
      const std::uint32_t keeps = multiply_add(twice(-noise), share, twice(1));
      kept[n % 2] = multiply_add(keeps, keeps, kept[n % 2]);
      coefficients[n] = share;
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
    std::uint32_t masks = 0;  // their sum
#pragma unroll
    for (int n = 0; n < Most; ++n) {
      const float limit_of_this = n == 0 ? limit_of_all : limit * constant_root(patches_in(n));
      const std::uint32_t keep = all_ones_above(coefficients[n], twice(limit_of_this));
      coefficients[n] &= ~keep;
      masks += keep;
    }
    // To the sum's negative a kept coefficient in a lower half adds 1 - 2^16, one in an upper half 2^16.
    masks = -masks;
    const int lower = static_cast<int>(masks & 0xFFFFU);
    float count = static_cast<float>(2 * lower + (static_cast<int>(masks) >> 16));
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

  // Haar back and the first products back. Returns whether the estimates fit the sums.
  __device__ bool inverse(int size) {
#pragma unroll
    for (int step = Most / 2; step > 0; step /= 2) {
      // Wiener: find_lost_shares() has divided them already.
      const float share = Wiener ? 1.0F : 0.5F / static_cast<float>(step);
#pragma unroll
      for (int n = 0; n < Most; n += 2 * step) {
        const std::uint32_t mean = parts_[n];
        const std::uint32_t difference = parts_[n + step];
        if constexpr (Wiener) {
          parts_[n] = sum_of(mean, difference);
          parts_[n + step] = difference_of(mean, difference);
        } else {
          parts_[n] = multiply_add(difference, twice(share), mean);
          parts_[n + step] = multiply_add(difference, twice(-share), mean);
        }
      }
    }
    std::uint32_t largest = 0;
    for_pairs<Most>(
        size,
        [&](int n) {
          std::uint32_t firsts[2];
          this->template first_products<1>(firsts, parts_[n], parts_[n + 1]);
          parts_[n] = firsts[0];
          parts_[n + 1] = firsts[1];
          largest = larger_halves(larger_halves(largest, firsts[0]), firsts[1]);
        },
        [](int) {});
    return this->fit_sums(largest);
  }

  int plane_;
  float row_sum_;              // of the first product, of the lane's row
  std::uint32_t parts_[Most];  // what coefficients lose, then the first products of what patches lose
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
