#include "cpu/patch_search.h"
#include "methods/nlm_bilateral/nlm_bilateral.h"

namespace ungrain {

Pipeline nlm_bilateral_cpu(const NlmBilateralParams& params, const ImageSpec& spec) {
  if (is_identity(params)) return {};
  return patch_search_cpu("nlm-bilateral", nlm_bilateral_search(params),
                          nlm_bilateral_reference(params, spec), spec);
}

}  // namespace ungrain
