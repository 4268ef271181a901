#pragma once

#include <optional>
#include <string_view>

#include "ungrain/methods/common.h"

namespace ungrain {

// A Gaussian blur over a (2 radius + 1)² square; of a sequence, over (2 radius_z + 1) images.
struct GaussianParams {
  static constexpr std::string_view method = "gaussian";
  double sigma = 1;                  // pixels; 0 returns the input
  std::optional<int> radius = {};    // pixels; unset: ceil(3 sigma)
  double sigma_z = 0;                // images of a sequence: frames, slices; 0: each by itself
  std::optional<int> radius_z = {};  // images; unset: ceil(3 sigma_z)
  Border border = Border::symmetric;
};

}  // namespace ungrain
