// What the searches for similar patches share: the kinds of weights, and the weight of the pixel itself.
#pragma once

#include "core/patches.h"

namespace ungrain::cuda {

enum class SearchWeights {
  plain,      // from the patches alone; the pixel itself has weight 1
  general,    // with noise subtracted, and either weight of the pixel itself
  bilateral,  // from the patches, the pixels' own difference and their distance
  spatial,    // from the patches and the pixels' distance
};

// The weight of the pixel itself among the others.
__device__ inline float self_weight(bool is_max, float largest) {
  return is_max ? fmaxf(largest, static_cast<float>(least_self_weight)) : 1.0F;
}

}  // namespace ungrain::cuda
