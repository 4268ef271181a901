// Bilateral on a GPU, gray, small square windows: bound by memory, so pixels go through registers.
#pragma once

#include "cuda/window.h"
#include "ungrain/methods/common.h"

namespace ungrain {

inline constexpr int most_streamed_radius = 2;

void launch_streamed_bilateral(const cuda::WindowWeights& weights, Border border, int plane,
                               const DeviceStageCall& call);

}  // namespace ungrain
