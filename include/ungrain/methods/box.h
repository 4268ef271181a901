#pragma once

#include <string_view>

#include "ungrain/methods/common.h"

namespace ungrain {

// The mean of a (2 radius + 1)² square; of a sequence, over (2 radius_z + 1) images.
struct BoxParams {
  static constexpr std::string_view method = "box";
  int radius = 1;    // pixels
  int radius_z = 0;  // images of a sequence: frames, slices
  Border border = Border::symmetric;
};

}  // namespace ungrain
