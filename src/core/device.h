// Lists the devices and chooses one for a method.
#pragma once

#include <vector>

#include "core/method.h"
#include "ungrain/denoiser.h"

namespace ungrain {

// Turns `automatic` into a usable device that the method supports; an explicit choice is accepted or refused,
// never replaced.
Device choose_device(const Method& method, Device wanted);

// The devices of a device's queues: every usable GPU for cuda:all (two queues where there is one GPU), the
// device itself otherwise. Throws Error(no_device) where cuda:all finds none.
std::vector<Device> queues(Device device);

// The GPU of each queue of a CUDA device that choose_device() returned.
std::vector<int> gpus_of(Device device);

const Method::Build& build_for(const Method& method, Device device);

}  // namespace ungrain
