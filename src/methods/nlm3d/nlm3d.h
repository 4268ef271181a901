// nlm3d on each backend.
#pragma once

#include "core/method.h"
#include "methods/nlm3d/settings.h"

namespace ungrain {

Pipeline nlm3d_reference(const NlmVolumeParams& params, const ImageSpec& spec);
Pipeline nlm3d_cpu(const NlmVolumeParams& params, const ImageSpec& spec);
Pipeline nlm3d_cuda(const NlmVolumeParams& params, const ImageSpec& spec);

// The stages without `run` or `launch`. The last one is the search; where a copy is compared, the first stage
// makes it, and the search reads the source and the copy.
Pipeline nlm3d_stages(const NlmVolumeSettings& settings, bool makes_copy);

}  // namespace ungrain
