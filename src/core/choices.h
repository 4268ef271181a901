// Descriptors of the choices that several methods share.
#pragma once

#include <optional>
#include <string>

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

template <class Params>
Descriptor colour_mode(ColourMode Params::*member) {
  return choice(
      member, "colour",
      {{"joint", ColourMode::joint}, {"per-channel", ColourMode::per_channel}, {"lab", ColourMode::lab}},
      "one weight for all channels, one for each, or jointly in CIE-Lab");
}

// sigma_range of the bilateral family: a strength in pixel units, or in delta E where the colour mode is lab.
template <class Params>
Descriptor sigma_range(std::optional<double> Params::*member) {
  Descriptor d = derived(
      member, "sigma_range", {.min = 0, .unit = Unit::intensity},
      "30 on the 0-255 scale, or 11.8 delta E for lab",
      +[](const Params& p, const ImageSpec& spec) {
        // [000]'s 30 of 255; Lab's lightness has a range of 100.
        return 30.0 / 255 * (p.colour == ColourMode::lab ? 100.0 : spec.white());
      },
      "how different in value a pixel may be and still count; 0 returns the input");
  d.unit = [](const void* params) {
    return static_cast<const Params*>(params)->colour == ColourMode::lab ? Unit::delta_e : Unit::intensity;
  };
  return d;
}

// Lab is made from red, green and blue.
template <class Params>
void check_colour_mode(const Params& params, const ImageSpec& spec) {
  if (params.colour == ColourMode::lab && spec.colour != Colour::rgb) {
    throw Error(ErrorCode::invalid_argument, std::string(Params::method) +
                                                 ": colour lab takes an rgb image, this one is " +
                                                 std::string(name(spec.colour)));
  }
}

}  // namespace ungrain::describe
