// Weighted means along the slow axis: what box and gaussian do last, on a GPU.
#pragma once

#include <vector>

#include "core/method.h"

namespace ungrain::cuda {

// As cpu/slow_mean.h's, for at most 64 images to either side.
Pipeline with_slow_mean(Pipeline pipeline, const std::vector<double>& half, Border border, int planes);

}  // namespace ungrain::cuda
