#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "ungrain/methods/common.h"

namespace ungrain {

// The weight of a pixel for itself.
enum class SelfWeight : std::uint8_t {
  max,  // the largest weight of the other pixels, at least 2^-100
  one,
};

// A mean of the pixels whose surroundings (patches) look alike, near or far: w(p,q) = exp(-max(d² - 2 sigma²,
// 0) / h²), d² the weighted mean of the squared differences of the patches around p and q.
struct NlmParams {
  static constexpr std::string_view method = "nlm";
  int search = 21;   // pixels: side of the window that is searched, odd; whole_image: everywhere
  int radius_t = 0;  // images of a sequence before and after that are searched too; 0 with whole_image
  // Pixels: side of a patch, odd. Unset: wide enough for patch_sigma, or 7 where that is 0.
  std::optional<int> patch = {};
  // Pixels: Gaussian weights within a patch; 0: all the same. Unset: follows sigma; 0 where that is not known
  // or where patch is given.
  std::optional<double> patch_sigma = {};
  // The noise's standard deviation, pixel units; 0: no correction for it. Unset: measured, or 0 where h is
  // given.
  std::optional<double> sigma = {};
  // Strength, pixel units (delta E for lab); 0 returns the input. Unset: follows sigma.
  std::optional<double> h = {};
  SelfWeight self = SelfWeight::max;
  ColourMode colour = ColourMode::joint;
  Border border = Border::symmetric;
  // Of a whole-image search on a GPU. Unset: single for integers of more than 12 bits, else half.
  std::optional<Precision> precision = {};
};

}  // namespace ungrain
