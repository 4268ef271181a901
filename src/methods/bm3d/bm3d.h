// The backends of bm3d.
#pragma once

#include "core/method.h"
#include "methods/bm3d/settings.h"
#include "ungrain/methods/bm3d.h"

namespace ungrain {

Pipeline bm3d_reference(const Bm3dParams& params, const ImageSpec& spec);
Pipeline bm3d_cpu(const Bm3dParams& params, const ImageSpec& spec);
Pipeline bm3d_cuda(const Bm3dParams& params, const ImageSpec& spec);

// Any settings, in float on all threads. Runs the settings that bm3d_fast() does not support.
Pipeline bm3d_general(const Bm3dSettings& settings, const ImageSpec& spec);

}  // namespace ungrain
