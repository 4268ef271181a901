// The backends of bilateral.
#pragma once

#include "core/method.h"
#include "ungrain/methods/bilateral.h"

namespace ungrain {

Pipeline bilateral_reference(const BilateralParams& params, const ImageSpec& spec);
Pipeline bilateral_cpu(const BilateralParams& params, const ImageSpec& spec);

// A strength of 0, or a window of one pixel, leaves the image as it is.
inline bool is_identity(const BilateralParams& params) {
  return params.radius == 0 || params.sigma_space == 0 || params.sigma_range.value() == 0;
}

}  // namespace ungrain
