// The backends of adaptive-bilateral.
#pragma once

#include "core/method.h"
#include "ungrain/methods/adaptive_bilateral.h"

namespace ungrain {

Pipeline adaptive_bilateral_reference(const AdaptiveBilateralParams& params, const ImageSpec& spec);
Pipeline adaptive_bilateral_cpu(const AdaptiveBilateralParams& params, const ImageSpec& spec);
Pipeline adaptive_bilateral_cuda(const AdaptiveBilateralParams& params, const ImageSpec& spec);

// A strength of 0, or a window of one pixel, leaves the image unchanged.
inline bool is_identity(const AdaptiveBilateralParams& params) {
  return params.radius == 0 || params.sigma_space.value() == 0 || params.sigma_range.value() == 0 ||
         params.factor.value() == 0;
}

}  // namespace ungrain
