#pragma once

#include <optional>
#include <string_view>

#include "ungrain/methods/common.h"

namespace ungrain {

// A mean weighted by distance in space and in value, so that it stops at edges:
// w(p,q) = exp(-|p-q|² / 2 sigma_space²) exp(-(I(p)-I(q))² / 2 sigma_range²).
struct BilateralParams {
  static constexpr std::string_view method = "bilateral";
  int radius = 5;          // pixels
  double sigma_space = 3;  // pixels; 0 returns the input
  // Pixel units, or delta E where colour is lab; 0 returns the input. Unset: 30/255 of the range (of 100 for
  // lab).
  std::optional<double> sigma_range = {};
  Window window = Window::square;
  ColourMode colour = ColourMode::joint;
  Border border = Border::symmetric;
};

}  // namespace ungrain
