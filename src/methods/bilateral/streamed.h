// Bilateral on a GPU, one or three channels together, small square windows: bound by memory, so pixels go
// through registers.
#pragma once

#include "cuda/window.h"
#include "ungrain/methods/common.h"

namespace ungrain {

inline constexpr int most_streamed_radius = 2;

void launch_streamed_bilateral(const cuda::WindowWeights& weights, Border border, int first_channel,
                               int channels, const DeviceStageCall& call);

}  // namespace ungrain
