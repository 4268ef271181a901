// Lists the GPUs that this process can use, and why it cannot use the others.
#pragma once

#include <vector>

#include "ungrain/denoiser.h"

namespace ungrain::cuda {

// One entry for each GPU; without a GPU, one unusable entry `cuda` that says why.
std::vector<DeviceInfo> discover();

// Whether any GPU has been used in this process. Costs nothing where none has.
bool is_started();
void start(int gpu);

}  // namespace ungrain::cuda
