#include <cmath>

#include "core/choices.h"
#include "core/patches.h"
#include "methods/nlm/nlm.h"

namespace ungrain {
namespace {

using P = NlmParams;

// Noise alone gives distances of 2 sigma², which are taken off, give or take a deviation that falls with the
// number of differences that are averaged: h² is in proportion to that.
std::optional<double> strength(const P& p, const ImageSpec& spec) {
  double squares = 0;  // of the patch's weights along one axis; 1 / patch where they are all the same
  for (const double weight :
       patch_weights(p.patch.value_or(describe::patch_of_unknown_noise), p.patch_sigma)) {
    squares += weight * weight;
  }
  const double averaged =
      1 / (squares * squares) * (describe::weighs_together(p, spec) ? spec.colour_channels() : 1);
  return describe::noise_times(1.4 / std::sqrt(std::sqrt(averaged)), p, spec);
}

// [003]'s experiment. Its program multiplies a patch by a Gaussian of maximum 1 and deviation 5/3, which so
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

}  // namespace

const Method& nlm_method() {
  static const Method method = make_method<P>({
      .summary = "non-local means: averages pixels whose surroundings look alike",
      .descriptors =
          {
              describe::search(&P::search),
              describe::patch(&P::patch),
              describe::number(&P::patch_sigma, "patch_sigma", {.min = 0, .unit = Unit::pixels},
                               "Gaussian weights within a patch; 0: all the same"),
              describe::noise_level(
                  &P::sigma, +[](const P& p) { return !p.h; },
                  "the noise's standard deviation, taken off the differences; 0, or h alone: not"),
              describe::following_noise(
                  &P::h, "h", "1.4 sigma / sqrt(patch), less for Gaussian patches and joint colour", strength,
                  "how different patches may be and still count; 0 returns the input"),
              describe::choice(&P::self, "self", {{"max", SelfWeight::max}, {"one", SelfWeight::one}},
                               "a pixel's weight for itself: the largest of the others', or 1"),
              describe::colour_mode(&P::colour),
              describe::border(&P::border),
          },
      .check = describe::check_colour_mode<P>,
      .presets = {{{"paper-003", "whole-image search of [003]'s experiment, for patches of any side"},
                   paper_003},
                  {{"paper-004", "the window and patch of [004]'s tables"}, paper_004}},
      .reference = nlm_reference,
      .cpu = nlm_cpu,
  });
  return method;
}

}  // namespace ungrain
