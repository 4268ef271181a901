// Lists the devices and chooses one for a method.
#pragma once

#include <vector>

#include "core/method.h"
#include "ungrain/denoiser.h"

namespace ungrain {

// Turns `automatic` into a usable device that the method supports; an explicit choice is accepted or refused,
// never replaced.
Device choose_device(const Method& method, Device wanted);

// The GPU of each queue of a CUDA device that choose_device() returned.
std::vector<int> gpus_of(Device device);

const Method::Build& build_for(const Method& method, Device device);

}  // namespace ungrain
