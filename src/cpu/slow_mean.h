// Weighted means along the slow axis: what box and gaussian do last, on the CPU.
#pragma once

#include <vector>

#include "core/method.h"

namespace ungrain {

// Adds a stage to the pipeline. `half` holds the weights of the centre and of the images 1, 2, … to either
// side; with one weight there is nothing to add.
Pipeline with_slow_mean(Pipeline pipeline, const std::vector<double>& half, Border border, int planes);

}  // namespace ungrain
