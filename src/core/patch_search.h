// The search for similar patches, of which nlm and nlm-bilateral are two settings.
#pragma once

#include <limits>
#include <vector>

#include "ungrain/methods/nlm.h"

namespace ungrain {

// w(p,q) = exp(-max(d² - 2 noise², 0) / strength²) exp(-(I(p)-I(q))² / 2 range²) exp(-|p-q|² / 2 space²), d²
// the weighted mean of the squared differences of the patches.
struct PatchSearch {
  int search = 0;             // side of the window, or whole_image
  int radius_t = 0;           // images before and after that are searched too
  std::vector<double> patch;  // weights along one axis
  double strength = 0;
  double noise = 0;
  double range = std::numeric_limits<double>::infinity();
  double space = std::numeric_limits<double>::infinity();
  SelfWeight self = SelfWeight::one;
  ColourMode colour = ColourMode::joint;
  Border border = Border::symmetric;
  // Of a whole-image search on a GPU, and of a search in 8-bit images on a CPU.
  Precision precision = Precision::half;
};

}  // namespace ungrain
