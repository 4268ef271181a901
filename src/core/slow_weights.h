// Weights along the slow axis of a sequence.
#pragma once

#include <vector>

#include "core/method.h"

namespace ungrain {

// The weight of the image at each offset from -radius to radius, for a stage call: those of images that stand
// nowhere are 0, and the others add up to 1 under `shrink`. `half` holds the weights of the centre and of the
// images 1, 2, … to either side, of any sum.
std::vector<float> slow_weights(const std::vector<double>& half, Border border, const StageData& data);

}  // namespace ungrain
