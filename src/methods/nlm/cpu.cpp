#include "core/patches.h"
#include "cpu/patch_search.h"
#include "methods/nlm/nlm.h"

namespace ungrain {

Pipeline nlm_cpu(const NlmParams& params, const ImageSpec& spec) {
  if (is_identity(params)) return {};
  return patch_search_cpu("nlm",
                          {.search = params.search,
                           .patch = patch_weights(params.patch.value(), params.patch_sigma.value()),
                           .strength = params.h.value(),
                           .noise = nlm_noise(params, spec),
                           .self = params.self,
                           .colour = params.colour,
                           .border = params.border},
                          spec);
}

}  // namespace ungrain
