#pragma once

#include <string_view>

#include "ungrain/methods/common.h"

namespace ungrain {

// The mean of a (2 radius + 1)² square.
struct BoxParams {
  static constexpr std::string_view method = "box";
  int radius = 1;  // pixels
  Border border = Border::symmetric;
};

}  // namespace ungrain
