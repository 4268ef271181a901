#include "opencv_bilateral.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <vector>

#include "in_parallel.h"

// The loops over pixels are left to the compiler's vectors; on x86-64 gcc makes a version for each width of
// them, of which the loader takes one.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && __GNUC__ >= 12
#define UNGRAIN_FOR_EACH_CPU __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define UNGRAIN_FOR_EACH_CPU
#endif
#if defined(__GNUC__)
#define UNGRAIN_INLINE inline __attribute__((always_inline))
#else
#define UNGRAIN_INLINE inline
#endif

namespace ungrain::python {
namespace {

struct Tap {
  std::ptrdiff_t offset;   // samples from the pixel itself
  float spatial_exponent;  // the base-2 logarithm of its spatial weight
};

struct Work {
  PaddedPlanes image;
  std::vector<Tap> taps;
  float range_factor;  // of the squared distance, to base 2
  float* out;
};

// 2 to the power of t, which is 0 or less: the nearest whole power by its bits, the rest by a polynomial
// whose error is below 2e-7 of it. What would be smaller than any float is 2^-126.
UNGRAIN_INLINE float power_of_two(float t) {
  const float exponent = t > -126.0F ? t : -126.0F;
  const auto whole = static_cast<std::int32_t>(exponent - 0.5F);
  const float x = exponent - static_cast<float>(whole);
  constexpr std::array terms{0.00015403530F, 0.0013333558F, 0.009618129F, 0.05550411F,
                             0.24022651F,    0.6931472F,    1.0F};
  float value = terms[0];
  for (std::size_t i = 1; i < terms.size(); ++i) value = value * x + terms[i];
  return value * std::bit_cast<float>((whole + 127) << 23);
}

constexpr int tile = 64;  // pixels whose sums stay in the nearest cache

template <int channels, bool all_count>
UNGRAIN_INLINE void filter_tile(const Work& work, std::ptrdiff_t first, int count, float* out) {
  const PaddedPlanes& image = work.image;
  const std::ptrdiff_t plane =
      static_cast<std::ptrdiff_t>(image.height + 2 * image.radius) * (image.width + 2 * image.radius);
  const float* centre = image.samples + first;
  std::array<float, tile> weights{};
  std::array<std::array<float, tile>, channels> sums{};
  for (const Tap& tap : work.taps) {
    const float* other = centre + tap.offset;
    for (int i = 0; i < count; ++i) {
      float distance = 0;
      for (int c = 0; c < channels; ++c) distance += std::fabs(other[c * plane + i] - centre[c * plane + i]);
      if (!all_count) distance *= image.counts[first + i];  // nothing to be compared with: by place alone
      float weight = power_of_two(tap.spatial_exponent + work.range_factor * distance * distance);
      if (!all_count) weight *= image.counts[first + tap.offset + i];
      weights[i] += weight;
      for (int c = 0; c < channels; ++c) sums[c][i] += weight * other[c * plane + i];
    }
  }
  for (int i = 0; i < count; ++i) {
    for (int c = 0; c < channels; ++c) out[i * channels + c] = weights[i] > 0 ? sums[c][i] / weights[i] : 0;
  }
}

template <int channels>
UNGRAIN_INLINE void filter_rows_of(const Work& work, int begin, int end) {
  const PaddedPlanes& image = work.image;
  for (int y = begin; y < end; ++y) {
    const std::ptrdiff_t row =
        static_cast<std::ptrdiff_t>(y + image.radius) * (image.width + 2 * image.radius) + image.radius;
    float* out = work.out + static_cast<std::ptrdiff_t>(y) * image.width * channels;
    for (int x = 0; x < image.width; x += tile) {
      const int count = std::min(tile, image.width - x);
      if (image.counts == nullptr) {
        filter_tile<channels, true>(work, row + x, count, out + static_cast<std::ptrdiff_t>(x) * channels);
      } else {
        filter_tile<channels, false>(work, row + x, count, out + static_cast<std::ptrdiff_t>(x) * channels);
      }
    }
  }
}

UNGRAIN_FOR_EACH_CPU void filter_rows(const Work& work, int begin, int end) {
  switch (work.image.channels) {
    case 1:
      return filter_rows_of<1>(work, begin, end);
    case 2:
      return filter_rows_of<2>(work, begin, end);
    case 3:
      return filter_rows_of<3>(work, begin, end);
    default:
      return filter_rows_of<4>(work, begin, end);
  }
}

}  // namespace

void bilateral_of_sums(const PaddedPlanes& image, double sigma_range, double sigma_space, float* out) {
  const double to_base_2 = -0.5 * std::numbers::log2e;
  Work work{.image = image,
            .taps = {},
            .range_factor = static_cast<float>(to_base_2 / (sigma_range * sigma_range)),
            .out = out};
  for (int dy = -image.radius; dy <= image.radius; ++dy) {
    for (int dx = -image.radius; dx <= image.radius; ++dx) {
      const int squared = dx * dx + dy * dy;
      if (squared > image.radius * image.radius) continue;  // OpenCV's window is a disc
      work.taps.push_back({static_cast<std::ptrdiff_t>(dy) * (image.width + 2 * image.radius) + dx,
                           static_cast<float>(to_base_2 * squared / (sigma_space * sigma_space))});
    }
  }
  in_parallel(static_cast<std::size_t>(image.height), 16, [&](std::size_t begin, std::size_t end) {
    filter_rows(work, static_cast<int>(begin), static_cast<int>(end));
  });
}

}  // namespace ungrain::python
