// ridge on each backend.
#pragma once

#include "core/method.h"
#include "methods/ridge/settings.h"

namespace ungrain {

Pipeline ridge_reference(const RidgeParams& params, const ImageSpec& spec);
Pipeline ridge_cpu(const RidgeParams& params, const ImageSpec& spec);
Pipeline ridge_cuda(const RidgeParams& params, const ImageSpec& spec);

// The reference's passes. Also on a CPU, for images smaller than a patch and processors without vectors.
RidgePasses ridge_passes_by_definition(const RidgeSettings& settings);
RidgePasses ridge_passes_on_cpu(const RidgeSettings& settings);
RidgePasses ridge_passes_on_cuda(const RidgeSettings& settings);

}  // namespace ungrain
