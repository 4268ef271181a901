// A variant of a method on a device, with a border: what the tests over all methods are run on.
#pragma once

#include <cctype>
#include <string>

#include "all_cases.h"
#include "ungrain/denoiser.h"

namespace ungrain::testing {

struct MethodSubject {
  Variant variant;
  Device device;
  std::string border;  // empty: the method has none, or its default

  // For GoogleTest, which takes letters, digits and underscores.
  std::string name() const {
    std::string text = std::string(variant.params.method()) + "_" + ungrain::name(device) + "_" +
                       variant.name + "_" + border;
    for (char& c : text) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
    return text;
  }
  MethodParams params(const ImageSpec& spec) const {
    MethodParams p = variant.params;
    if (!border.empty()) p.set_text("border", border);
    p.scale_strengths(spec.white());
    return p;
  }
  Colour colour() const { return variant.only.value_or(Colour::gray); }
};

}  // namespace ungrain::testing
