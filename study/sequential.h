// The papers' sequential versions: one thread. Large pictures are filtered in part.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>

#include "study/rung.h"

namespace ungrain::study {

inline constexpr double sampled_taps = 3e7;  // some tenths of a second

// filter_row(y) filters one row of call.host. Each pair of pixels takes as long as so many taps of a plain
// window.
inline Prepared by_rows(const RungCall& call, std::function<void(int y)> filter_row, int taps_a_pair = 1) {
  const int side = 2 * call.strengths.radius + 1;
  const double taps_a_row = static_cast<double>(call.host.width) * side * side * taps_a_pair;
  const int height = call.host.height;
  const int rows = call.whole ? height : std::clamp(static_cast<int>(sampled_taps / taps_a_row), 1, height);
  const auto timed = [=] {
    const auto start = std::chrono::steady_clock::now();
    for (int y = 0; y < rows; ++y) filter_row(y);
    const std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - start;
    return ms.count();
  };
  return {.timed = timed, .result_on_host = true, .share = static_cast<double>(rows) / height};
}

// filter_pixel(picture, strengths, x, y) is the result's pixel.
template <class FilterPixel>
Prepared by_pixels(const RungCall& call, FilterPixel filter_pixel, int taps_a_pair = 1) {
  const auto filter_row = [=, picture = call.host, strengths = call.strengths](int y) {
    float* row = picture.out + static_cast<std::ptrdiff_t>(y) * picture.width;
    for (int x = 0; x < picture.width; ++x) row[x] = filter_pixel(picture, strengths, x, y);
  };
  return by_rows(call, filter_row, taps_a_pair);
}

}  // namespace ungrain::study
