// The papers' sequential versions: one thread. Large pictures are filtered in part and the time is scaled.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>

#include "study/rung.h"

namespace ungrain::study {

inline constexpr double sampled_taps = 3e7;  // some tenths of a second

// filter_row(y) filters one row of call.host.
inline Prepared by_rows(const RungCall& call, std::function<void(int y)> filter_row) {
  const double taps_a_row = static_cast<double>(call.host.width) * (2 * call.strengths.radius + 1) *
                            (2 * call.strengths.radius + 1);
  const int height = call.host.height;
  const int rows = call.whole ? height : std::clamp(static_cast<int>(sampled_taps / taps_a_row), 1, height);
  const auto timed = [=] {
    const auto start = std::chrono::steady_clock::now();
    for (int y = 0; y < rows; ++y) filter_row(y);
    const std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - start;
    return ms.count() * height / rows;
  };
  return {.timed = timed, .result_on_host = true};
}

}  // namespace ungrain::study
