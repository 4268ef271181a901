// Descriptors of the choices that several methods share.
#pragma once

#include "core/descriptor.h"
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
Descriptor colour_mode(ColourMode Params::*member) {
  return choice(
      member, "colour",
      {{"joint", ColourMode::joint}, {"per-channel", ColourMode::per_channel}, {"lab", ColourMode::lab}},
      "one weight for all channels, one for each, or jointly in CIE-Lab");
}

}  // namespace ungrain::describe
