#include "cpu/patch_search.h"
#include "methods/nlm/nlm.h"

namespace ungrain {

Pipeline nlm_cpu(const NlmParams& params, const ImageSpec& spec) {
  if (is_identity(params)) return {};
  return patch_search_cpu("nlm", nlm_search(params, spec), nlm_reference(params, spec), spec);
}

}  // namespace ungrain
