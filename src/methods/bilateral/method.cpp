#include "core/choices.h"
#include "methods/bilateral/bilateral.h"

namespace ungrain {

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
              describe::sigma_range(&P::sigma_range),
              describe::window(&P::window),
              describe::colour_mode(&P::colour),
              describe::border(&P::border),
          },
      .check = describe::check_colour_mode<P>,
      .reference = bilateral_reference,
      .cpu = bilateral_cpu,
  });
  return method;
}

}  // namespace ungrain
