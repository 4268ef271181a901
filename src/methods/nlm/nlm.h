// The backends of nlm.
#pragma once

#include "core/choices.h"
#include "core/method.h"
#include "core/patch_search.h"
#include "core/patches.h"
#include "ungrain/methods/nlm.h"

namespace ungrain {

Pipeline nlm_reference(const NlmParams& params, const ImageSpec& spec);
Pipeline nlm_cpu(const NlmParams& params, const ImageSpec& spec);
Pipeline nlm_cuda(const NlmParams& params, const ImageSpec& spec);

inline bool is_identity(const NlmParams& params) {
  return params.h.value() == 0 || (params.search == 1 && params.radius_t == 0);
}

// The noise in the units of h; 0 if h was given without it.
inline double nlm_noise(const NlmParams& params, const ImageSpec& spec) {
  return describe::noise_compared(params, spec).value_or(0);
}

// The method as a search for similar patches.
inline PatchSearch nlm_search(const NlmParams& params, const ImageSpec& spec) {
  return {.search = params.search,
          .radius_t = params.radius_t,
          .patch = patch_weights(params.patch.value(), params.patch_sigma.value()),
          .strength = params.h.value(),
          .noise = nlm_noise(params, spec),
          .self = params.self,
          .colour = params.colour,
          .border = params.border,
          .precision = params.precision.value()};
}

}  // namespace ungrain
