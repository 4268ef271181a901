// What the bilateral family shares on a GPU: the window as a kernel argument, and the stages to Lab and back.
#pragma once

#include <vector>

#include "core/method.h"
#include "ungrain/methods/common.h"

namespace ungrain::cuda {

inline constexpr int most_radius = 128;

// Spatial weights and the strength, as exponents of 2. Kernels take it by value.
struct WindowWeights {
  // `radius` is the window's; `reach` is this pass's along each axis.
  WindowWeights(Window window, int radius, const Reach& reach, double sigma_space, double sigma_range,
                int divisor);

  int reach_x;
  int reach_y;
  bool square;
  float scale;    // values times this, their difference squared and summed, are negated exponents
  float unscale;  // 1 / scale
  float nothing;  // replaces a pixel that does not count: times scale, its weight is 0 beside any other
  float space[most_radius + 1];   // exponent of a distance along one axis
  short height[most_radius + 1];  // rows above and below that belong to the column |dx|
};

Pipeline in_colour_mode(ColourMode mode, std::vector<Stage> passes, double white, bool wraps);

}  // namespace ungrain::cuda
