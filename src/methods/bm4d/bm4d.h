// bm4d on each backend.
#pragma once

#include "core/method.h"
#include "methods/bm4d/settings.h"

namespace ungrain {

Pipeline bm4d_reference(const Bm4dParams& params, const ImageSpec& spec);
Pipeline bm4d_cpu(const Bm4dParams& params, const ImageSpec& spec);
Pipeline bm4d_cuda(const Bm4dParams& params, const ImageSpec& spec);

// The two steps as stages, without `run` or `launch`: the second reads the source and the first one's result.
Pipeline bm4d_stages(const Bm4dSettings& settings);

}  // namespace ungrain
