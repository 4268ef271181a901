// Stages that look at one pixel at a time, or at few around it.
#pragma once

#include "core/noise_stages.h"

namespace ungrain {

PointwiseStages cpu_pointwise_stages();

}  // namespace ungrain
