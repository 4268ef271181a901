// The papers' sequential versions: one thread. What would take long is filtered in part.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>

#include "study/rung.h"

namespace ungrain::study {

// Where the whole picture takes longer than this, a part of it is timed and the time scaled.
inline constexpr double longest_whole_seconds = 2;
inline constexpr double part_seconds = 0.4;

inline double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// filter_row(y) filters one row of call.host.
inline Prepared by_rows(const RungCall& call, std::function<void(int y)> filter_row) {
  const int height = call.host.height;
  int rows = height;
  if (!call.whole) {
    const double row_seconds = seconds_of([&] { filter_row(height / 2); });
    if (row_seconds * height > longest_whole_seconds)
      rows = std::clamp(static_cast<int>(part_seconds / row_seconds), 1, height);
  }
  const auto timed = [=] {
    return 1000 * seconds_of([&] {
             for (int y = 0; y < rows; ++y) filter_row(y);
           });
  };
  return {.timed = timed, .result_on_host = true, .share = static_cast<double>(rows) / height};
}

// filter_pixel(picture, strengths, x, y) is the result's pixel.
template <class FilterPixel>
Prepared by_pixels(const RungCall& call, FilterPixel filter_pixel) {
  const auto filter_row = [=, picture = call.host, strengths = call.strengths](int y) {
    float* row = picture.out + static_cast<std::ptrdiff_t>(y) * picture.width;
    for (int x = 0; x < picture.width; ++x) row[x] = filter_pixel(picture, strengths, x, y);
  };
  return by_rows(call, filter_row);
}

}  // namespace ungrain::study
