// Stages that look at one pixel at a time, or at few around it.
#pragma once

#include "core/noise_stages.h"

namespace ungrain::cuda {

PointwiseStages pointwise_stages();

}  // namespace ungrain::cuda
