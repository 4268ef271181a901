#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "ungrain/methods/common.h"

namespace ungrain {

// The centre of the first pass's variance.
enum class VarianceCentre : std::uint8_t {
  mean,   // the weighted mean
  pixel,  // the pixel itself
};

// Two bilateral passes: the weights of the first give each pixel a variance V. V gives that pixel's own
// strength in the second: factor · sqrt(max(V + epsilon, epsilon)).
struct AdaptiveBilateralParams {
  static constexpr std::string_view method = "adaptive-bilateral";
  int radius = 5;  // pixels
  // Pixels; 0 returns the input. Unset: follows sigma, or 3 where that is not known.
  std::optional<double> sigma_space = {};
  std::optional<double> sigma = {};  // the noise's standard deviation, pixel units; unset: measured
  // Of the first pass. Pixel units, or delta E where colour is lab; 0 returns the input. Unset: follows
  // sigma.
  std::optional<double> sigma_range = {};
  // 0 returns the input. Unset: 2 where sigma is known, else the paper's 0.5.
  std::optional<double> factor = {};
  // Pixel units squared, or delta E squared. Unset: 0.01 for a range of 255, scaled with its square.
  std::optional<double> epsilon = {};
  VarianceCentre centre = VarianceCentre::pixel;
  Window window = Window::square;
  ColourMode colour = ColourMode::joint;
  Border border = Border::symmetric;
};

}  // namespace ungrain
