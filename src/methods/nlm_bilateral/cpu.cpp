#include <cmath>

#include "core/patches.h"
#include "cpu/patch_search.h"
#include "methods/nlm_bilateral/nlm_bilateral.h"

namespace ungrain {

Pipeline nlm_bilateral_cpu(const NlmBilateralParams& params, const ImageSpec& spec) {
  if (is_identity(params)) return {};
  return patch_search_cpu("nlm-bilateral",
                          {.search = params.search,
                           .patch = patch_weights(params.patch.value(), 0),
                           .strength = params.sigma_h.value() * std::sqrt(2.0),
                           .noise = 0,
                           .range = params.sigma_range.value(),
                           .space = params.sigma_space,
                           .self = SelfWeight::one,
                           .colour = params.colour,
                           .border = params.border},
                          spec);
}

}  // namespace ungrain
