#include <algorithm>

#include "core/choices.h"
#include "methods/adaptive_bilateral/adaptive_bilateral.h"

namespace ungrain {
namespace {

using P = AdaptiveBilateralParams;

// Fitted to pictures outside the test sets: the README has the figures.
std::optional<double> sigma_range(const P& p, const ImageSpec& spec) {
  const std::optional<double> noise = describe::noise_on_255(p, spec);
  if (!noise) return std::nullopt;
  const double bounded = std::min(*noise, 100.0);
  return describe::noise_times(
      describe::has_joint_weight(p, spec) ? 1 + 0.01 * bounded : 1.4 + 0.02 * bounded, p, spec);
}

std::optional<double> factor(const P& p, const ImageSpec& spec) {
  if (!p.sigma) return 0.5;  // the paper's
  return describe::has_joint_weight(p, spec) ? 1.4 : 2;
}

void check(const P& params, const ImageSpec& spec) {
  describe::check_colour_mode(params, spec);
  describe::check_squares(params, spec);
}

Descriptor epsilon() {
  Descriptor d = describe::derived(
      &P::epsilon, "epsilon", {.min = 0, .unit = Unit::intensity_squared}, "0.01 on the 0-255 scale, squared",
      +[](const P& p, const ImageSpec& spec) -> std::optional<double> {
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

Cost cost(const AdaptiveBilateralParams& p, const ImageSpec& spec) {
  const int taps = (2 * p.radius + 1) * (2 * p.radius + 1);
  const bool joint = p.colour != ColourMode::per_channel && spec.colour_channels() > 1;
  const double colours = joint ? 2 : spec.colour_channels();
  return {.cpu_ns = 0.29 * taps * colours, .gpu_ns = 0.04 + 0.0003 * taps * colours};
}

}  // namespace

const Method& adaptive_bilateral_method() {
  static const Method method = make_method<P>({
      .summary = "bilateral whose strength follows each pixel's own variance",
      .descriptors =
          {
              describe::window_radius(&P::radius),
              describe::sigma_space(&P::sigma_space),
              describe::noise_level(
                  &P::sigma, +[](const P& p) { return !p.sigma_range; },
                  "the noise's standard deviation, which sigma_range follows"),
              describe::following_noise(
                  &P::sigma_range, "sigma_range",
                  "sigma (1.4 + sigma / 50), for joint colour sigma (1 + sigma / 100)", sigma_range,
                  "how different in value a pixel may be and still count; 0 returns the input"),
              describe::derived(&P::factor, "factor", {.min = 0},
                                "2, for joint colour 1.4; 0.5 where sigma is not known", factor,
                                "a pixel's strength as a multiple of its deviation; 0 returns the input"),
              epsilon(),
              describe::choice(&P::centre, "centre",
                               {{"mean", VarianceCentre::mean}, {"pixel", VarianceCentre::pixel}},
                               "what the variance is taken around"),
              describe::window(&P::window),
              describe::colour_mode(&P::colour),
              describe::border(&P::border),
          },
      .check = check,
      .cost = cost,
      .reference = adaptive_bilateral_reference,
      .cpu = adaptive_bilateral_cpu,
      .cuda = UNGRAIN_CUDA_VERSION(adaptive_bilateral_cuda),
  });
  return method;
}

}  // namespace ungrain
