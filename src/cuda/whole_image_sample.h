// The pixels by which a whole-image search decides beforehand whether halves are worthwhile. The image's size
// alone decides them, so that its parts are filtered like the whole.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/planes.h"

namespace ungrain::cuda {

inline constexpr int most_samples = 512;

constexpr int sample_count(const Extent& image) { return std::min(most_samples, image.width * image.height); }

// Position of a sample in the image, counted row by row. Small images: all pixels. Others: multiples of 1/g
// and 1/g² less their whole part, g³ = g + 1, in units of 2^-32, which fill the image evenly and do not
// coincide with patterns of rows and columns.
constexpr int sample_position(int sample, const Extent& image) {
  constexpr std::uint32_t across = 3242174889U;
  constexpr std::uint32_t down = 2447445413U;
  constexpr std::uint32_t middle = 1U << 31U;
  if (image.width * image.height <= most_samples) return sample;
  const auto place = [sample](std::uint32_t step, int side) {
    const std::uint32_t part = middle + static_cast<std::uint32_t>(sample) * step;
    return static_cast<int>(static_cast<std::uint64_t>(part) * static_cast<std::uint64_t>(side) >> 32U);
  };
  return place(down, image.height) * image.width + place(across, image.width);
}

// How many of the samples may need a second search before one search in pairs of halves is less work: where a
// share s of the pixels does, both searches take halves + s pairs. Comparing two pixels takes the time of
// their vectors' numbers and of an exponential, which on an H200 (256², patches of 3 to 7: 1.54 to 2.64 ms)
// equals that of 176 numbers.
constexpr int most_searched_again(int samples, int numbers_of_halves, int numbers_of_pairs) {
  constexpr int exponential = 176;
  return samples * (numbers_of_pairs - numbers_of_halves) / (exponential + numbers_of_pairs);
}

}  // namespace ungrain::cuda
