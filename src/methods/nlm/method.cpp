#include <algorithm>
#include <cmath>

#include "core/choices.h"
#include "core/patches.h"
#include "methods/nlm/nlm.h"

namespace ungrain {
namespace {

using P = NlmParams;

// The rules below were fitted to pictures outside the test sets: LOG.md has the figures.

// Small patches find more matches, large ones tell matches better from noise; weights that fall off within a
// patch do both. A patch of given side is flat, as in the papers.
std::optional<double> patch_sigma(const P& p, const ImageSpec& spec) {
  const std::optional<double> noise = describe::noise_averaged_on_255(p, spec);
  if (p.patch || !noise) return 0;
  // A search over the whole image needs larger patches to tell matches from chance.
  if (p.search == whole_image) return std::clamp(0.3 + 0.104 * *noise, 1.0, 4.0);
  return std::clamp(0.5 + 0.065 * *noise, 1.0, 2.8);
}

// The side that the weights need.
std::optional<int> patch(const P& p, const ImageSpec&) {
  if (p.patch_sigma.value() == 0) return describe::patch_of_unknown_noise;
  const int most = p.search == whole_image ? 9 : 31;  // 9: the largest that the GPU's kernels support
  return std::clamp(2 * static_cast<int>(std::lround(1.8 * *p.patch_sigma)) + 1, 3, most);
}

// h over the deviation of a distance's noise.
double strength_of_noise(const P& p, const ImageSpec& spec, double noise) {
  const bool flat = p.patch_sigma.value() == 0;
  if (p.search != whole_image) return flat ? 1.4 : std::clamp(2 - 0.016 * noise, 1.6, 1.9);
  // The more pixels are searched, the more of them look similar by chance.
  const double pixels = static_cast<double>(spec.width) * spec.height;
  return (flat ? 0.87 : 1) * std::max(1.6 - 0.013 * noise, 0.8) * std::pow(pixels / (160 * 160), -0.075);
}

// Noise alone gives distances of 2 sigma², which are subtracted. The rest has a deviation that falls with the
// number of averaged differences; h² is proportional to it.
std::optional<double> strength(const P& p, const ImageSpec& spec) {
  const std::optional<double> noise = describe::noise_averaged_on_255(p, spec);
  if (!noise) return std::nullopt;
  double squares = 0;  // of the patch's weights along one axis; 1 / patch where they are all the same
  for (const double weight : patch_weights(p.patch.value(), p.patch_sigma.value()))
    squares += weight * weight;
  const int channels_per_weight = describe::has_joint_weight(p, spec) ? spec.colour_channels() : 1;
  const double factor = strength_of_noise(p, spec, *noise);
  return describe::noise_times(factor * std::sqrt(squares) / std::sqrt(std::sqrt(channels_per_weight)), p,
                               spec);
}

// [003]'s experiment. Its program multiplies a patch by a Gaussian of maximum 1 and deviation 5/3, which
// enters the distance squared, and divides the distance by a filtSigma of 0.02 for an image from 0 to 1.
void paper_003(P& p, double white) {
  constexpr double patch_deviation = 5.0 / 3;
  constexpr double filter_strength = 0.02;
  const int patch = p.patch.value_or(describe::patch_of_unknown_noise);
  double line = 0;  // the squared Gaussian's sum along one axis
  for (int k = -(patch / 2); k <= patch / 2; ++k) line += std::exp(-std::pow(k / patch_deviation, 2));
  p.search = whole_image;
  p.patch = patch;
  p.patch_sigma = patch_deviation / std::sqrt(2.0);
  p.sigma = 0;
  p.h = std::sqrt(filter_strength) / line * white;
  p.self = SelfWeight::max;
  p.colour = ColourMode::joint;
  p.border = Border::symmetric;
}

// [004]'s tables: windowed, flat patches, the strength in proportion to the noise.
void paper_004(P& p, double) {
  p.search = 21;
  p.patch = 7;
  p.patch_sigma = 0;
  p.self = SelfWeight::max;
  p.border = Border::symmetric;
}

Cost cost(const NlmParams& p, const ImageSpec& spec) {
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

const Method& nlm_method() {
  static const Method method = make_method<P>({
      .summary = "non-local means: averages pixels whose surroundings look alike",
      .descriptors =
          {
              describe::search(&P::search),
              describe::radius_t(&P::radius_t),
              describe::derived(
                  &P::patch_sigma, "patch_sigma", {.min = 0, .unit = Unit::pixels},
                  "0.5 + sigma / 15.4, from 1 to 2.8; whole-image: 0.3 + sigma / 9.6, from 1 to 4; 0 where "
                  "patch is given or sigma is not known",
                  patch_sigma, "Gaussian weights within a patch; 0: all the same"),
              describe::derived(&P::patch, "patch", describe::patch_sides,
                                "2 round(1.8 patch_sigma) + 1, whole-image: 9 at most; 7 where that is 0",
                                patch, "side of the patches that are compared"),
              describe::noise_level(
                  &P::sigma, +[](const P& p) { return !p.h; },
                  "the noise's standard deviation, taken off the differences; 0, or h alone: not"),
              describe::following_noise(
                  &P::h, "h",
                  "1.4 sigma / sqrt(patch); Gaussian patches, joint colour and whole-image: see its README",
                  strength, "how different patches may be and still count; 0 returns the input"),
              describe::choice(&P::self, "self", {{"max", SelfWeight::max}, {"one", SelfWeight::one}},
                               "a pixel's weight for itself: the largest of the others', or 1"),
              describe::colour_mode(&P::colour),
              describe::border(&P::border),
              describe::precision(&P::precision),
          },
      .check = describe::check_search<P>,
      .presets = {{{"paper-003", "whole-image search of [003]'s experiment, for patches of any side"},
                   paper_003},
                  {{"paper-004", "the window and patch of [004]'s tables"}, paper_004}},
      .cost = cost,
      .reference = nlm_reference,
      .cpu = nlm_cpu,
      .cuda = UNGRAIN_CUDA_VERSION(nlm_cuda),
  });
  return method;
}

}  // namespace ungrain
