// Weighted means along rows and then along columns: what box and gaussian are on a GPU.
#pragma once

#include <vector>

#include "core/method.h"
#include "ungrain/methods/common.h"

namespace ungrain::cuda {

// `half` holds the weights of the centre and of the pixels 1, 2, … to either side. Two stages.
Pipeline separable_mean(const std::vector<double>& half, Border border, int planes);

}  // namespace ungrain::cuda
