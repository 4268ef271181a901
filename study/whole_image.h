// What the ladders that search the whole image share. Times go with the fourth power of an image's side, so
// that large ones are searched in part when they are timed: the first rows, the time scaled.
#pragma once

#include <algorithm>
#include <functional>

#include "study/rung.h"
#include "study/sequential.h"

namespace ungrain::study {

inline int patch_entries(const Strengths& strengths) {
  const int side = 2 * strengths.radius + 1;
  return side * side;
}
inline int pixels_of(const Picture& picture) { return picture.width * picture.height; }

// How many rows of the picture a kernel of that many threads searches for each pixel: all of them where that
// takes some tenths of a second at most.
inline int searched_rows(const RungCall& call, int threads) {
  if (call.whole) return call.device.height;
  constexpr double enough_seconds = 0.075;
  constexpr double differences_a_second = 3e12;        // of a GPU that is kept busy
  constexpr double differences_a_thread_second = 6e7;  // of one thread, which waits for its loads
  const double pixels = pixels_of(call.device);
  const double a_row = static_cast<double>(call.device.width) * patch_entries(call.strengths);
  const double pixels_a_thread = std::max(1.0, pixels / threads);
  const double seconds_a_row =
      std::max(pixels * a_row / differences_a_second, pixels_a_thread * a_row / differences_a_thread_second);
  return std::clamp(static_cast<int>(enough_seconds / seconds_a_row), 1, call.device.height);
}

// One thread of the processor: filter_pixel(i) for pixels i, row by row. work_before(n) is the work of the
// first n of them, in differences.
inline Prepared one_pixel_after_the_other(const RungCall& call, std::function<void(int i)> filter_pixel,
                                          const std::function<double(int n)>& work_before,
                                          std::function<void()> finish = {}) {
  const int all = pixels_of(call.host);
  int pixels = all;
  if (!call.whole) {
    const double work_a_second = work_before(1) / seconds_of([&] { filter_pixel(0); });
    if (work_before(all) > longest_whole_seconds * work_a_second) {
      while (pixels > 1 && work_before(pixels) > part_seconds * work_a_second) pixels /= 2;
    }
  }
  const auto timed = [=] {
    return 1000 * seconds_of([&] {
             for (int i = 0; i < pixels; ++i) filter_pixel(i);
             if (finish) finish();
           });
  };
  return {.timed = timed, .result_on_host = true, .share = work_before(pixels) / work_before(all)};
}

// A rung that is timed up to this size only: beyond it takes minutes.
inline Rung up_to(Rung rung, Size largest) {
  rung.prepare = [prepare = rung.prepare, largest](const RungCall& call) -> std::optional<Prepared> {
    if (pixels_of(call.host) > largest.width * largest.height) return {};
    return prepare(call);
  };
  return rung;
}

}  // namespace ungrain::study
