#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "ungrain/methods/common.h"

namespace ungrain {

enum class BilateralQuality : std::uint8_t {
  exact,
  separable,  // rows, then columns (Pham and van Vliet): the cost grows with the radius, not its square
  grid,  // in a coarse grid of space and value (Paris and Durand): the cost does not depend on the radius
};

// How two colours are compared where channels share a weight. For one channel both are equal.
enum class ColourDistance : std::uint8_t {
  euclidean,   // root of the mean squared difference over the channels; in Lab of the sum, which is delta E
  city_block,  // sum of the absolute differences, as OpenCV's
};

// A mean weighted by distance in space and in value, so that it stops at edges:
// w(p,q) = exp(-|p-q|² / 2 sigma_space²) exp(-D(I(p),I(q))² / 2 sigma_range²), D being |I(p)-I(q)| in gray
// and the colour distance otherwise.
struct BilateralParams {
  static constexpr std::string_view method = "bilateral";
  int radius = 5;    // pixels
  int radius_t = 0;  // images of a sequence before and after that take part; quality exact only
  // Pixels from one image of a sequence to the next, a part of the distance |p-q|: 1 in a volume of cubic
  // voxels. 0: images count alike, as in a clip.
  double step_t = 0;
  // Pixels; 0 returns the input. Unset: follows sigma, or 3 where that is not known.
  std::optional<double> sigma_space = {};
  std::optional<double> sigma = {};  // the noise's standard deviation, pixel units; unset: measured
  // Pixel units, or delta E where colour is lab; 0 returns the input. Unset: follows sigma.
  std::optional<double> sigma_range = {};
  BilateralQuality quality = BilateralQuality::exact;
  Window window = Window::square;
  ColourMode colour = ColourMode::joint;
  ColourDistance colour_distance = ColourDistance::euclidean;
  Border border = Border::symmetric;
};

}  // namespace ungrain
