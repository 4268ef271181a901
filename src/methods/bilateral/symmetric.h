// Bilateral on a GPU, square window: each weight is computed once and used for both its pixels.
#pragma once

#include "cuda/window.h"
#include "ungrain/methods/common.h"

namespace ungrain {

// The radii for which kernels are compiled.
inline constexpr int least_symmetric_radius = 4;
inline constexpr int most_symmetric_radius = 15;

// Of such a radius; of one channel, or of three that share a weight.
void launch_symmetric_bilateral(const cuda::WindowWeights& weights, Border border, int first_channel,
                                int channels_per_weight, const DeviceStageCall& call);

}  // namespace ungrain
