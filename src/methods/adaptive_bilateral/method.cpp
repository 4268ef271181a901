#include "core/choices.h"
#include "methods/adaptive_bilateral/adaptive_bilateral.h"

namespace ungrain {
namespace {

Descriptor epsilon() {
  using P = AdaptiveBilateralParams;
  Descriptor d = describe::derived(
      &P::epsilon, "epsilon", {.min = 0, .unit = Unit::intensity_squared}, "0.01 on the 0-255 scale, squared",
      +[](const P& p, const ImageSpec& spec) {
        const double scale = (p.colour == ColourMode::lab ? 100.0 : spec.white()) / 255;
        return 0.01 * scale * scale;
      },
      "variance that a pixel has at least");
  d.unit = [](const void* params) {
    const bool lab = static_cast<const P*>(params)->colour == ColourMode::lab;
    return lab ? Unit::delta_e_squared : Unit::intensity_squared;
  };
  return d;
}

}  // namespace

const Method& adaptive_bilateral_method() {
  using P = AdaptiveBilateralParams;
  static const Method method = make_method<P>({
      .summary = "bilateral whose strength follows each pixel's own variance",
      .descriptors =
          {
              describe::number(&P::radius, "radius", {.min = 0, .max = 128, .unit = Unit::pixels},
                               "half-width of the window"),
              describe::number(&P::sigma_space, "sigma_space", {.min = 0, .unit = Unit::pixels},
                               "how far away a pixel may be and still count; 0 returns the input"),
              describe::sigma_range(&P::sigma_range),
              describe::number(&P::factor, "factor", {.min = 0},
                               "a pixel's strength as a multiple of its deviation; 0 returns the input"),
              epsilon(),
              describe::choice(&P::centre, "centre",
                               {{"mean", VarianceCentre::mean}, {"pixel", VarianceCentre::pixel}},
                               "what the variance is taken around"),
              describe::window(&P::window),
              describe::colour_mode(&P::colour),
              describe::border(&P::border),
          },
      .check = describe::check_colour_mode<P>,
      .reference = adaptive_bilateral_reference,
      .cpu = adaptive_bilateral_cpu,
  });
  return method;
}

}  // namespace ungrain
