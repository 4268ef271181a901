#include <fmt/format.h>

#include "core/choices.h"
#include "methods/bilateral/bilateral.h"
#include "ungrain/error.h"

namespace ungrain {
namespace {

Descriptor sigma_range() {
  using P = BilateralParams;
  Descriptor d = describe::derived(
      &P::sigma_range, "sigma_range", {.min = 0, .unit = Unit::intensity},
      "30 on the 0-255 scale, or 11.8 delta E for lab",
      +[](const P& p, const ImageSpec& spec) {
        // [000]'s 30 of 255; Lab's lightness has a range of 100.
        return 30.0 / 255 * (p.colour == ColourMode::lab ? 100.0 : spec.white());
      },
      "how different in value a pixel may be and still count; 0 returns the input");
  d.unit = [](const void* params) {
    return static_cast<const P*>(params)->colour == ColourMode::lab ? Unit::delta_e : Unit::intensity;
  };
  return d;
}

void check(const BilateralParams& params, const ImageSpec& spec) {
  if (params.colour == ColourMode::lab && spec.colour != Colour::rgb) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("bilateral: colour lab takes an rgb image, this one is {}", name(spec.colour)));
  }
}

}  // namespace

const Method& bilateral_method() {
  using P = BilateralParams;
  static const Method method = make_method<P>({
      .summary = "mean weighted by distance and by difference in value; keeps edges",
      .descriptors =
          {
              describe::number(&P::radius, "radius", {.min = 0, .max = 128, .unit = Unit::pixels},
                               "half-width of the window"),
              describe::number(&P::sigma_space, "sigma_space", {.min = 0, .unit = Unit::pixels},
                               "how far away a pixel may be and still count; 0 returns the input"),
              sigma_range(),
              describe::choice(&P::window, "window", {{"square", Window::square}, {"disc", Window::disc}},
                               "shape of the window"),
              describe::colour_mode(&P::colour),
              describe::border(&P::border),
          },
      .check = check,
      .reference = bilateral_reference,
      .cpu = bilateral_cpu,
  });
  return method;
}

}  // namespace ungrain
