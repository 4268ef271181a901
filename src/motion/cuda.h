// Block motion on a GPU.
#pragma once

#include <vector>

#include "core/method.h"

namespace ungrain::cuda {

// A stage's function and its scratch in floats; see motion/cpu.h.
std::size_t motion_scratch(const Extent& image, int units);
void launch_motion(const DeviceStageCall& call, const std::vector<int>& penalties);

}  // namespace ungrain::cuda
