// Which GPUs this process can use, and why it cannot use the others.
#pragma once

#include <vector>

#include "ungrain/denoiser.h"

namespace ungrain::cuda {

// One entry for each GPU; where there is none, one entry `cuda` that is not usable and says why.
std::vector<DeviceInfo> discover();

}  // namespace ungrain::cuda
