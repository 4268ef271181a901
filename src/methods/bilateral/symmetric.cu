// Bilateral over cuda/symmetric_window.cuh: sums of weights and of weighted values, whose quotient is the
// mean.
#include "methods/bilateral/symmetric.h"

#include "cuda/symmetric_window.cuh"
#include "cuda/window.cuh"

namespace ungrain {
namespace {

template <int Channels>
struct WeightedMean {
  static constexpr int channels = Channels;
  static constexpr int kinds = 1 + Channels;  // the weights, then each channel's values
  static constexpr bool bounded = false;

  float unscale;

  __device__ static void begin(const float (&pixel)[channels], float (&sums)[kinds]) {
    sums[0] = 1;
#pragma unroll
    for (int c = 0; c < channels; ++c) sums[1 + c] = pixel[c];
  }

  template <bool Both>
  __device__ static void add_pair(const float (&own)[channels], const float (&other)[channels],
                                  float exponent, float (&own_sums)[kinds], float (&other_sums)[kinds]) {
#pragma unroll
    for (int c = 0; c < channels; ++c) {
      const float difference = other[c] - own[c];
      exponent = fmaf(-difference, difference, exponent);
    }
    const float weight = cuda::exp2_fast(exponent);
    own_sums[0] += weight;
    if constexpr (Both) other_sums[0] += weight;
#pragma unroll
    for (int c = 0; c < channels; ++c) {
      own_sums[1 + c] = fmaf(weight, other[c], own_sums[1 + c]);
      if constexpr (Both) other_sums[1 + c] = fmaf(weight, own[c], other_sums[1 + c]);
    }
  }

  __device__ void store(float* to, std::ptrdiff_t plane_stride, const float (&sums)[kinds]) const {
    // The weights are 1 at least.
    float inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(sums[0]));
#pragma unroll
    for (int c = 0; c < channels; ++c) to[c * plane_stride] = sums[1 + c] * inverse * unscale;
  }
};

template <int Channels, int Radius>
void launch_for(const cuda::SymmetricCall<WeightedMean<Channels>>& of_call, Stream stream) {
  constexpr cuda::SymmetricShape shape =
      Channels == 1 ? cuda::SymmetricShape{2, 1, 4, 4, 3} : cuda::SymmetricShape{1, 2, 8, 2, 3};
  cuda::launch_symmetric<WeightedMean<Channels>, Radius, shape>(of_call, stream);
}

template <int Channels>
void launch_for(const cuda::WindowWeights& weights, Border border, int first_channel,
                const DeviceStageCall& call) {
  const auto of_call = cuda::symmetric_call(weights, {call.in[0], call.image, border}, call.out,
                                            first_channel, WeightedMean<Channels>{weights.unscale});
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

void launch_symmetric_bilateral(const cuda::WindowWeights& weights, Border border, int first_channel,
                                int channels_per_weight, const DeviceStageCall& call) {
  if (channels_per_weight == 1) {
    launch_for<1>(weights, border, first_channel, call);
  } else {
    launch_for<3>(weights, border, first_channel, call);
  }
}

}  // namespace ungrain
