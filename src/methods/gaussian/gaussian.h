// The backends of gaussian.
#pragma once

#include "core/method.h"
#include "ungrain/methods/gaussian.h"

namespace ungrain {

Pipeline gaussian_reference(const GaussianParams& params, const ImageSpec& spec);
Pipeline gaussian_cpu(const GaussianParams& params, const ImageSpec& spec);
Pipeline gaussian_cuda(const GaussianParams& params, const ImageSpec& spec);

}  // namespace ungrain
