// Bilateral on the CPU: tiles gathered with their borders into a core's cache, then cpu_simd.cpp.
#include "methods/bilateral/cpu_simd.h"

#include <algorithm>

#include "cpu/exp.h"
#include "methods/bilateral/bilateral.h"
#include "methods/bilateral/rgb8.h"

namespace ungrain {
namespace {

void use_integers(const Rgb8Window& window, Pipeline& pipeline) {
  Stage& pass = pipeline.stages.front();
  pass.scratch = std::max(pass.scratch, window.scratch());
  pass.run_on_samples = [window](const StageCall& call) { window.run(call); };
  if (pipeline.wraps) return;
  pipeline.direct.scratch = window.scratch();
  pipeline.direct.run = [window](const DirectCall& call) { window.run_direct(call); };
  pipeline.direct.interleaved_only = true;
}

}  // namespace

Pipeline bilateral_cpu(const BilateralParams& params, const ImageSpec& spec) {
  if (is_identity(params)) return {};
  if (uses_grid(params)) return bilateral_grid_cpu(params, spec);
  const bool eight_bits = spec.type == PixelType::u8;
  const ColourDistance distance =
      distance_among(params, channels_per_weight(params.colour, spec.colour_channels()));
  std::vector<Stage> passes;
  for (const Reach& reach : bilateral_passes(params)) {
    const WindowTile kernel(params, reach, spec, distance);
    passes.push_back({.name = "bilateral",
                      .reach = reach,
                      .planes = spec.colour_channels(),
                      .scratch = kernel.scratch(),
                      .run = [kernel, eight_bits, params](const StageCall& call) {
                        const WindowTile window = kernel.over_images_of(call, [&](int offset) {
                          return -squared_distance_of_image(params, offset) / 2 * log2_e;
                        });
                        for_window_tiles(window, call, [&](const Rect& tile, int first, float* memory) {
                          bilateral_tile(window, eight_bits, call, tile, first, memory);
                        });
                      }});
  }
  Pipeline pipeline =
      in_colour_mode(params.colour, std::move(passes), bilateral_reference(params, spec), spec.white());
  if (const std::optional<Rgb8Window> window = Rgb8Window::of(params, spec)) use_integers(*window, pipeline);
  return pipeline;
}

}  // namespace ungrain
