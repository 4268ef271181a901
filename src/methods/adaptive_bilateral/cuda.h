// What the kernels of adaptive-bilateral share on a GPU.
#pragma once

#include <cuda_runtime.h>

#include "cuda/window.h"
#include "ungrain/methods/common.h"

namespace ungrain {

// From a pixel's variance to its own strength.
struct AdaptiveStrength {
  float to_variance;  // from scaled squared differences to the variance
  float epsilon;
  float factor_squared;
  float from_deviation;  // divided by a strength: the factor on scaled differences

  // With it, the squares of scaled differences, summed, are negated exponents of 2.
  __device__ float difference_factor(float scaled_variance) const {
    constexpr float most = 1e18F;  // times scaled values it is finite
    const float variance = factor_squared * fmaxf(scaled_variance * to_variance + epsilon, epsilon);
    return fminf(from_deviation * rsqrtf(variance), most);
  }
};

// Writes each pixel's difference_factor() into the output's plane of the first channel. Around the pixel's
// own value; square windows of radius 4 to 10; one channel, or three that share a weight.
void launch_symmetric_factors(const cuda::WindowWeights& weights, const AdaptiveStrength& strength,
                              Border border, int first_channel, int channels_per_weight,
                              const DeviceStageCall& call);

}  // namespace ungrain
