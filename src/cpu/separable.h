// Weighted means along rows and then along columns: what box and gaussian are on the CPU.
#pragma once

#include <vector>

#include "core/method.h"
#include "ungrain/methods/common.h"

namespace ungrain {

// `half` holds the weights of the centre and of the pixels 1, 2, … to either side. Time is linear in the
// radius.
Pipeline weighted_mean(const std::vector<double>& half, Border border, const ImageSpec& spec);

// All weights alike: time hardly depends on the radius.
Pipeline box_mean(int radius, Border border, const ImageSpec& spec);

}  // namespace ungrain
