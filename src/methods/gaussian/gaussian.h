// The backends of gaussian.
#pragma once

#include <vector>

#include "core/method.h"
#include "ungrain/methods/gaussian.h"

namespace ungrain {

Pipeline gaussian_reference(const GaussianParams& params, const ImageSpec& spec);
Pipeline gaussian_cpu(const GaussianParams& params, const ImageSpec& spec);
Pipeline gaussian_cuda(const GaussianParams& params, const ImageSpec& spec);

// Weights of the centre and of the positions 1, 2, … to either side, of any sum; the centre's alone where
// sigma is 0.
std::vector<double> gaussian_half(double sigma, int radius);

}  // namespace ungrain
