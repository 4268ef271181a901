// Bilateral on a GPU, one channel, square window: each weight is computed once and used for both its pixels.
#pragma once

#include "cuda/window.h"
#include "ungrain/methods/common.h"

namespace ungrain {

// Of radius 4 to 15.
void launch_symmetric_bilateral(const cuda::WindowWeights& weights, Border border, int channel,
                                const DeviceStageCall& call);

}  // namespace ungrain
