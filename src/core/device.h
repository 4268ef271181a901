// Which devices there are, and which one a method gets.
#pragma once

#include <vector>

#include "core/method.h"
#include "ungrain/denoiser.h"

namespace ungrain {

// Turns `automatic` into a device that is there and that the method supports; an explicit choice is taken or
// refused, never replaced.
Device choose_device(const Method& method, Device wanted);

// What a device works on at once: every usable GPU for cuda:all (two queues where there is one GPU), the
// device itself otherwise. Throws Error(no_device) where cuda:all finds none.
std::vector<Device> queues(Device device);

// The GPU of each queue of a CUDA device that choose_device() gave.
std::vector<int> gpus_of(Device device);

const Method::Build& build_for(const Method& method, Device device);

}  // namespace ungrain
