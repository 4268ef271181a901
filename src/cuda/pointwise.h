// Stages that read one pixel at a time, or a few around it.
#pragma once

#include "core/noise_stages.h"

namespace ungrain::cuda {

PointwiseStages pointwise_stages();

}  // namespace ungrain::cuda
