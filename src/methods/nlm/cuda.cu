#include "cuda/patch_search.h"
#include "methods/nlm/nlm.h"

namespace ungrain {

Pipeline nlm_cuda(const NlmParams& params, const ImageSpec& spec) {
  if (is_identity(params)) return {};
  return cuda::patch_search_cuda("nlm", nlm_search(params, spec), spec);
}

}  // namespace ungrain
