#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "ungrain/methods/common.h"

namespace ungrain {

// What the variance of the first pass is taken around.
enum class VarianceCentre : std::uint8_t {
  mean,   // the weighted mean
  pixel,  // the pixel itself
};

// Two bilateral passes: the weights of the first give each pixel a variance V, and that pixel's own strength
// for the second: factor · sqrt(max(V + epsilon, epsilon)).
struct AdaptiveBilateralParams {
  static constexpr std::string_view method = "adaptive-bilateral";
  int radius = 5;          // pixels
  double sigma_space = 3;  // pixels; 0 returns the input
  // Of the first pass. Pixel units, or delta E where colour is lab; 0 returns the input. Unset: 30/255 of the
  // range.
  std::optional<double> sigma_range = {};
  double factor = 0.5;  // 0 returns the input
  // Pixel units squared, or delta E squared. Unset: 0.01 for a range of 255, scaled with its square.
  std::optional<double> epsilon = {};
  VarianceCentre centre = VarianceCentre::pixel;
  Window window = Window::square;
  ColourMode colour = ColourMode::joint;
  Border border = Border::symmetric;
};

}  // namespace ungrain
