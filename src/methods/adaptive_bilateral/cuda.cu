// Adaptive bilateral on a GPU: both passes over cuda/window.cuh's tile in one kernel, which loads the tile
// once if it was compiled for the window's height; or the second pass only, after symmetric.cu's first.
#include <cmath>
#include <type_traits>
#include <utility>

#include "core/sample_types.h"
#include "core/window.h"
#include "cpu/exp.h"
#include "cuda/window.cuh"
#include "methods/adaptive_bilateral/adaptive_bilateral.h"
#include "methods/adaptive_bilateral/cuda.h"
#include "methods/adaptive_bilateral/tuning.h"

namespace ungrain {
namespace {

using cuda::DirectWindowCall;
using cuda::rows_each;
using cuda::WindowBlock;
using cuda::WindowCall;

template <class Window>
struct AdaptiveCall {
  Window window;
  AdaptiveStrength strength;
};

// A centre times its factor can be taken off a value times that factor: bounds the factors, and returns the
// centres times the factors, negated. The product is rounded, which is as if the centre itself were; where
// the factor is so large that this decides weights, floats next to each other differ by weights of 0 already.
template <int Channels>
__device__ void shift_by_centres(const float (&centre)[Channels][rows_each], float (&factors)[rows_each],
                                 float (&shifts)[Channels][rows_each]) {
  constexpr float most = 0x1p26F;
#pragma unroll
  for (int k = 0; k < rows_each; ++k) {
    float largest = 1e-30F;
#pragma unroll
    for (int c = 0; c < Channels; ++c) largest = fmaxf(largest, fabsf(centre[c][k]));
    factors[k] = fminf(factors[k], __fdividef(most, largest));
#pragma unroll
    for (int c = 0; c < Channels; ++c) shifts[c][k] = -centre[c][k] * factors[k];
  }
}

// The bilateral pass with the pixels' own factors on differences.
template <int Channels, int Rows, class Window>
__device__ void second_pass(WindowBlock<Channels, Rows, true, Window>& block,
                            const float (&centre)[Channels][rows_each], float (&factors)[rows_each]) {
  // Shifting takes an instruction less, and more registers. In small windows of colours, where loading the
  // tile counts, it takes 2 to 4 % longer.
  constexpr bool shifted = Channels == 1 || Rows > 7;
  float shifts[Channels][rows_each];
  if constexpr (shifted) {
    shift_by_centres(centre, factors, shifts);
  } else {
#pragma unroll
    for (float& factor : factors) factor *= factor;
  }
  float weights[rows_each] = {};
  float sums[Channels][rows_each] = {};
  block.for_window([&](int k, const float(&values)[Channels], float exponent) {
    if constexpr (shifted) {
#pragma unroll
      for (int c = 0; c < Channels; ++c) {
        const float difference = fmaf(values[c], factors[k], shifts[c][k]);
        exponent = fmaf(-difference, difference, exponent);
      }
    } else {
      float square = 0;
#pragma unroll
      for (int c = 0; c < Channels; ++c) {
        const float difference = values[c] - centre[c][k];
        square = fmaf(difference, difference, square);
      }
      exponent = fmaf(-square, factors[k], exponent);
    }
    const float weight = cuda::exp2_fast(exponent);
    weights[k] += weight;
#pragma unroll
    for (int c = 0; c < Channels; ++c) sums[c][k] = fmaf(weight, values[c], sums[c][k]);
  });
  block.store(centre, sums, weights);
}

// Begins a sum or adds to it.
__device__ void add(bool begins, float value, float& sum) { sum = begins ? value : sum + value; }
__device__ void add_product(bool begins, float weight, float value, float& sum) {
  sum = begins ? weight * value : fmaf(weight, value, sum);
}

// The same for one channel and a square window for whose height the kernel was compiled. The special-function
// unit and instruction issue bound it about equally, so the exponentials of one row of the window are
// polynomials. The weight of a distance along rows multiplies the sums of a column of the window: exponents
// are then constants, which take no registers.
template <int Rows>
__device__ void second_pass_by_columns(WindowBlock<1, Rows, true>& block, const float (&centre)[1][rows_each],
                                       float (&factors)[rows_each]) {
  float shifts[1][rows_each];
  shift_by_centres(centre, factors, shifts);
  float weights[rows_each] = {};
  float sums[1][rows_each] = {};
  float column_weights[rows_each];
  float column_sums[rows_each];
  block.for_square_window(
      [&](int k, int row, const float(&values)[1], float exponent) {
        const float difference = fmaf(values[0], factors[k], shifts[0][k]);
        exponent = fmaf(-difference, difference, exponent);
        constexpr int row_of_polynomials = Rows / 5;
        const float weight =
            row == row_of_polynomials ? cuda::exp2_by_polynomial<3>(exponent) : cuda::exp2_fast(exponent);
        add(row == 0, weight, column_weights[k]);
        add_product(row == 0, weight, values[0], column_sums[k]);
      },
      [&](float weight) {
#pragma unroll
        for (int k = 0; k < rows_each; ++k) {
          weights[k] = fmaf(weight, column_weights[k], weights[k]);
          sums[0][k] = fmaf(weight, column_sums[k], sums[0][k]);
        }
      });
  block.store(centre, sums, weights);
}

template <int Channels, int Rows, bool AroundMean, class Window>
__device__ void filter_block(const AdaptiveCall<Window>& call, float* shared) {
  WindowBlock<Channels, Rows, true, Window> block(call.window, shared);
  float centre[Channels][rows_each];
  float factors[rows_each];
  block.load_centres(centre);
  {
    float weights[rows_each] = {};
    float squares[rows_each] = {};
    float differences[Channels][rows_each] = {};
    block.for_window([&](int k, const float(&values)[Channels], float exponent) {
      float square = 0;
      float difference[Channels];
#pragma unroll
      for (int c = 0; c < Channels; ++c) {
        difference[c] = values[c] - centre[c][k];
        square = fmaf(difference[c], difference[c], square);
      }
      const float weight = cuda::exp2_fast(exponent - square);
      weights[k] += weight;
      squares[k] = fmaf(weight, square, squares[k]);
      if constexpr (AroundMean) {
#pragma unroll
        for (int c = 0; c < Channels; ++c) differences[c][k] = fmaf(weight, difference[c], differences[c][k]);
      }
    });
#pragma unroll
    for (int k = 0; k < rows_each; ++k) {
      float variance = squares[k] / weights[k];
      if constexpr (AroundMean) {
#pragma unroll
        for (int c = 0; c < Channels; ++c) {
          const float mean = differences[c][k] / weights[k];
          variance -= mean * mean;
        }
        variance = fmaxf(variance, 0.0F);
      }
      factors[k] = call.strength.difference_factor(variance);
    }
  }
  second_pass(block, centre, factors);
}

template <int Channels, int Rows, bool AroundMean>
__global__ void __launch_bounds__(cuda::tile_threads)
    adaptive_bilateral_kernel(const __grid_constant__ AdaptiveCall<WindowCall> call) {
  extern __shared__ float shared[];
  filter_block<Channels, Rows, AroundMean>(call, shared);
}

template <PixelType Type, int Channels, int Rows>
__global__ void __launch_bounds__(cuda::tile_threads)
    direct_adaptive_bilateral_kernel(const __grid_constant__ AdaptiveCall<DirectWindowCall<Type>> call) {
  extern __shared__ float shared[];
  filter_block<Channels, Rows, false>(call, shared);
}

// Of second_pass_kernel(): bounds the registers of a thread. Measured on an H200 for radii from 4 to 10.
constexpr int least_resident_blocks(int channels, int rows) {
  if (channels > 1) return 1;
  return rows == 15 ? 5 : 6;
}

// The second pass only: the output's plane of the first channel holds the pixels' factors.
template <int Channels, int Rows>
__global__ void __launch_bounds__(cuda::tile_threads, least_resident_blocks(Channels, Rows))
    second_pass_kernel(const __grid_constant__ WindowCall call) {
  extern __shared__ float shared[];
  WindowBlock<Channels, Rows, true> block(call, shared);
  float centre[Channels][rows_each];
  float factors[rows_each];
  block.load_centres(centre);
#pragma unroll
  for (int k = 0; k < rows_each; ++k) {
    factors[k] = block.is_mine(k) ? call.out.at(call.first_channel, block.x(), block.y(k)) : 0.0F;
  }
  if constexpr (Channels == 1 && Rows % 2 == 1) {
    second_pass_by_columns(block, centre, factors);
  } else {
    second_pass(block, centre, factors);
  }
}

template <class Window>
struct KernelInstance {
  void (*kernel)(AdaptiveCall<Window>);
  std::size_t shared;
};
using Instance = KernelInstance<WindowCall>;
template <PixelType Type>
using DirectInstance = KernelInstance<DirectWindowCall<Type>>;

template <PixelType Type, int Channels, int Radius>
DirectInstance<Type> direct_instance() {
  constexpr int rows = 2 * Radius + 1;
  return {direct_adaptive_bilateral_kernel<Type, Channels, rows>,
          WindowBlock<Channels, rows, true, DirectWindowCall<Type>>::shared_bytes(Radius)};
}

template <PixelType Type, int Channels>
DirectInstance<Type> direct_instance_for(int radius) {
  static_assert(cuda::most_direct_radius == 3);
  return radius == 1   ? direct_instance<Type, Channels, 1>()
         : radius == 2 ? direct_instance<Type, Channels, 2>()
                       : direct_instance<Type, Channels, 3>();
}

bool has_direct_version(const AdaptiveBilateralParams& params, int channels_per_weight) {
  return params.radius <= cuda::most_direct_radius &&
         (channels_per_weight == 1 || channels_per_weight == 3) && params.colour != ColourMode::lab &&
         params.border != Border::wrap && params.centre != VarianceCentre::mean;
}

// Only the generic kernel supports a variance around the mean.
template <int Channels, bool AroundMean>
Instance instance_for(int radius) {
  using None = std::integer_sequence<int>;
  using Reaches = std::conditional_t<AroundMean, None, cuda::CompiledReaches<Channels>>;
  return cuda::with_rows(radius, Reaches(), [&](auto rows) {
    return Instance{adaptive_bilateral_kernel<Channels, rows, AroundMean>,
                    WindowBlock<Channels, rows, true>::shared_bytes(radius)};
  });
}

template <bool AroundMean>
Instance instance_for(int channels, int radius) {
  switch (channels) {
    case 1:
      return instance_for<1, AroundMean>(radius);
    case 2:
      return instance_for<2, AroundMean>(radius);
    case 3:
      return instance_for<3, AroundMean>(radius);
    default:
      return instance_for<4, AroundMean>(radius);
  }
}

// Decided by the whole image's size, so that its parts are filtered alike.
bool takes_two_kernels(const AdaptiveBilateralParams& params, const ImageSpec& spec,
                       int channels_per_weight) {
  if (params.window != Window::square || params.centre == VarianceCentre::mean) return false;
  const long long from = tuning::in_two_kernels_from(channels_per_weight, params.radius);
  return from != tuning::never_in_two_kernels && static_cast<long long>(spec.width) * spec.height >= from;
}

struct SecondPass {
  void (*kernel)(WindowCall);
  std::size_t shared;
};

SecondPass second_pass_for(int channels_per_weight, int radius) {
  using Reaches = std::integer_sequence<int, 4, 5, 6, 7, 8, 9, 10>;
  const auto instance = [&]<int Channels>(std::integral_constant<int, Channels>) {
    return cuda::with_rows(radius, Reaches(), [&](auto rows) {
      return SecondPass{second_pass_kernel<Channels, decltype(rows)::value>,
                        WindowBlock<Channels, decltype(rows)::value, true>::shared_bytes(radius)};
    });
  };
  return channels_per_weight == 1 ? instance(std::integral_constant<int, 1>())
                                  : instance(std::integral_constant<int, 3>());
}

// Between the kernels the pixels' factors lie in a plane of the output.
void launch_two_kernels(const cuda::WindowWeights& weights, const AdaptiveStrength& strength, Border border,
                        int channels_per_weight, const DeviceStageCall& call) {
  const SecondPass second = second_pass_for(channels_per_weight, weights.reach_x);
  for (int first = 0; first < call.out.count; first += channels_per_weight) {
    launch_symmetric_factors(weights, strength, border, first, channels_per_weight, call);
    cuda::launch(second.kernel, cuda::window_grid(call.out.rect), dim3(cuda::tile_threads), second.shared,
                 call.stream, WindowCall{{call.in[0], call.image, border}, call.out, first, weights});
  }
}

}  // namespace

Pipeline adaptive_bilateral_cuda(const AdaptiveBilateralParams& params, const ImageSpec& spec) {
  if (is_identity(params)) return {};
  const Reach reach{.x = params.radius, .y = params.radius};
  const int channels_per_weight = ungrain::channels_per_weight(params.colour, spec.colour_channels());
  const int divisor = difference_divisor(params.colour, channels_per_weight);
  const cuda::WindowWeights weights(params.window, params.radius, reach, params.sigma_space.value(),
                                    params.sigma_range.value(), divisor);
  const double to_variance = 1.0 / divisor / weights.scale / weights.scale;
  const AdaptiveStrength strength{
      .to_variance = static_cast<float>(to_variance),
      .epsilon = static_cast<float>(params.epsilon.value()),
      .factor_squared = static_cast<float>(params.factor.value() * params.factor.value()),
      .from_deviation = static_cast<float>(std::sqrt(to_variance * log2_e / 2))};
  const Instance instance = params.centre == VarianceCentre::mean
                                ? instance_for<true>(channels_per_weight, params.radius)
                                : instance_for<false>(channels_per_weight, params.radius);
  const bool two_kernels = takes_two_kernels(params, spec, channels_per_weight);
  Stage filter{.name = "adaptive-bilateral",
               .reach = reach,
               .planes = spec.colour_channels(),
               .launch = [=, border = params.border](const DeviceStageCall& call) {
                 if (two_kernels) {
                   launch_two_kernels(weights, strength, border, channels_per_weight, call);
                   return;
                 }
                 for (int first = 0; first < call.out.count; first += channels_per_weight) {
                   const AdaptiveCall<WindowCall> of_call{
                       {{call.in[0], call.image, border}, call.out, first, weights}, strength};
                   cuda::launch(instance.kernel, cuda::window_grid(call.out.rect), dim3(cuda::tile_threads),
                                instance.shared, call.stream, of_call);
                 }
               }};
  Pipeline pipeline =
      cuda::in_colour_mode(params.colour, {std::move(filter)}, spec.white(), params.border == Border::wrap);
  if (has_direct_version(params, channels_per_weight)) {
    pipeline.direct.launch = [=, border = params.border, radius = params.radius,
                              channels = spec.colour_channels()](const DeviceDirectCall& call) {
      const cuda::SampleImage samples = cuda::sample_image(call, border);
      with_pixel_type(samples.type, [&]<PixelType Type>(std::integral_constant<PixelType, Type>) {
        const DirectInstance<Type> direct = channels_per_weight == 1 ? direct_instance_for<Type, 1>(radius)
                                                                     : direct_instance_for<Type, 3>(radius);
        for (int first = 0; first < channels; first += channels_per_weight) {
          cuda::launch(direct.kernel, cuda::window_grid(samples.out.rect), dim3(cuda::tile_threads),
                       direct.shared, call.stream,
                       AdaptiveCall<DirectWindowCall<Type>>{{samples, first, weights}, strength});
        }
      });
    };
  }
  return pipeline;
}

}  // namespace ungrain
