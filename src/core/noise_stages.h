// Handling of noise that all methods share, as stages around the method's own: fill in cut samples ->
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
  SliceShape slice = {};  // of a volume
};

// `values` are the method's parameters, resolved.
NoiseStages noise_stages(const Method& method, void* values, const NoiseHandling& noise,
                         const ImageSpec& spec);

// How a backend computes them: each gives the stage its `run` or `launch`.
struct PointwiseStages {
  // Each plane through its curve.
  void (*curves)(Stage& stage, std::vector<PointCurve> curves) = nullptr;
  // filled_sample() of every sample.
  void (*fill)(Stage& stage, std::vector<ChannelFill> fills, const FillArea& area) = nullptr;
  // in[1] + share (in[0] - in[1])
  void (*mix)(Stage& stage, float share) = nullptr;
};

// Returns the pipeline unchanged where there is nothing to add.
Pipeline with_noise_stages(Pipeline pipeline, NoiseStages stages, const PointwiseStages& make);

}  // namespace ungrain
