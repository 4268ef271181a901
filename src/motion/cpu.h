// Block motion on a CPU.
#pragma once

#include <vector>

#include "core/method.h"

namespace ungrain {

// A stage's functions; the stage reads match pixels of three images and makes one plane of vectors for each
// pair of planes that it reads. `penalties` has one number for each.
std::size_t motion_scratch(const Extent& image);  // floats that the workers share
void run_motion(const StageCall& call, const std::vector<int>& penalties);

}  // namespace ungrain
