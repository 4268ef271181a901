// What every method has in common about noise, as stages around the method's own: fill in what was cut ->
// stabilise -> method -> restore -> put grain back.
#pragma once

#include <vector>

#include "core/cut_fill.h"
#include "core/method.h"
#include "core/point_curve.h"
#include "ungrain/denoiser.h"

namespace ungrain {

struct NoiseStages {
  std::vector<ChannelFill> fill;      // one for each colour channel; empty: no such stage
  std::vector<PointCurve> stabilize;  // likewise
  std::vector<PointCurve> restore;    // likewise
  double keep_grain = 0;
};

// `values` are the method's parameters, resolved.
NoiseStages noise_stages(const Method& method, void* values, const NoiseHandling& noise,
                         const ImageSpec& spec);

// Where there is nothing to add the pipeline stays as it is.
Pipeline with_noise_stages(Pipeline pipeline, NoiseStages stages, Device::Kind device);

}  // namespace ungrain
