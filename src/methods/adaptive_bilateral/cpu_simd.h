// The vectorised part of adaptive-bilateral on the CPU.
#pragma once

#include "cpu/window_tile.h"

namespace ungrain {

// Constants that turn pass 1's sums of scaled differences into a pixel's own strength.
struct OwnStrength {
  bool around_mean;
  float to_variance;  // factor from squared scaled differences
  float epsilon;
  float factor_squared;
  float from_strength;  // divided by a strength's square: the factor on squared scaled differences
};

void adaptive_bilateral_tile(const WindowTile& kernel, const OwnStrength& strength, const StageCall& call,
                             const Rect& tile, int first_channel, float* memory);

}  // namespace ungrain
