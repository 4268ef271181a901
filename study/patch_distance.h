// What the sequential versions that compare patches share.
#pragma once

#include <cstddef>

#include "study/rung.h"

namespace ungrain::study {

// The sum of the squared differences of the patches around two pixels of a picture.
inline float patch_distance(const float* first, const float* second, int stride) {
  float sum = 0;
  for (int y = -patch_reach; y <= patch_reach; ++y) {
    for (int x = -patch_reach; x <= patch_reach; ++x) {
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(y) * stride + x;
      const float difference = first[at] - second[at];
      sum += difference * difference;
    }
  }
  return sum;
}

}  // namespace ungrain::study
