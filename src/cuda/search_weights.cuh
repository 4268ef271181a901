// What the searches for similar patches have in common: which weights they take, and the pixel's own.
#pragma once

namespace ungrain::cuda {

enum class SearchWeights {
  plain,      // of the patches alone, the pixel itself counts as 1
  general,    // with noise taken off, and either weight of the pixel itself
  bilateral,  // of the patches, the pixels' own difference and their distance
};

// The pixel itself, with the weight it has beside the others.
__device__ inline float self_weight(bool is_max, float largest) {
  return is_max && largest > 0 ? largest : 1.0F;
}

}  // namespace ungrain::cuda
