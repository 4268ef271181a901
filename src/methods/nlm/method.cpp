#include "core/choices.h"
#include "methods/nlm/nlm.h"

namespace ungrain {
namespace {

using P = NlmParams;

Unit strength_unit(const void* params) {
  return static_cast<const P*>(params)->colour == ColourMode::lab ? Unit::delta_e : Unit::intensity;
}

Descriptor sigma() {
  Descriptor d = describe::number(&P::sigma, "sigma", {.min = 0, .unit = Unit::intensity},
                                  "the noise's standard deviation, taken off the differences; 0: not");
  d.unit = strength_unit;
  return d;
}

Descriptor h() {
  Descriptor d = describe::derived(
      &P::h, "h", {.min = 0, .unit = Unit::intensity}, "10 on the 0-255 scale, or 3.9 delta E for lab",
      +[](const P& p, const ImageSpec& spec) {
        return 10.0 / 255 * (p.colour == ColourMode::lab ? 100.0 : spec.white());
      },
      "how different patches may be and still count; 0 returns the input");
  d.unit = strength_unit;
  return d;
}

}  // namespace

const Method& nlm_method() {
  static const Method
      method =
          make_method<P>(
              {
                  .summary = "non-local means: averages pixels whose surroundings look alike",
                  .descriptors =
                      {
                          describe::named_value(
                              describe::number(&P::search, "search",
                                               {.min = 1, .max = 255, .unit = Unit::pixels, .odd = true},
                                               "side of the window that is searched"),
                              "whole-image", NlmParams::whole_image),
                          describe::number(&P::patch, "patch",
                                           {.min = 1, .max = 31, .unit = Unit::pixels, .odd = true},
                                           "side of the patches that are compared"),
                          describe::number(&P::patch_sigma, "patch_sigma", {.min = 0, .unit = Unit::pixels},
                                           "Gaussian weights within a patch; 0: all the same"),
                          sigma(),
                          h(),
                          describe::choice(&P::self,
                                           "self", {{"max", SelfWeight::max}, {"one", SelfWeight::one}},
                                           "a pixel's weight for itself: the largest of the others', or 1"),
                          describe::colour_mode(&P::colour),
                          describe::border(&P::border),
                      },
                  .check = describe::check_colour_mode<P>,
                  .reference = nlm_reference,
                  .cpu = nlm_cpu,
              });
  return method;
}

}  // namespace ungrain
