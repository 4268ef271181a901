// Adaptive bilateral on the CPU: both passes over one tile in a core's cache, in cpu_simd.cpp.
#include "cpu/exp.h"
#include "methods/adaptive_bilateral/adaptive_bilateral.h"
#include "methods/adaptive_bilateral/cpu_simd.h"

namespace ungrain {

Pipeline adaptive_bilateral_cpu(const AdaptiveBilateralParams& params, const ImageSpec& spec) {
  if (is_identity(params)) return {};
  const Reach reach{.x = params.radius, .y = params.radius};
  const WindowTile kernel(params, reach, spec);
  const double to_variance = 1.0 / kernel.divisor / kernel.scale / kernel.scale;
  const OwnStrength strength{
      .around_mean = params.centre == VarianceCentre::mean,
      .to_variance = static_cast<float>(to_variance),
      .epsilon = static_cast<float>(params.epsilon.value()),
      .factor_squared = static_cast<float>(params.factor.value() * params.factor.value()),
      .from_strength = static_cast<float>(to_variance * log2_e / 2)};
  Stage filter{.name = "adaptive-bilateral",
               .reach = reach,
               .planes = spec.colour_channels(),
               .scratch = kernel.scratch() + (strength.around_mean ? 3 : 2) * kernel.vector_for_each_tap(),
               .run = [kernel, strength](const StageCall& call) {
                 for_window_tiles(kernel, call, [&](const Rect& tile, int first, float* memory) {
                   adaptive_bilateral_tile(kernel, strength, call, tile, first, memory);
                 });
               }};
  return in_colour_mode(params.colour, {std::move(filter)}, adaptive_bilateral_reference(params, spec),
                        spec.white());
}

}  // namespace ungrain
