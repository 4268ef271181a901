#pragma once

#include <optional>
#include <string_view>

#include "ungrain/methods/common.h"

namespace ungrain {

// Non-local means and bilateral in one: a pixel counts where its surroundings look alike, its own value is
// near and it is not far away: w(p,q) = exp(-d² / 2 sigma_h²) exp(-(I(p)-I(q))² / 2 sigma_range²) exp(-|p-q|²
// / 2 sigma_space²), d² the mean of the squared differences of the patches around p and q.
struct NlmBilateralParams {
  static constexpr std::string_view method = "nlm-bilateral";
  int search = 21;   // pixels: side of the window that is searched, odd; or whole_image
  int radius_t = 0;  // images of a sequence before and after that are searched too; 0 with whole_image
  // Pixels: side of a patch, odd. Unset: follows sigma, or 7 where that is not known.
  std::optional<int> patch = {};
  std::optional<double> sigma = {};  // the noise's standard deviation, pixel units; unset: measured
  // Strengths in pixel units, or delta E where colour is lab; 0 returns the input. Unset: they follow sigma.
  std::optional<double> sigma_h = {};
  std::optional<double> sigma_range = {};
  double sigma_space = 3.5;  // pixels; infinity: distance does not count; 0 returns the input
  ColourMode colour = ColourMode::joint;
  Border border = Border::symmetric;
  // Of a whole-image search on a GPU. Unset: single for integers of more than 12 bits, else half.
  std::optional<Precision> precision = {};
};

}  // namespace ungrain
