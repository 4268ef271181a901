// Stages that look at one pixel at a time, or at few around it.
#pragma once

#include <vector>

#include "core/cut_fill.h"
#include "core/method.h"
#include "core/point_curve.h"

namespace ungrain::cuda {

// Gives the stage its launch: each plane through its curve.
void launch_curves(Stage& stage, std::vector<PointCurve> curves);

// filled_sample() of every sample.
void launch_fill(Stage& stage, std::vector<ChannelFill> fills, bool wraps);

// in[1] + share (in[0] - in[1])
void launch_mix(Stage& stage, float share);

}  // namespace ungrain::cuda
