#include "cuda/patch_search.h"
#include "methods/nlm_bilateral/nlm_bilateral.h"

namespace ungrain {

Pipeline nlm_bilateral_cuda(const NlmBilateralParams& params, const ImageSpec& spec) {
  if (is_identity(params)) return {};
  return cuda::patch_search_cuda("nlm-bilateral", nlm_bilateral_search(params), spec);
}

}  // namespace ungrain
