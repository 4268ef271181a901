// [003]'s experiment, as its program has it: a patch is multiplied by a Gaussian whose largest value is 1,
// and the squared distance divided by filtSigma, for values from 0 to 1. The preset paper-003 is the same in
// the library's terms.
#pragma once

#include <cmath>
#include <vector>

#include "study/whole_image.h"

namespace ungrain::study {

inline constexpr double patch_deviation = 5.0 / 3;
inline constexpr double filter_sigma = 0.02;

// Squared distances of patches times this are exponents.
inline float whole_image_factor() { return static_cast<float>(-1 / (filter_sigma * 255 * 255)); }

// Row by row.
inline std::vector<float> gaussian_patch(const Strengths& strengths) {
  std::vector<float> patch;
  for (int y = -strengths.radius; y <= strengths.radius; ++y) {
    for (int x = -strengths.radius; x <= strengths.radius; ++x) {
      patch.push_back(
          static_cast<float>(std::exp(-0.5 * (x * x + y * y) / (patch_deviation * patch_deviation))));
    }
  }
  return patch;
}

}  // namespace ungrain::study
