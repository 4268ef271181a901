#include <algorithm>

#include "core/choices.h"
#include "methods/nlm_bilateral/nlm_bilateral.h"

namespace ungrain {
namespace {

// Small patches find more matches, large ones tell matches better from noise.
std::optional<int> patch(const NlmBilateralParams& p, const ImageSpec& spec) {
  const std::optional<double> noise = describe::noise_averaged_on_255(p, spec);
  if (!noise) return describe::patch_of_unknown_noise;
  return *noise < 20 ? 3 : *noise < 35 ? 5 : 7;
}

Cost cost(const NlmBilateralParams& p, const ImageSpec& spec) {
  const bool joint = p.colour != ColourMode::per_channel && spec.colour_channels() > 1;
  const double colours = joint ? 2 : spec.colour_channels();
  if (p.search == whole_image) {
    const double pixels = static_cast<double>(spec.width) * spec.height;
    return {.cpu_ns = 0.3 * pixels * colours, .gpu_ns = 1e-4 * pixels * colours};
  }
  const double images = 2 * p.radius_t + 1;
  const double candidates = static_cast<double>(p.search) * p.search * images;
  return {.cpu_ns = 0.5 * candidates * colours, .gpu_ns = 0.0006 * candidates * colours};
}

}  // namespace

const Method& nlm_bilateral_method() {
  using P = NlmBilateralParams;
  static const Method method = make_method<P>({
      .summary = "non-local means weighted by distance and difference in value as well",
      .descriptors =
          {
              describe::search(&P::search),
              describe::radius_t(&P::radius_t),
              describe::derived(
                  &P::patch, "patch", describe::patch_sides,
                  "3, 5 from a sigma of 20 on, 7 from 35 on or where sigma is not known; for joint "
                  "colour from 35 and 61 on",
                  patch, "side of the patches that are compared"),
              describe::noise_level(
                  &P::sigma, +[](const P& p) { return !p.sigma_h || !p.sigma_range; },
                  "the noise's standard deviation, which the strengths follow"),
              describe::following_noise(
                  &P::sigma_h, "sigma_h", "sigma (1.05 - sigma / 250), but at least 0.7 sigma",
                  +[](const P& p, const ImageSpec& spec) {
                    const double noise = describe::noise_on_255(p, spec).value_or(0);
                    return describe::noise_times(std::max(0.7, 1.05 - noise / 250), p, spec);
                  },
                  "how different patches may be and still count; 0 returns the input"),
              describe::following_noise(
                  &P::sigma_range, "sigma_range", "5 sigma",
                  +[](const P& p, const ImageSpec& spec) { return describe::noise_times(5, p, spec); },
                  "how different in value a pixel may be and still count; 0 returns the input"),
              describe::number(&P::sigma_space, "sigma_space", {.min = 0, .unit = Unit::pixels},
                               "how far away a pixel may be and still count; inf: anywhere in the search"),
              describe::colour_mode(&P::colour),
              describe::border(&P::border),
              describe::precision(&P::precision),
          },
      .check = describe::check_search<P>,
      .cost = cost,
      .reference = nlm_bilateral_reference,
      .cpu = nlm_bilateral_cpu,
      .cuda = UNGRAIN_CUDA_VERSION(nlm_bilateral_cuda),
  });
  return method;
}

}  // namespace ungrain
