// Descriptors of the choices that several methods share.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "core/colour.h"
#include "core/descriptor.h"
#include "ungrain/error.h"
#include "ungrain/methods/common.h"

namespace ungrain::describe {

template <class Params>
Descriptor border(Border Params::*member) {
  return choice(member, "border",
                {{"symmetric", Border::symmetric},
                 {"mirror", Border::mirror},
                 {"clamp", Border::clamp},
                 {"constant", Border::constant},
                 {"wrap", Border::wrap},
                 {"shrink", Border::shrink}},
                "what stands beyond the image's edge");
}

template <class Params>
Descriptor window(Window Params::*member) {
  return choice(member, "window", {{"square", Window::square}, {"disc", Window::disc}},
                "shape of the window");
}

// Halves may be wrong by 2e-4 of the range, which is less than one step of 12 bits and 14 steps of 16.
template <class Params>
Descriptor precision(std::optional<Precision> Params::*member) {
  return derived_choice(
      member, "precision", {{"half", Precision::half}, {"float", Precision::single}},
      "float for integers of more than 12 bits, else half",
      +[](const Params&, const ImageSpec& spec) -> std::optional<Precision> {
        constexpr double most_of_12_bits = 4095;
        const bool fine_steps = spec.type == PixelType::u16 && spec.white() > most_of_12_bits;
        return fine_steps ? Precision::single : Precision::half;
      },
      "how patches are compared: over the whole image on a GPU, in 8-bit images on a CPU");
}

template <class Params>
Descriptor colour_mode(ColourMode Params::*member) {
  return choice(
      member, "colour",
      {{"joint", ColourMode::joint}, {"per-channel", ColourMode::per_channel}, {"lab", ColourMode::lab}},
      "one weight for all channels, one for each, or jointly in CIE-Lab");
}

// A strength that is compared with differences of pixels: in pixel units, or in delta E where the colour mode
// is lab.
template <class Params>
Descriptor compared_strength(Descriptor strength) {
  strength.unit = [](const void* params) {
    return static_cast<const Params*>(params)->colour == ColourMode::lab ? Unit::delta_e : Unit::intensity;
  };
  return strength;
}

// The same for a strength that follows the noise.
template <class Params>
Descriptor following_noise(std::optional<double> Params::*member, std::string name, std::string rule_text,
                           std::optional<double> (*rule)(const Params&, const ImageSpec&), std::string help) {
  return compared_strength<Params>(derived(member, std::move(name), {.min = 0, .unit = Unit::intensity},
                                           std::move(rule_text), rule, std::move(help)));
}

template <class Params>
Descriptor radius_t(int Params::*member) {
  return number(member, "radius_t", {.min = 0, .max = 16},
                "images before and after each that take part, in a sequence");
}

template <class Params>
Descriptor search(int Params::*member) {
  return named_value(number(member, "search", {.min = 1, .max = 255, .unit = Unit::pixels, .odd = true},
                            "side of the window that is searched"),
                     "whole-image", whole_image);
}

// Of volumes.
template <class Params>
Descriptor aspect(double Params::*member) {
  return number(member, "aspect", {.min = 0.01, .max = 100}, "a voxel's depth over its width");
}

// The odd number of slices that is as long as `side` voxels along x.
inline int odd_side_along_z(int side, double aspect, int most) {
  return std::clamp(2 * static_cast<int>(std::lround(side / 2 / aspect)) + 1, 1, most);
}

// For methods that square pixel values in float, unscaled.
template <class Params>
void check_squares(const Params& /*params*/, const ImageSpec& spec) {
  if (spec.white() < 1e-14 || spec.white() > 1e14) {
    throw Error(ErrorCode::invalid_argument,
                std::string(Params::method) +
                    ": the range must be a number from 1e-14 to 1e14; scale the image's values");
  }
}

// Lab needs red, green and blue.
template <class Params>
void check_colour_mode(const Params& params, const ImageSpec& spec) {
  if (params.colour == ColourMode::lab && spec.colour != Colour::rgb) {
    throw Error(ErrorCode::invalid_argument, std::string(Params::method) +
                                                 ": colour lab takes an rgb image, this one is " +
                                                 std::string(name(spec.colour)));
  }
}

// A search over the whole image stays within it.
template <class Params>
void check_search(const Params& params, const ImageSpec& spec) {
  check_colour_mode(params, spec);
  if (params.search == whole_image && params.radius_t > 0) {
    throw Error(ErrorCode::invalid_argument,
                std::string(Params::method) +
                    ": radius_t takes a search window; with a whole-image search it must be 0");
  }
}

// The noise in the colour mode's units of comparison; empty while its level is unknown.
template <class Params>
std::optional<double> noise_compared(const Params& params, const ImageSpec& spec) {
  if (!params.sigma) return std::nullopt;
  return params.colour == ColourMode::lab ? noise_in_lab(*params.sigma / spec.white()) : *params.sigma;
}

// The noise on the 0-255 scale, in any colour mode.
template <class Params>
std::optional<double> noise_on_255(const Params& params, const ImageSpec& spec) {
  return params.sigma ? std::optional(*params.sigma * 255 / spec.white()) : std::nullopt;
}

// Whether several channels share a weight: their differences average out, so that less strength suffices.
template <class Params>
bool has_joint_weight(const Params& params, const ImageSpec& spec) {
  return params.colour == ColourMode::joint && spec.colour_channels() > 1;
}

template <class Params>
Descriptor window_radius(int Params::*member) {
  return number(member, "radius", {.min = 0, .max = 128, .unit = Unit::pixels}, "half-width of the window");
}

// sigma_space of the bilateral family: stronger noise is averaged over more pixels. Fitted to pictures
// outside the test sets: bilateral's README has the figures.
template <class Params>
Descriptor sigma_space(std::optional<double> Params::*member) {
  return derived(
      member, "sigma_space", {.min = 0, .unit = Unit::pixels},
      "1.2 + sigma / 100, for joint colour 1.6 + sigma / 100; 3 where sigma is not known",
      +[](const Params& p, const ImageSpec& spec) -> std::optional<double> {
        const std::optional<double> noise = noise_on_255(p, spec);
        if (!noise) return 3;  // as in the papers
        return (has_joint_weight(p, spec) ? 1.6 : 1.2) + 0.01 * std::min(*noise, 100.0);
      },
      "how far away a pixel may be and still count; 0 returns the input");
}

inline constexpr int patch_of_unknown_noise = 7;  // as in the papers

inline constexpr NumberRange patch_sides{.min = 1, .max = 31, .unit = Unit::pixels, .odd = true};

// The noise on the 0-255 scale; of channels that share a weight, the noise of their mean.
template <class Params>
std::optional<double> noise_averaged_on_255(const Params& params, const ImageSpec& spec) {
  const std::optional<double> noise = noise_on_255(params, spec);
  if (!noise || !has_joint_weight(params, spec)) return noise;
  return *noise / std::sqrt(spec.colour_channels());
}

template <class Params>
std::optional<double> noise_times(double factor, const Params& params, const ImageSpec& spec) {
  const std::optional<double> noise = noise_compared(params, spec);
  return noise ? std::optional(factor * *noise) : std::nullopt;
}

}  // namespace ungrain::describe
