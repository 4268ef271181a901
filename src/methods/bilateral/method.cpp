#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/choices.h"
#include "core/window.h"
#include "methods/bilateral/bilateral.h"
#include "methods/bilateral/grid.h"

namespace ungrain {
namespace {

using P = BilateralParams;

// The factor by which noise makes the city-block distance of two pixels larger than the Euclidean one, in the
// root mean square over channels with independent noise: E|a||b| is 2/pi of E a².
double distance_growth(const P& p, int channels) {
  if (distance_among(p, channels) == ColourDistance::euclidean) return 1;
  const double squared = 1 + (channels - 1) * 2 / std::numbers::pi;
  return std::sqrt(squared * difference_divisor(p.colour, channels));
}

// Fitted to pictures outside the test sets: the README has the figures.
std::optional<double> sigma_range(const P& p, const ImageSpec& spec) {
  const std::optional<double> noise = describe::noise_on_255(p, spec);
  if (!noise) return std::nullopt;
  const double bounded = std::min(*noise, 100.0);
  const double growth = distance_growth(p, channels_per_weight(p.colour, spec.colour_channels()));
  if (p.colour == ColourMode::lab) return describe::noise_times(growth * (0.6 + 0.045 * bounded), p, spec);
  const bool joint = describe::has_joint_weight(p, spec);
  const double followed =
      *describe::noise_times(growth * (joint ? 1.4 + 0.014 * bounded : 2 + 0.04 * bounded), p, spec);
  // A picture without noise stays as it is; a grid for less would be too fine.
  const bool too_fine = p.quality == BilateralQuality::grid && followed > 0;
  return too_fine ? std::max(followed, smallest_grid_sigma * spec.white()) : followed;
}

void check(const P& params, const ImageSpec& spec) {
  describe::check_colour_mode(params, spec);
  describe::check_squares(params, spec);
  if (params.quality == BilateralQuality::exact) return;
  if (params.window == Window::disc) {
    throw Error(ErrorCode::invalid_argument, "bilateral: only quality exact takes a disc window");
  }
  if (params.radius_t > 0) {
    throw Error(ErrorCode::invalid_argument, "bilateral: only quality exact takes a radius_t");
  }
  if (params.quality == BilateralQuality::grid && params.colour != ColourMode::per_channel &&
      spec.colour_channels() > 1) {
    throw Error(ErrorCode::invalid_argument,
                "bilateral: quality grid filters colour per-channel only; exact and separable take any");
  }
}

Cost cost(const BilateralParams& p, const ImageSpec& spec) {
  const int side = 2 * p.radius + 1;
  const bool joint = p.colour != ColourMode::per_channel && spec.colour_channels() > 1;
  const double colours = joint ? 2 : spec.colour_channels();
  switch (p.quality) {
    case BilateralQuality::separable:
      return {.cpu_ns = 0.6 * side * colours, .gpu_ns = 0.002 * side * colours};
    case BilateralQuality::grid:
      return {.cpu_ns = 36 * colours, .gpu_ns = 0.2 * colours};
    default: {
      const double taps = static_cast<double>(side) * side * (2 * p.radius_t + 1);
      return {.cpu_ns = 0.13 * taps * colours, .gpu_ns = 0.02 + 0.00015 * taps * colours};
    }
  }
}

}  // namespace

const Method& bilateral_method() {
  static const Method method = make_method<P>({
      .summary = "mean weighted by distance and by difference in value; keeps edges",
      .descriptors =
          {
              describe::window_radius(&P::radius),
              describe::radius_t(&P::radius_t),
              describe::number(&P::step_t, "step_t", {.min = 0, .max = 100, .unit = Unit::pixels},
                               "distance of each image of a sequence to the next, in weights; 0: images "
                               "count alike"),
              describe::sigma_space(&P::sigma_space),
              describe::noise_level(
                  &P::sigma, +[](const P& p) { return !p.sigma_range; },
                  "the noise's standard deviation, which sigma_range follows"),
              describe::following_noise(
                  &P::sigma_range, "sigma_range",
                  "sigma (2 + sigma / 25), for joint colour sigma (1.4 + sigma / 71), 2.6 "
                  "times that where rgb is compared by city-block; grid: at least 2.55",
                  sigma_range, "how different in value a pixel may be and still count; 0 returns the input"),
              describe::choice(&P::quality, "quality",
                               {{"exact", BilateralQuality::exact},
                                {"separable", BilateralQuality::separable},
                                {"grid", BilateralQuality::grid}},
                               "the filter itself, or an approximation for large radii"),
              describe::window(&P::window),
              describe::colour_mode(&P::colour),
              describe::choice(
                  &P::colour_distance, "colour_distance",
                  {{"euclidean", ColourDistance::euclidean}, {"city-block", ColourDistance::city_block}},
                  "how colours are compared: root of the channels' mean squared difference, or sum of "
                  "their absolute differences, as OpenCV does"),
              describe::border(&P::border),
          },
      .check = check,
      .cost = cost,
      .depth = {{"radius_t", "radius"}, {"step_t", ""}},
      .reference = bilateral_reference,
      .cpu = bilateral_cpu,
      .cuda = UNGRAIN_CUDA_VERSION(bilateral_cuda),
  });
  return method;
}

}  // namespace ungrain
