// Bilateral on a GPU, square window: each weight is computed once and used for both its pixels.
#pragma once

#include "cuda/window.h"
#include "ungrain/methods/common.h"

namespace ungrain {

// Of radius 4 to 10; of one channel, or of three that share a weight.
void launch_symmetric_bilateral(const cuda::WindowWeights& weights, Border border, int first_channel,
                                int channels_per_weight, const DeviceStageCall& call);

}  // namespace ungrain
