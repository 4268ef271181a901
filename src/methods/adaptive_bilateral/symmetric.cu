// The first pass over cuda/symmetric_window.cuh: sums of weights and of weighted squared differences, whose
// quotient is the variance around the pixel itself. Both are the same for the two pixels of a pair, so that
// a pair takes one exponential and, in gray, eight instructions where the one-sided kernel takes twelve.
#include "cuda/symmetric_window.cuh"
#include "cuda/window.cuh"
#include "methods/adaptive_bilateral/cuda.h"

namespace ungrain {
namespace {

template <int Channels>
struct OwnVariance {
  static constexpr int channels = Channels;
  static constexpr int kinds = 2;  // the weights, the weighted squared differences
  static constexpr bool bounded = true;

  AdaptiveStrength strength;

  __device__ static void begin(const float (&)[channels], float (&sums)[kinds]) {
    sums[0] = 1;
    sums[1] = 0;
  }

  template <bool Both>
  __device__ static void add_pair(const float (&own)[channels], const float (&other)[channels],
                                  float exponent, float (&own_sums)[kinds], float (&other_sums)[kinds]) {
    float square = 0;
#pragma unroll
    for (int c = 0; c < channels; ++c) {
      const float difference = other[c] - own[c];
      square = fmaf(difference, difference, square);
    }
    const float weight = cuda::exp2_fast(exponent - square);
    own_sums[0] += weight;
    own_sums[1] = fmaf(weight, square, own_sums[1]);
    if constexpr (Both) {
      other_sums[0] += weight;
      other_sums[1] = fmaf(weight, square, other_sums[1]);
    }
  }

  __device__ void store(float* to, std::ptrdiff_t, const float (&sums)[kinds]) const {
    *to = strength.difference_factor(__fdividef(sums[1], sums[0]));
  }
};

// As bilateral's, whose pairs take as many registers.
constexpr cuda::SymmetricShape shape_for(int channels, int radius) {
  if (channels == 3) return {.columns = 1, .rows = 2, .warps = 8, .resident = 2, .rounds = 3};
  if (radius > 8) return {.columns = 1, .rows = 3, .warps = 8, .resident = 3, .rounds = 2};
  return {.columns = 2, .rows = 2, .warps = 4, .resident = 4, .rounds = 2, .first_percent = 85};
}

template <int Channels, int Radius>
void launch_for(const cuda::SymmetricCall<OwnVariance<Channels>>& of_call, Stream stream) {
  cuda::launch_symmetric<OwnVariance<Channels>, Radius, shape_for(Channels, Radius)>(of_call, stream);
}

template <int Channels>
void launch_for(const cuda::WindowWeights& weights, const AdaptiveStrength& strength, Border border,
                int first_channel, const DeviceStageCall& call) {
  const auto of_call = cuda::symmetric_call(weights, {call.in[0], call.image, border}, call.out,
                                            first_channel, OwnVariance<Channels>{strength});
  switch (weights.reach_x) {
    case 4:
      return launch_for<Channels, 4>(of_call, call.stream);
    case 5:
      return launch_for<Channels, 5>(of_call, call.stream);
    case 6:
      return launch_for<Channels, 6>(of_call, call.stream);
    case 7:
      return launch_for<Channels, 7>(of_call, call.stream);
    case 8:
      return launch_for<Channels, 8>(of_call, call.stream);
    case 9:
      return launch_for<Channels, 9>(of_call, call.stream);
    default:
      return launch_for<Channels, 10>(of_call, call.stream);
  }
}

}  // namespace

void launch_symmetric_factors(const cuda::WindowWeights& weights, const AdaptiveStrength& strength,
                              Border border, int first_channel, int channels_per_weight,
                              const DeviceStageCall& call) {
  if (channels_per_weight == 1) {
    launch_for<1>(weights, strength, border, first_channel, call);
  } else {
    launch_for<3>(weights, strength, border, first_channel, call);
  }
}

}  // namespace ungrain
