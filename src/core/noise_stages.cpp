#include "core/noise_stages.h"

#include <algorithm>
#include <memory>

#include "core/noise_handling.h"
#include "core/point_curve.h"
#include "cuda/pointwise.h"
#include "noise/cut_noise.h"
#include "noise/stabilize.h"
#include "ungrain/noise_model.h"

namespace ungrain {
namespace {

// Calls body(plane, x0, x1, y) for every row of every plane.
template <class Body>
void for_plane_rows(const StageCall& call, Body body) {
  const Rect& area = call.out.rect;
  constexpr int pixels = 1 << 14;
  const int at_once = std::max(1, pixels / std::max(1, area.width()));
  call.workers.for_each((area.height() + at_once - 1) / at_once, [&](std::int64_t item, int) {
    const int begin = area.y0 + static_cast<int>(item) * at_once;
    for (int y = begin; y < std::min(area.y1, begin + at_once); ++y) {
      for (int plane = 0; plane < call.out.count; ++plane) body(plane, y);
    }
  });
}

const float* row_of(const ConstPlanes& planes, int plane, int y, int x) {
  return planes.row(plane, y) + (x - planes.rect.x0);
}

void run_curves(const StageCall& call, const std::vector<PointCurve>& curves) {
  for_plane_rows(call, [&](int plane, int y) {
    const PointCurve& curve = curves[static_cast<std::size_t>(plane)];
    const float* from = row_of(call.in[0], plane, y, call.out.rect.x0);
    float* to = call.out.row(plane, y);
    for (int x = 0; x < call.out.rect.width(); ++x)
      to[x] = curve_at(curve.shape, curve.table.data(), from[x]);
  });
}

void run_fill(const StageCall& call, const std::vector<ChannelFill>& fills, bool wraps) {
  for_plane_rows(call, [&](int plane, int y) {
    const ChannelFill& fill = fills[static_cast<std::size_t>(plane)];
    const FillTables black{fill.black.shape, fill.black.draws.data()};
    const FillTables white{fill.white.shape, fill.white.draws.data()};
    float* to = call.out.row(plane, y);
    for (int x = call.out.rect.x0; x < call.out.rect.x1; ++x) {
      to[x - call.out.rect.x0] = filled_sample(black, white, call.in[0], call.image, wraps, plane, x, y);
    }
  });
}

void run_mix(const StageCall& call, float share) {
  for_plane_rows(call, [&](int plane, int y) {
    const float* source = row_of(call.in[0], plane, y, call.out.rect.x0);
    const float* result = row_of(call.in[1], plane, y, call.out.rect.x0);
    float* to = call.out.row(plane, y);
    for (int x = 0; x < call.out.rect.width(); ++x) to[x] = result[x] + share * (source[x] - result[x]);
  });
}

Stage curve_stage(const char* name, std::vector<PointCurve> curves, int reads, Device::Kind device) {
  Stage stage{.name = name, .planes = static_cast<int>(curves.size()), .reads = {reads}};
  if (device == Device::Kind::cuda) {
    cuda::launch_curves(stage, std::move(curves));
  } else {
    stage.run = [shared = std::make_shared<const std::vector<PointCurve>>(std::move(curves))](
                    const StageCall& call) { run_curves(call, *shared); };
  }
  return stage;
}

Stage fill_stage(std::vector<ChannelFill> fill, bool wraps, Device::Kind device) {
  Stage stage{.name = "fill in what was cut",
              .reach = {.x = fill_window, .y = fill_window},
              .planes = static_cast<int>(fill.size()),
              .reads = {0}};
  if (device == Device::Kind::cuda) {
    cuda::launch_fill(stage, std::move(fill), wraps);
  } else {
    stage.run = [wraps, shared = std::make_shared<const std::vector<ChannelFill>>(std::move(fill))](
                    const StageCall& call) { run_fill(call, *shared, wraps); };
  }
  return stage;
}

Stage mix_stage(int planes, int result, double share, Device::Kind device) {
  Stage stage{.name = "keep grain", .planes = planes, .reads = {0, result}};
  const auto part = static_cast<float>(share);
  if (device == Device::Kind::cuda) {
    cuda::launch_mix(stage, part);
  } else {
    stage.run = [part](const StageCall& call) { run_mix(call, part); };
  }
  return stage;
}

PointCurve identity() { return {{}, {0, 1}}; }

}  // namespace

NoiseStages noise_stages(const Method& method, void* values, const NoiseHandling& noise,
                         const ImageSpec& spec) {
  NoiseStages stages;
  stages.keep_grain = noise.keep_grain;
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

Pipeline with_noise_stages(Pipeline pipeline, NoiseStages around, Device::Kind device) {
  if (around.keep_grain >= 1) return {};
  const bool adds = !around.fill.empty() || !around.stabilize.empty() || around.keep_grain > 0;
  if (pipeline.stages.empty() || !adds) return pipeline;
  const int planes = pipeline.stages.back().planes;
  std::vector<Stage> stages;
  const auto last = [&] { return static_cast<int>(stages.size()); };
  if (!around.fill.empty()) {
    stages.push_back(fill_stage(std::move(around.fill), pipeline.wraps, device));
  }
  if (!around.stabilize.empty()) {
    stages.push_back(curve_stage("stabilise noise", std::move(around.stabilize), last(), device));
  }
  const int before = last();
  for (Stage& stage : pipeline.stages) {
    for (int& result : stage.reads) result += before;
    stages.push_back(std::move(stage));
  }
  if (!around.restore.empty()) {
    stages.push_back(curve_stage("restore levels", std::move(around.restore), last(), device));
  }
  if (around.keep_grain > 0) stages.push_back(mix_stage(planes, last(), around.keep_grain, device));
  return {.stages = std::move(stages), .wraps = pipeline.wraps};
}

}  // namespace ungrain
