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

// Two rows of medians at a time, of windows of 3 x 3 or 5 x 5.
template <class T>
struct RowPair {
  const T* rows[6];  // four or six rows, from one or two above the first on, starting one or two pixels to
                     // the left
  T* out[2];         // null where there is no such row
  std::ptrdiff_t width;  // samples
  int channels;          // samples a pixel
  T* beside;             // pair_rows_beside rows of the width, four pixels and the slack
  std::ptrdiff_t beside_stride;
};
inline constexpr int pair_rows_beside = 12;
void medians_of_9(const RowPair<std::uint8_t>& pair);
void medians_of_9(const RowPair<std::uint16_t>& pair);
void medians_of_9(const RowPair<float>& pair);
void medians_of_25(const RowPair<std::uint8_t>& pair);
void medians_of_25(const RowPair<std::uint16_t>& pair);
void medians_of_25(const RowPair<float>& pair);

}  // namespace ungrain
