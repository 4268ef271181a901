// The stages of ridge behind those of bm3d, whose result is the pilot.
#include <utility>

#include <fmt/format.h>

#include "core/device.h"
#include "core/registry.h"
#include "methods/ridge/settings.h"
#include "ungrain/denoiser.h"
#include "ungrain/methods/bm3d.h"

namespace ungrain {

Pipeline ridge_pilot(const RidgeParams& params, const ImageSpec& spec, Device::Kind device) {
  Bm3dParams pilot;
  if (params.profile == RidgeProfile::fast) pilot.profile = Bm3dProfile::fast;
  pilot.sigma = params.sigma;
  pilot.correlation = params.correlation;
  pilot.sigma_map = params.sigma_map;
  pilot.noise_model = params.noise_model;
  const MethodParams resolved = resolve_derived(pilot, spec);
  return build_for(find_method(Bm3dParams::method), {device})(&resolved.as<Bm3dParams>(), spec);
}

Pipeline ridge_pipeline(Pipeline pilot, const RidgeSettings& settings, const RidgePasses& passes) {
  Pipeline pipeline = std::move(pilot);
  pipeline.direct = {};
  const auto add = [&](Stage stage, int planes, std::vector<int> reads) {
    stage.planes = planes;
    stage.reads = std::move(reads);
    pipeline.stages.push_back(std::move(stage));
    return static_cast<int>(pipeline.stages.size());
  };
  for (int stage = 0; stage < static_cast<int>(pipeline.stages.size()); ++stage) {
    if (pipeline.stages[stage].reads.empty()) pipeline.stages[stage].reads = {stage};
  }
  const int made = static_cast<int>(pipeline.stages.size());
  const int start = add(passes.start, 2 * settings.planes(), {0, made});
  int before = start;
  for (int index = 0; index < settings.passes; ++index) {
    Stage pass = passes.pass(index);
    const int reach = ridge_reach(settings);
    pass.reach = {.x = reach, .y = reach};
    pass.name += fmt::format(" {}", index + 1);
    const bool last = index + 1 == settings.passes;
    before = add(std::move(pass), (last ? 1 : 2) * settings.planes(), {start, before});
  }
  return pipeline;
}

}  // namespace ungrain
