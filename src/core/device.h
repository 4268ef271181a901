// Which devices there are, and which one a method gets.
#pragma once

#include <vector>

#include "core/method.h"
#include "ungrain/denoiser.h"

namespace ungrain {

// Turns `automatic` into a device that is there and that the method supports; an explicit choice is taken or
// refused, never replaced.
Device choose_device(const Method& method, Device wanted);

// The GPU of each queue of a CUDA device that choose_device() gave.
std::vector<int> gpus_of(Device device);

const Method::Build& build_for(const Method& method, Device device);

}  // namespace ungrain
