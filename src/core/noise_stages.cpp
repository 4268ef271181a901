#include "core/noise_stages.h"

#include <algorithm>
#include <memory>

#include "core/noise_handling.h"
#include "core/point_curve.h"
#include "noise/cut_noise.h"
#include "noise/rician.h"
#include "noise/stabilize.h"
#include "ungrain/noise_model.h"

namespace ungrain {
namespace {

Stage curve_stage(const char* name, std::vector<PointCurve> curves, int reads, const PointwiseStages& make) {
  Stage stage{.name = name, .planes = static_cast<int>(curves.size()), .reads = {reads}};
  make.curves(stage, std::move(curves));
  return stage;
}

Stage fill_stage(std::vector<ChannelFill> fill, const FillArea& area, const PointwiseStages& make) {
  Stage stage{.name = "fill in what was cut",
              .reach = {.x = fill_window, .y = fill_window},
              .planes = static_cast<int>(fill.size()),
              .reads = {0}};
  make.fill(stage, std::move(fill), area);
  return stage;
}

Stage mix_stage(int planes, int result, double share, const PointwiseStages& make) {
  Stage stage{.name = "keep grain", .planes = planes, .reads = {0, result}};
  make.mix(stage, static_cast<float>(share));
  return stage;
}

PointCurve identity() { return {{}, {0, 1}}; }

}  // namespace

NoiseStages noise_stages(const Method& method, void* values, const NoiseHandling& noise,
                         const ImageSpec& spec) {
  NoiseStages stages;
  stages.keep_grain = noise.keep_grain;
  stages.slice = spec.slice;
  if (noise.applied_strength == 0) return stages;
  if (noise.cut_at_black || noise.cut_at_white) {
    for (const ChannelDeviation& deviation : noise_before_cut(method, values, noise, spec)) {
      const bool none = deviation.mean() == 0;
      ChannelFill fill;
      if (noise.cut_at_black && !none) fill.black = filling_curves(deviation, spec, false);
      if (noise.cut_at_white && !none) fill.white = filling_curves(deviation, spec, true);
      stages.fill.push_back(std::move(fill));
    }
  }
  if (noise.rician) {
    const RicianStabilizer stabilizer(*noise.rician);
    const auto planes = static_cast<std::size_t>(spec.colour_channels());
    stages.stabilize.assign(planes, stabilizer.forward_curve());
    stages.restore.assign(planes, stabilizer.inverse_curve());
    return stages;
  }
  if (noise.model == nullptr || method.noise_model) return stages;
  for (int c = 0; c < spec.colour_channels(); ++c) {
    const ChannelDeviation deviation =
        ChannelDeviation(*noise.model, spec, c).divided_by(noise.applied_strength);
    const bool none = deviation.mean() == 0;
    stages.stabilize.push_back(none ? identity() : stabilizing_curve(deviation, spec.white()));
    stages.restore.push_back(none ? identity() : restoring_curve(deviation, spec.white()));
  }
  return stages;
}

Pipeline with_noise_stages(Pipeline pipeline, NoiseStages around, const PointwiseStages& make) {
  if (around.keep_grain >= 1) return {};
  const bool adds = !around.fill.empty() || !around.stabilize.empty() || around.keep_grain > 0;
  if (pipeline.stages.empty() || !adds) return pipeline;
  const int planes = pipeline.stages.back().planes;
  std::vector<Stage> stages;
  const auto last = [&] { return static_cast<int>(stages.size()); };
  if (!around.fill.empty()) {
    stages.push_back(fill_stage(std::move(around.fill), {pipeline.wraps, around.slice}, make));
  }
  if (!around.stabilize.empty()) {
    stages.push_back(curve_stage("stabilise noise", std::move(around.stabilize), last(), make));
  }
  const int before = last();
  for (Stage& stage : pipeline.stages) {
    for (int& result : stage.reads) result += before;
    stages.push_back(std::move(stage));
  }
  if (!around.restore.empty()) {
    stages.push_back(curve_stage("restore levels", std::move(around.restore), last(), make));
  }
  if (around.keep_grain > 0) stages.push_back(mix_stage(planes, last(), around.keep_grain, make));
  return {.stages = std::move(stages), .wraps = pipeline.wraps, .slow_border = pipeline.slow_border};
}

}  // namespace ungrain
