// The fast version on a CPU.
#pragma once

#include "core/method.h"
#include "methods/bm3d/settings.h"

namespace ungrain {

// Whether bm3d_fast() has what the settings ask for.
bool bm3d_fast_takes(const Bm3dSettings& settings, const ImageSpec& spec);

Pipeline bm3d_fast(const Bm3dSettings& settings, const ImageSpec& spec);

}  // namespace ungrain
