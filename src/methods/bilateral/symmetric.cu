// Bilateral over cuda/symmetric_window.cuh: sums of weights and of weighted differences from the pixel, whose
// quotient is how far the mean is from it. The difference of a pair enters the sums of both its pixels, one
// after the other. The registers that both instructions read are then read once: joint RGB at radius 7 takes
// 1.61 ms instead of 1.67 with the values themselves (H200, 20 Mpixel).
#include "cuda/symmetric_window.cuh"

#include "methods/bilateral/symmetric.h"

namespace ungrain {
namespace {

using cuda::SymmetricShape;

template <int Channels>
struct WeightedMean {
  static constexpr int channels = Channels;
  static constexpr int kinds = 1 + Channels;  // the weights, then each channel's differences
  static constexpr bool bounded = false;

  float unscale;

  __device__ static void begin(const float (&)[channels], float (&sums)[kinds]) {
    sums[0] = 1;
#pragma unroll
    for (int c = 0; c < channels; ++c) sums[1 + c] = 0;
  }

  template <bool Both>
  __device__ static void add_pair(const float (&own)[channels], const float (&other)[channels],
                                  float exponent, float (&own_sums)[kinds], float (&other_sums)[kinds]) {
    float differences[channels];
#pragma unroll
    for (int c = 0; c < channels; ++c) {
      differences[c] = other[c] - own[c];
      exponent = fmaf(-differences[c], differences[c], exponent);
    }
    const float weight = cuda::exp2_fast(exponent);
    own_sums[0] += weight;
    if constexpr (Both) other_sums[0] += weight;
#pragma unroll
    for (int c = 0; c < channels; ++c) {
      own_sums[1 + c] = fmaf(weight, differences[c], own_sums[1 + c]);
      if constexpr (Both) other_sums[1 + c] = fmaf(-weight, differences[c], other_sums[1 + c]);
    }
  }

  __device__ void store(float* to, std::ptrdiff_t plane_stride, const float (&sums)[kinds],
                        const float (&pixel)[channels]) const {
    float inverse;  // the weights are 1 at least
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(sums[0]));
#pragma unroll
    for (int c = 0; c < channels; ++c) {
      to[c * plane_stride] = fmaf(sums[1 + c], inverse, pixel[c]) * unscale;
    }
  }
};

// Measured on an H200, 20 Mpixel; LOG.md has the others. Wide blocks lose fewer columns at their edges; two
// columns a thread need fewer loads, as long as their rows fit into 128 registers.
constexpr SymmetricShape shape_for(int channels, int radius) {
  if (channels == 1) {
    if (radius <= 8)
      return {.columns = 2, .rows = 2, .warps = 4, .resident = 4, .rounds = 2, .first_percent = 85};
    if (radius <= 10) return {.columns = 1, .rows = 3, .warps = 8, .resident = 3, .rounds = 2};
    return {.columns = 1, .rows = 3, .warps = 16, .resident = 1, .rounds = 1};
  }
  if (radius <= 8) return {.columns = 1, .rows = 2, .warps = 8, .resident = 2, .rounds = 3};
  if (radius <= 13) return {.columns = 1, .rows = 2, .warps = 12, .resident = 1, .rounds = 1};
  return {.columns = 1, .rows = 2, .warps = 8, .resident = 1, .rounds = 1};
}

template <int Channels, int Radius>
void launch_for(const cuda::SymmetricCall<WeightedMean<Channels>>& of_call, Stream stream) {
  cuda::launch_symmetric<WeightedMean<Channels>, Radius, shape_for(Channels, Radius)>(of_call, stream);
}

template <int Channels, int... More>
void launch_one_of(int radius, const cuda::SymmetricCall<WeightedMean<Channels>>& of_call, Stream stream,
                   std::integer_sequence<int, More...>) {
  ((radius == least_symmetric_radius + More
        ? launch_for<Channels, least_symmetric_radius + More>(of_call, stream)
        : void()),
   ...);
}

template <int Channels>
void launch_for(const cuda::WindowWeights& weights, Border border, int first_channel,
                const DeviceStageCall& call) {
  const auto of_call = cuda::symmetric_call(weights, {call.in[0], call.image, border}, call.out,
                                            first_channel, WeightedMean<Channels>{weights.unscale});
  constexpr int radii = most_symmetric_radius - least_symmetric_radius + 1;
  launch_one_of<Channels>(weights.reach_x, of_call, call.stream, std::make_integer_sequence<int, radii>());
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
