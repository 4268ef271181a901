// The backends of nlm-bilateral.
#pragma once

#include "core/method.h"
#include "ungrain/methods/nlm_bilateral.h"

namespace ungrain {

Pipeline nlm_bilateral_reference(const NlmBilateralParams& params, const ImageSpec& spec);
Pipeline nlm_bilateral_cpu(const NlmBilateralParams& params, const ImageSpec& spec);

inline bool is_identity(const NlmBilateralParams& params) {
  return params.search == 1 || params.sigma_h.value() == 0 || params.sigma_range.value() == 0 ||
         params.sigma_space == 0;
}

}  // namespace ungrain
