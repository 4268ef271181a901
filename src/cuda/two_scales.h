// The passes between an image and its half on a GPU.
#pragma once

#include "core/two_scales.h"

namespace ungrain::cuda {

ScalePasses scale_passes();

}  // namespace ungrain::cuda
