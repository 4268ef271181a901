// What the benchmarks share.
#pragma once

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "ungrain/image.h"

namespace ungrain::bench {

struct Size {
  int width = 0;
  int height = 0;
};

inline ImageSpec spec_of(const Size& size, PixelType type, bool rgb) {
  ImageSpec spec{.width = size.width, .height = size.height, .type = type};
  if (rgb) {
    spec.channels = 3;
    spec.colour = Colour::rgb;
  }
  return spec;
}

// Of the clock (CLOCK_MONOTONIC), of the processors' work for this process or for this thread.
inline double nanoseconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

inline double quantile(std::vector<double> values, double share) {
  const auto middle = values.begin() + std::lround(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

inline double median(const std::vector<double>& values) { return quantile(values, 0.5); }

}  // namespace ungrain::bench
