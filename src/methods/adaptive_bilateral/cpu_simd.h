// The vectorised part of adaptive-bilateral on the CPU.
#pragma once

#include "cpu/window_tile.h"

namespace ungrain {

// How the first pass' sums of scaled differences become a pixel's own strength.
struct OwnStrength {
  bool around_mean;
  float to_variance;  // from squared scaled differences
  float epsilon;
  float factor_squared;
  float from_strength;  // divided by a strength's square: what multiplies squared scaled differences for it
};

void adaptive_bilateral_tile(const WindowTile& kernel, const OwnStrength& strength, const StageCall& call,
                             const Rect& tile, int first_channel, float* memory);

}  // namespace ungrain
