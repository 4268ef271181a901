#pragma once

#include <optional>
#include <string_view>

#include "ungrain/methods/common.h"

namespace ungrain {

// A Gaussian blur over a (2 radius + 1)² square.
struct GaussianParams {
  static constexpr std::string_view method = "gaussian";
  double sigma = 1;                // pixels; 0 returns the input
  std::optional<int> radius = {};  // pixels; unset: ceil(3 sigma)
  Border border = Border::symmetric;
};

}  // namespace ungrain
