#pragma once

#include <string_view>

#include "ungrain/methods/common.h"

namespace ungrain {

// The median of a (2 radius + 1)² square, each channel by itself.
struct MedianParams {
  static constexpr std::string_view method = "median";
  int radius = 1;  // pixels
  Border border = Border::symmetric;
};

}  // namespace ungrain
