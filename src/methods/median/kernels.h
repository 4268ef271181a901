// The vectorised parts of median, for samples of each type.
#pragma once

#include <cstddef>
#include <cstdint>

#include "methods/median/network.h"

namespace ungrain {

// Vectors read and write up to this many bytes behind the samples they are asked for.
inline constexpr std::ptrdiff_t median_slack = 256;

// values[k]: the samples of value k of the network, `width` of them and those of its shifts, `channels` of
// them a pixel.
void run_network(const MedianNetwork& network, std::uint8_t* const* values, std::ptrdiff_t width,
                 int channels);
void run_network(const MedianNetwork& network, std::uint16_t* const* values, std::ptrdiff_t width,
                 int channels);
void run_network(const MedianNetwork& network, float* const* values, std::ptrdiff_t width, int channels);

// Two rows of medians of 3 x 3 from four rows that begin a pixel to the left. `room` holds six rows of
// `width` samples and two pixels more, and the slack.
template <class T>
struct FourRows {
  const T* rows[4];
  T* out[2];
  T* room;
  std::ptrdiff_t room_stride;
};
void medians_of_nine(const FourRows<std::uint8_t>& at, std::ptrdiff_t width, int channels);
void medians_of_nine(const FourRows<std::uint16_t>& at, std::ptrdiff_t width, int channels);
void medians_of_nine(const FourRows<float>& at, std::ptrdiff_t width, int channels);

}  // namespace ungrain
