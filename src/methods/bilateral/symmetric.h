// Bilateral on a GPU, one or three channels together, square window: each weight is computed once and used
// for both its pixels.
#pragma once

#include "cuda/window.h"
#include "ungrain/methods/common.h"

namespace ungrain {

// One channel: radius 4 to 15; three: radius 7.
void launch_symmetric_bilateral(const cuda::WindowWeights& weights, Border border, int first_channel,
                                int channels, const DeviceStageCall& call);

}  // namespace ungrain
