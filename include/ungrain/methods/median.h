#pragma once

#include <string_view>

#include "ungrain/methods/common.h"

namespace ungrain {

// The median of a (2 radius + 1)² square, each channel by itself; of a sequence, over (2 radius_t + 1)
// images.
struct MedianParams {
  static constexpr std::string_view method = "median";
  int radius = 1;    // pixels
  int radius_t = 0;  // images of a sequence before and after
  Border border = Border::symmetric;
};

}  // namespace ungrain
