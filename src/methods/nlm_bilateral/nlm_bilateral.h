// The backends of nlm-bilateral.
#pragma once

#include <cmath>

#include "core/method.h"
#include "core/patch_search.h"
#include "core/patches.h"
#include "ungrain/methods/nlm_bilateral.h"

namespace ungrain {

Pipeline nlm_bilateral_reference(const NlmBilateralParams& params, const ImageSpec& spec);
Pipeline nlm_bilateral_cpu(const NlmBilateralParams& params, const ImageSpec& spec);
Pipeline nlm_bilateral_cuda(const NlmBilateralParams& params, const ImageSpec& spec);

inline bool is_identity(const NlmBilateralParams& params) {
  return (params.search == 1 && params.radius_t == 0) || params.sigma_h.value() == 0 ||
         params.sigma_range.value() == 0 || params.sigma_space == 0;
}

// The method as a search for similar patches.
inline PatchSearch nlm_bilateral_search(const NlmBilateralParams& params) {
  return {.search = params.search,
          .radius_t = params.radius_t,
          .patch = patch_weights(params.patch.value(), 0),
          .strength = params.sigma_h.value() * std::sqrt(2.0),
          .noise = 0,
          .range = params.sigma_range.value(),
          .space = params.sigma_space,
          .self = SelfWeight::one,
          .colour = params.colour,
          .border = params.border,
          .precision = params.precision.value()};
}

}  // namespace ungrain
