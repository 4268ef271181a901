// Bilateral on a GPU: chooses the kernel for a window. The kernel that serves any window is cuda/window.cuh's
// tile with one exponential a tap.
#include "core/sample_types.h"
#include "core/window.h"
#include "cpu/exp.h"
#include "cuda/patch_pairs.h"
#include "cuda/patch_search.h"
#include "cuda/window.cuh"
#include "methods/bilateral/bilateral.h"
#include "methods/bilateral/streamed.h"
#include "methods/bilateral/symmetric.h"
#include "methods/bilateral/tuning.h"

namespace ungrain {
namespace {

using cuda::DirectWindowCall;
using cuda::rows_each;
using cuda::WindowBlock;
using cuda::WindowCall;

// The exponent of the distance in space, less the squared distance of two scaled colours.
template <ColourDistance Distance, int Channels>
__device__ float range_exponent(const float (&values)[Channels], const float (&centre)[Channels][rows_each],
                                int k, float exponent) {
  if constexpr (Distance == ColourDistance::city_block) {
    float sum = fabsf(values[0] - centre[0][k]);
#pragma unroll
    for (int c = 1; c < Channels; ++c) sum += fabsf(values[c] - centre[c][k]);
    return fmaf(-sum, sum, exponent);
  } else {
#pragma unroll
    for (int c = 0; c < Channels; ++c) {
      const float difference = values[c] - centre[c][k];
      exponent = fmaf(-difference, difference, exponent);
    }
    return exponent;
  }
}

template <ColourDistance Distance, int Channels, int Rows, bool OfSequence, class Call>
__device__ void filter_block(const Call& call, float* shared) {
  WindowBlock<Channels, Rows, false, Call> block(call, shared);
  float centre[Channels][rows_each];
  float sums[Channels][rows_each] = {};
  float weights[rows_each] = {};
  block.load_centres(centre);
  const auto visit = [&](int k, const float(&values)[Channels], float exponent) {
    const float weight = cuda::exp2_fast(range_exponent<Distance, Channels>(values, centre, k, exponent));
    weights[k] += weight;
#pragma unroll
    for (int c = 0; c < Channels; ++c) sums[c][k] = fmaf(weight, values[c], sums[c][k]);
  };
  if constexpr (OfSequence) {
    block.for_window_of_images(visit);
  } else {
    block.for_window(visit);
  }
  block.store(centre, sums, weights);
}

// OfSequence: the windows of several images, in a loop that takes registers, hence a kernel of its own.
template <ColourDistance Distance, int Channels, int Rows, bool OfSequence>
__global__ void __launch_bounds__(cuda::tile_threads)
    bilateral_kernel(const __grid_constant__ WindowCall call) {
  extern __shared__ float shared[];
  filter_block<Distance, Channels, Rows, OfSequence>(call, shared);
}

// Replacing what is not finite must not take registers from the filter: hence the least number of blocks.
template <PixelType Type, int Channels, int Rows>
__global__ void __launch_bounds__(cuda::tile_threads, is_float(Type) && Channels == 1 ? 9 : 1)
    direct_bilateral_kernel(const __grid_constant__ DirectWindowCall<Type> call) {
  extern __shared__ float shared[];
  filter_block<ColourDistance::euclidean, Channels, Rows, false>(call, shared);
}

using Kernel = void (*)(WindowCall);
struct Instance {
  Kernel kernel;
  std::size_t shared;
};

// City block has kernels for windows of up to 15 rows, which OpenCV's users mostly ask for. Taller windows,
// which take longest to compile, use the generic kernel.
template <ColourDistance Distance, int Channels>
using CompiledReaches =
    std::conditional_t<Distance == ColourDistance::city_block && Channels == 3,
                       std::make_integer_sequence<int, 8>, cuda::CompiledReaches<Channels>>;

// For sequences: the default radius, else the generic kernel.
template <ColourDistance Distance, int Channels>
using SequenceReaches =
    std::conditional_t<Distance == ColourDistance::euclidean && (Channels == 1 || Channels == 3),
                       std::integer_sequence<int, 5>, std::integer_sequence<int>>;

template <ColourDistance Distance, int Channels>
Instance instance_for(const Reach& reach) {
  const auto instance = [&]<bool OfSequence>(auto rows, std::bool_constant<OfSequence>) {
    return Instance{bilateral_kernel<Distance, Channels, decltype(rows)::value, OfSequence>,
                    WindowBlock<Channels, decltype(rows)::value, false>::shared_bytes(reach.x)};
  };
  if (reach.slices() > 1) {
    return cuda::with_rows(reach.y, SequenceReaches<Distance, Channels>(),
                           [&](auto rows) { return instance(rows, std::true_type()); });
  }
  return cuda::with_rows(reach.y, CompiledReaches<Distance, Channels>(),
                         [&](auto rows) { return instance(rows, std::false_type()); });
}

// For several channels: for one, the distances are equal.
template <ColourDistance Distance>
Instance instance_for_colour(int channels, const Reach& reach) {
  switch (channels) {
    case 2:
      return instance_for<Distance, 2>(reach);
    case 3:
      return instance_for<Distance, 3>(reach);
    default:
      return instance_for<Distance, 4>(reach);
  }
}

Instance instance_for(ColourDistance distance, int channels, const Reach& reach) {
  if (channels == 1) return instance_for<ColourDistance::euclidean, 1>(reach);
  return distance == ColourDistance::city_block
             ? instance_for_colour<ColourDistance::city_block>(channels, reach)
             : instance_for_colour<ColourDistance::euclidean>(channels, reach);
}

// The filter as a search for similar patches of one pixel.
PatchSearch as_search(const BilateralParams& params) {
  return {.search = 2 * params.radius + 1,
          .patch = {1.0},
          .strength = std::sqrt(2.0) * params.sigma_range.value(),
          .space = params.sigma_space.value(),
          .self = SelfWeight::one,
          .colour = params.colour,
          .border = params.border};
}

enum class Form {
  one_sided,  // cuda/window.cuh
  symmetric,  // each weight serves both its pixels
  pairs,      // so too, as a search for patches of one pixel
  streamed,   // small windows, through registers
};

// Decided by the whole image's size, so that its parts are filtered alike.
Form form_for(const BilateralParams& params, const ImageSpec& spec, int channels_per_weight) {
  const bool plain = (channels_per_weight == 1 || channels_per_weight == 3) &&
                     params.window == Window::square && params.quality != BilateralQuality::separable &&
                     distance_among(params, channels_per_weight) == ColourDistance::euclidean;
  if (!plain || params.radius_t > 0) return Form::one_sided;
  const auto pixels = static_cast<long long>(spec.width) * spec.height;
  if (tuning::serves(tuning::streamed_from(channels_per_weight, params.radius), pixels))
    return Form::streamed;
  if (channels_per_weight == 1 && tuning::serves(tuning::pairs_from(params.radius), pixels) &&
      cuda::searches_pairs(as_search(params), channels_per_weight)) {
    return Form::pairs;
  }
  if (tuning::serves(tuning::symmetric_from(channels_per_weight, params.radius), pixels))
    return Form::symmetric;
  return Form::one_sided;
}

template <PixelType Type>
struct DirectInstance {
  void (*kernel)(DirectWindowCall<Type>);
  std::size_t shared;
};

template <PixelType Type, int Channels, int Radius>
DirectInstance<Type> direct_instance() {
  constexpr int rows = 2 * Radius + 1;
  return {direct_bilateral_kernel<Type, Channels, rows>,
          WindowBlock<Channels, rows, false, DirectWindowCall<Type>>::shared_bytes(Radius)};
}

template <PixelType Type, int Channels>
DirectInstance<Type> direct_instance_for(int radius) {
  static_assert(cuda::most_direct_radius == 3);
  return radius == 1   ? direct_instance<Type, Channels, 1>()
         : radius == 2 ? direct_instance<Type, Channels, 2>()
                       : direct_instance<Type, Channels, 3>();
}

bool has_direct_version(const BilateralParams& params, int channels_per_weight) {
  return params.radius_t == 0 && params.radius <= cuda::most_direct_radius &&
         (channels_per_weight == 1 || channels_per_weight == 3) && params.colour != ColourMode::lab &&
         params.border != Border::wrap && params.quality != BilateralQuality::separable &&
         distance_among(params, channels_per_weight) == ColourDistance::euclidean;
}

void launch_direct(const cuda::WindowWeights& weights, const BilateralParams& params, Form form,
                   int channels_per_weight, int channels, const DeviceDirectCall& call) {
  const cuda::SampleImage samples = cuda::sample_image(call, params.border);
  const auto one_sided = [&]<PixelType Type>(std::integral_constant<PixelType, Type>, int first) {
    const DirectInstance<Type> instance = channels_per_weight == 1
                                              ? direct_instance_for<Type, 1>(params.radius)
                                              : direct_instance_for<Type, 3>(params.radius);
    cuda::launch(instance.kernel, cuda::window_grid(samples.out.rect), dim3(cuda::tile_threads),
                 instance.shared, call.stream, DirectWindowCall<Type>{samples, first, weights});
  };
  for (int first = 0; first < channels; first += channels_per_weight) {
    if (form == Form::streamed) {
      launch_streamed_bilateral(weights, first, channels_per_weight, samples, call.stream);
    } else {
      with_pixel_type(samples.type, [&](auto type) { one_sided(type, first); });
    }
  }
}

// Over the image that is filtered and those around it that exist.
WindowCall window_call(const DeviceStageCall& call, const BilateralParams& params, int first_channel,
                       const cuda::WindowWeights& weights) {
  WindowCall window{{call.at(0, 0), call.image, params.border}, call.out, first_channel, weights};
  for (int offset = -call.reach.before; offset <= call.reach.after; ++offset) {
    const float* const data = call.at(0, offset).data;
    if (offset == 0 || data == nullptr) continue;
    constexpr double lowest = -1e30;  // no weight at all, and still finite
    const double exponent = std::max(-squared_distance_of_image(params, offset) / 2 * log2_e, lowest);
    window.other_data[window.other_images] = data;
    window.other_exponents[window.other_images++] = static_cast<float>(exponent);
  }
  return window;
}

}  // namespace

Pipeline bilateral_cuda(const BilateralParams& params, const ImageSpec& spec) {
  if (is_identity(params)) return {};
  if (uses_grid(params)) return bilateral_grid_cuda(params, spec);
  const int channels_per_weight = ungrain::channels_per_weight(params.colour, spec.colour_channels());
  const ColourDistance distance = distance_among(params, channels_per_weight);
  const int divisor =
      distance == ColourDistance::city_block ? 1 : difference_divisor(params.colour, channels_per_weight);
  if (form_for(params, spec, channels_per_weight) == Form::pairs) {
    return cuda::patch_search_cuda("bilateral", as_search(params), spec);
  }
  std::vector<Stage> passes;
  for (const Reach& reach : bilateral_passes(params)) {
    const cuda::WindowWeights weights(params.window, params.radius, reach, params.sigma_space.value(),
                                      params.sigma_range.value(), divisor);
    const Instance instance = instance_for(distance, channels_per_weight, reach);
    const Form form = form_for(params, spec, channels_per_weight);
    passes.push_back(
        {.name = "bilateral",
         .reach = reach,
         .planes = spec.colour_channels(),
         .launch = [=](const DeviceStageCall& call) {
           for (int first = 0; first < call.out.count; first += channels_per_weight) {
             if (form == Form::symmetric) {
               launch_symmetric_bilateral(weights, params.border, first, channels_per_weight, call);
               continue;
             }
             if (form == Form::streamed) {
               launch_streamed_bilateral(weights, params.border, first, channels_per_weight, call);
               continue;
             }
             const WindowCall window = window_call(call, params, first, weights);
             cuda::launch(instance.kernel, cuda::window_grid(call.out.rect), dim3(cuda::tile_threads),
                          instance.shared, call.stream, window);
           }
         }});
  }
  Pipeline pipeline =
      cuda::in_colour_mode(params.colour, std::move(passes), spec.white(), params.border == Border::wrap);
  pipeline.slow_border = Border::shrink;
  if (has_direct_version(params, channels_per_weight)) {
    const cuda::WindowWeights weights(params.window, params.radius, {.x = params.radius, .y = params.radius},
                                      params.sigma_space.value(), params.sigma_range.value(), divisor);
    const Form form = form_for(params, spec, channels_per_weight);
    pipeline.direct.launch = [=, channels = spec.colour_channels()](const DeviceDirectCall& call) {
      launch_direct(weights, params, form, channels_per_weight, channels, call);
    };
  }
  return pipeline;
}

}  // namespace ungrain
