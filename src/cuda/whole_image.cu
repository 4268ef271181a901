// The steps before and after the products: the range of the values, the vectors of the pixels, the choice
// between halves and pairs of halves, the joining of split sums.
#include "cuda/whole_image.h"

#include <algorithm>
#include <cmath>

#include "core/window.h"
#include "cpu/exp.h"
#include "cuda/tuning.h"
#include "cuda/whole_image_call.cuh"

namespace ungrain::cuda {
namespace {

constexpr int range_threads = 256;
using tuning::range_blocks;

__global__ void __launch_bounds__(range_threads) range_kernel(const __grid_constant__ WholeImageCall call) {
  unsigned high = 0;
  unsigned low = 0;
  const int width = call.in.image.width;
  for (int channel = 0; channel < call.channels; ++channel) {
    for (int i = static_cast<int>(blockIdx.x * range_threads + threadIdx.x); i < call.pixels();
         i += range_blocks * range_threads) {
      const float value = call.in.inside(call.first_channel + channel, i % width, i / width);
      high = max(high, ordered(value));
      low = max(low, ordered(-value));
    }
  }
  for (int apart = 16; apart > 0; apart /= 2) {
    high = max(high, __shfl_xor_sync(~0U, high, apart));
    low = max(low, __shfl_xor_sync(~0U, low, apart));
  }
  if (threadIdx.x % 32 != 0) return;
  atomicMax(&call.header[highest_value], high);
  atomicMax(&call.header[lowest_value], low);
}

constexpr int vector_threads = 128;

// The pixels of a patch as components of its vector.
template <int Patch>
class PatchComponents {
 public:
  static constexpr int area = Patch * Patch;

  // `roots`: what root_of() gives for each pixel of a patch, in shared memory; lanes need different ones.
  __device__ PatchComponents(const WholeImageCall& call, const float* roots, float centre, int x, int y)
      : call_(call),
        roots_(roots),
        centre_(centre),
        left_(x - Patch / 2),
        top_(y - Patch / 2),
        held_(call.in.holds(left_, top_, left_ + Patch, top_ + Patch)) {}

  __device__ static float root_of(const WholeImageCall& call, int pixel) {
    return pixel == area / 2 ? call.centre_root : call.roots[pixel / Patch] * call.roots[pixel % Patch];
  }

  __device__ float operator[](int index) const {
    const int plane = call_.first_channel + index / area;
    const int row = index % area / Patch;
    const int column = index % Patch;
    const int x = left_ + column;
    const int y = top_ + row;
    const float pixel = held_ ? call_.in.inside(plane, x, y) : call_.in.at(plane, x, y, 0.0F);
    return (pixel - centre_) * roots_[index % area];
  }

 private:
  const WholeImageCall& call_;
  const float* roots_;
  float centre_;
  int left_;
  int top_;
  bool held_;
};

// A warp writes the vectors of a tile of 8 keys; a lane writes two of every eight numbers of one of them.
template <int Patch>
__global__ void __launch_bounds__(vector_threads)
    vectors_kernel(const __grid_constant__ WholeImageCall call, int tiles) {
  const ValueRange range(call);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    call.header[left_undone] = range.precision(call) == WholeImagePrecision::floats ? 1 : 0;
  }
  if (query_set(call) == QuerySet::none) return;
  __shared__ float roots[Patch * Patch];
  for (int i = static_cast<int>(threadIdx.x); i < Patch * Patch; i += vector_threads) {
    roots[i] = PatchComponents<Patch>::root_of(call, i);
  }
  __syncthreads();
  const int tile = static_cast<int>(blockIdx.x * vector_threads + threadIdx.x) / 32;
  if (tile >= tiles) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int key = 8 * tile + lane / 4;
  const bool exists = key < call.pixels();
  const int x = exists ? key % call.in.image.width : 0;
  const int y = exists ? key / call.in.image.width : 0;
  const PatchComponents<Patch> components(call, roots, range.centre, x, y);
  const KeyLayout& layout = call.layout;
  std::uint32_t* const to = call.keys + static_cast<std::size_t>(tile) * layout.words * 32;
  const int count = call.components();
  const bool pairs = call.precision == WholeImagePrecision::pairs;

  float norm = 0;
  // Each component occurs once in the first part of the vector; there its rounded value counts for the norm.
  const auto component = [&](int slot) {
    if (!exists) return __half{};
    const int part = slot < count ? 0 : slot < 2 * count ? 1 : 2;
    const float value = components[slot - part * count];
    const __half first = high_half(value);
    const __half second = low_half(value);
    if (part == 0) {
      const float rounded = __half2float(first) + (pairs ? __half2float(second) : 0.0F);
      norm = fmaf(rounded, rounded, norm);
    }
    return part == 1 ? second : first;
  };
  const auto write = [&](int word, __half first, __half second) {
    const __half2 both = __halves2half2(first, second);
    to[layout.word(word, lane)] = reinterpret_cast<const std::uint32_t&>(both);
  };
  const int whole_words = call.factors() / 8;
  for (int word = 0; word < whole_words; ++word) {
    const int slot = 8 * word + 2 * (lane % 4);
    const __half first = component(slot);
    write(word, first, component(slot + 1));
  }
  // The word in which the components end.
  __half ends[2] = {};
  for (int i = 0; i < 2; ++i) {
    const int slot = 8 * whole_words + 2 * (lane % 4) + i;
    if (slot < call.factors()) ends[i] = component(slot);
  }
  norm += __shfl_xor_sync(~0U, norm, 1);
  norm += __shfl_xor_sync(~0U, norm, 2);
  // A key that only pads a stage is far from everything.
  constexpr float far_away = -60000;
  const float raised = layout.values_are_halves ? static_cast<float>(raised_weights) : 0.0F;
  const float with_noise = exists ? call.noise + raised - norm : far_away;
  for (int word = whole_words; word < layout.words; ++word) {
    __half numbers[2];
    for (int i = 0; i < 2; ++i) {
      const int after = 8 * word + 2 * (lane % 4) + i - call.factors();
      numbers[i] = after < 0    ? ends[i]
                   : after < 2  ? __float2half_rn(1.0F)
                   : after == 2 ? high_half(with_noise)
                   : after == 3 ? low_half(with_noise)
                                : __half{};
    }
    write(word, numbers[0], numbers[1]);
  }
  if (lane % 4 != 0) return;
  if (exists) call.norms[key] = -norm;
  float* const values = call.values +
                        static_cast<std::size_t>(key / layout.keys) * layout.planes * layout.keys +
                        key % layout.keys;
  for (int plane = 0; plane < layout.planes; ++plane) {
    float value = 0;
    if (exists && plane < call.channels) value = call.in.inside(call.first_channel + plane, x, y);
    if (exists && plane == call.channels) value = static_cast<float>(x) * call.space_root;
    if (exists && plane == call.channels + 1) value = static_cast<float>(y) * call.space_root;
    if (layout.values_are_halves && plane < call.channels) {
      const float narrowed = exists ? range.narrowed(value) : 0.0F;
      auto* const halves = reinterpret_cast<__half*>(values - key % layout.keys + plane * layout.keys) +
                           KeyLayout::half_of(key % layout.keys);
      halves[0] = high_half(narrowed);
      halves[KeyLayout::to_lower_half] = low_half(narrowed);
    } else {
      values[plane * layout.keys] = value;
    }
  }
}

using VectorsKernel = void (*)(WholeImageCall, int);

VectorsKernel vectors_kernel_for(int patch) {
  switch (patch) {
    case 3:
      return vectors_kernel<3>;
    case 5:
      return vectors_kernel<5>;
    case 7:
      return vectors_kernel<7>;
    default:
      return vectors_kernel<9>;
  }
}

// Runs after the search for the sampled pixels.
__global__ void __launch_bounds__(most_samples)
    choose_precision_kernel(const __grid_constant__ WholeImageCall call, int most_again) {
  const auto sample = static_cast<int>(threadIdx.x);
  const bool again = sample < call.samples && !are_precise(call, __uint_as_float(call.nearest[sample]));
  const int count = __syncthreads_count(again ? 1 : 0);
  if (sample == 0) call.header[only_pairs] = count > most_again ? 1 : 0;
}

constexpr int join_threads = 256;

// Adds a pixel's sums of all groups in their order, and the pixel itself.
__global__ void __launch_bounds__(join_threads)
    join_groups_kernel(const __grid_constant__ WholeImageCall call) {
  const QuerySet which = query_set(call);
  if (which == QuerySet::none) return;
  const Rect& area = call.out.rect;
  const int pixels = area.width() * area.height();
  int pixel = static_cast<int>(blockIdx.x * join_threads + threadIdx.x);
  if (which == QuerySet::listed) {
    if (pixel >= static_cast<int>(call.header[listed])) return;
    pixel = static_cast<int>(call.list[pixel]);
  }
  if (pixel >= pixels) return;
  const int kinds = call.channels + 2;
  const auto sum_of = [&](int group, int kind) {
    return call.sums[(static_cast<std::ptrdiff_t>(group) * kinds + kind) * pixels + pixel];
  };
  float weights = 0;
  float largest = 0;
  for (int group = 0; group < call.groups; ++group) {
    weights += sum_of(group, 0);
    largest = fmaxf(largest, sum_of(group, kinds - 1));
  }
  if (!are_precise(call, largest)) list_pixel(call, pixel);
  const float self = self_weight(call.self_is_max, largest);
  const int x = area.x0 + pixel % area.width();
  const int y = area.y0 + pixel / area.width();
  for (int channel = 0; channel < call.channels; ++channel) {
    float values = 0;
    for (int group = 0; group < call.groups; ++group) values += sum_of(group, 1 + channel);
    const int plane = call.first_channel + channel;
    call.out.at(plane, x, y) = fmaf(self, call.in.inside(plane, x, y), values) / (weights + self);
  }
}

// Turns the integer sums of the area's pixels into values, and adds the pixel itself.
__global__ void __launch_bounds__(join_threads)
    finish_symmetric_kernel(const __grid_constant__ WholeImageCall call) {
  if (query_set(call) == QuerySet::none) return;
  const Rect& area = call.out.rect;
  const int pixel = static_cast<int>(blockIdx.x * join_threads + threadIdx.x);
  if (pixel >= area.width() * area.height()) return;
  const int x = area.x0 + pixel % area.width();
  const int y = area.y0 + pixel / area.width();
  const int position = y * call.in.image.width + x;
  const ValueRange range(call);
  const auto sum_of = [&](int kind) {
    constexpr float lowered = 1.0F / (1 << raised_weights) / integer_sums_scale;
    const auto sum = static_cast<long long>(
        call.integer_sums[static_cast<std::ptrdiff_t>(kind) * call.pixels() + position]);
    return lowered * static_cast<float>(sum);
  };
  const float weights = sum_of(call.channels);
  constexpr float self = 1;
  for (int channel = 0; channel < call.channels; ++channel) {
    const float values = fmaf(range.spread, sum_of(channel), range.centre * weights);
    const int plane = call.first_channel + channel;
    call.out.at(plane, x, y) = fmaf(self, call.in.inside(plane, x, y), values) / (weights + self);
  }
}

// Number of groups into which the keys are split, so that a small image keeps the GPU busy. The image's size
// alone decides, for one size of GPU, so that bits do not depend on the parts in which the image is filtered.
int groups_for(long long pixels, const WholeImageKernel& kernel, const tuning::Split& gpu) {
  const auto blocks = static_cast<double>((pixels + kernel.queries - 1) / kernel.queries);
  const double met = kernel.is_symmetric ? 0.5 : 1;  // share of the blocks that a block meets
  const double stages = met * static_cast<double>((pixels + kernel.layout.keys - 1) / kernel.layout.keys);
  int best = 1;
  double least = 0;
  for (int groups = 1; groups <= gpu.most_groups && groups <= stages; ++groups) {
    const double rounds = std::ceil(blocks * groups / (gpu.multiprocessors * kernel.resident));
    const double time = rounds * (std::ceil(stages / groups) + gpu.stages_to_begin);
    if (groups > 1 && time >= gpu.worthwhile * least) continue;
    best = groups;
    least = time;
  }
  return best;
}

// A kernel for an image, and the memory that it needs.
struct Plan {
  WholeImageKernel kernel;
  const tuning::Split* gpu;
  int groups = 1;
  std::size_t keys = 0;  // words
  std::size_t values = 0;
  std::size_t norms = 0;
  std::size_t list = 0;
  std::size_t sums = 0;

  Plan(const WholeImageKernel& chosen, long long pixels, int channels_per_weight, int capability)
      : kernel(chosen), gpu(&tuning::split_on(capability)) {
    if (kernel.kernel == nullptr) return;
    const KeyLayout& layout = kernel.layout;
    // A symmetric search takes whole blocks of queries as keys.
    const int together = kernel.is_symmetric ? kernel.queries : layout.keys;
    const auto stages =
        static_cast<std::size_t>((pixels + together - 1) / together * (together / layout.keys));
    groups = groups_for(pixels, kernel, *gpu);
    keys = stages * static_cast<std::size_t>(layout.keys / 8 * layout.words * 32);
    values = stages * static_cast<std::size_t>(layout.keys * layout.planes);
    norms = (static_cast<std::size_t>(pixels) + 3) / 4 * 4;
    list = norms;  // a multiple of 4: keys follow, which are copied by 16 bytes
    if (kernel.is_symmetric) {
      sums = 2 * static_cast<std::size_t>(channels_per_weight + 1) * static_cast<std::size_t>(pixels);
    } else if (groups > 1) {
      sums = static_cast<std::size_t>(groups) * static_cast<std::size_t>(channels_per_weight + 2) *
             static_cast<std::size_t>(pixels);
    }
  }
  std::size_t floats() const { return list + keys + values + norms + sums; }
  int numbers() const { return 8 * kernel.layout.words; }  // of a vector
};

// One search in the precisions that may be needed.
struct Plans {
  Plan halves;
  Plan pairs;

  std::size_t floats() const { return std::max(halves.floats(), pairs.floats()); }
};

constexpr int hopper_capability = 90;

// 90 for compute capability 9.0.
int compute_capability() {
  int device = 0;
  int major = 0;
  int minor = 0;
  check(cudaGetDevice(&device), "asking for the GPU");
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "asking for the GPU");
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "asking for the GPU");
  return 10 * major + minor;
}

// The part of the arguments that does not depend on the call.
WholeImageCall settings(const PatchSearch& search, int channels_per_weight, int divisor, bool has_pairs) {
  // Bounds that keep every factor and its square finite; beyond them the kernel with differences of floats is
  // used.
  constexpr double weakest = 1e-15;
  constexpr double strongest = 1e15;
  const int patch = static_cast<int>(search.patch.size());
  WholeImageCall call{};
  call.channels = channels_per_weight;
  call.patch = patch;
  const double scale = std::clamp(std::sqrt(log2_e / divisor) / search.strength, weakest, strongest);
  call.scale = static_cast<float>(scale);
  for (int i = 0; i < patch; ++i) {
    call.roots[i] = static_cast<float>(std::sqrt(search.patch[static_cast<std::size_t>(i)] * scale));
  }
  const double middle = search.patch[static_cast<std::size_t>(patch / 2)] * scale;
  const double own = std::min(std::sqrt(log2_e / (2.0 * divisor)) / search.range, strongest);
  call.centre_root = static_cast<float>(std::hypot(middle, own));
  call.noise = static_cast<float>(std::min(1e4, 2 * std::pow(search.noise / search.strength, 2) * log2_e));
  call.space_root = static_cast<float>(std::min(1e3, std::sqrt(log2_e / 2) / search.space));
  call.self_is_max = search.self == SelfWeight::max;
  // Pixels for which halves are not precise enough are searched for again with pairs; without a kernel for
  // pairs, halves cannot be used.
  call.halves_allowed = search.precision == Precision::half && (has_pairs || !call.self_is_max);
  return call;
}

WholeImageCall call_for(const WholeImageCall& setup, const Plan& plan, WholeImagePrecision precision,
                        const DeviceStageCall& call, Border border, int first) {
  WholeImageCall result = setup;
  result.in = {call.in[0], call.image, border};
  result.out = call.out;
  result.first_channel = first;
  result.precision = precision;
  result.layout = plan.kernel.layout;
  result.groups = plan.groups;
  float* next = call.scratch.data();
  result.header = reinterpret_cast<unsigned*>(next);
  next += header_words;
  result.nearest = result.header + header_words - most_samples;
  result.list = reinterpret_cast<unsigned*>(next);
  next += plan.list;
  result.keys = reinterpret_cast<std::uint32_t*>(next);
  next += plan.keys;
  result.values = next;
  next += plan.values;
  result.norms = next;
  result.sums = next + plan.norms;
  result.integer_sums = reinterpret_cast<unsigned long long*>(result.sums);
  return result;
}

void launch_vectors(const WholeImageCall& call, const Plan& plan, Stream stream) {
  const int tiles = static_cast<int>(plan.keys / static_cast<std::size_t>(plan.kernel.layout.words * 32));
  launch(vectors_kernel_for(call.patch), dim3(static_cast<unsigned>(blocks_for(tiles, vector_threads / 32))),
         dim3(vector_threads), 0, stream, call, tiles);
}

void launch_kernel(const WholeImageCall& call, const WholeImageKernel& kernel, int queries, Stream stream) {
  const dim3 grid(static_cast<unsigned>(blocks_for(queries, kernel.queries)),
                  static_cast<unsigned>(call.groups));
  launch(kernel.kernel, grid, dim3(static_cast<unsigned>(kernel.threads)), kernel.shared, stream, call);
}

// Decides whether halves are worthwhile. These groups give only largest weights, which are the same for any
// number of groups.
void launch_choice(const WholeImageCall& call, const Plans& plans, Stream stream) {
  const WholeImageKernel& kernel = plans.halves.kernel;
  WholeImageCall sample = call;
  sample.samples = sample_count(call.in.image);
  const int fill =
      plans.halves.gpu->multiprocessors * kernel.resident / blocks_for(sample.samples, kernel.queries);
  sample.groups = std::clamp(blocks_for(call.pixels(), kernel.layout.keys), 1, fill);
  launch_kernel(sample, kernel, sample.samples, stream);
  launch(choose_precision_kernel, dim3(1), dim3(most_samples), 0, stream, sample,
         most_searched_again(sample.samples, plans.halves.numbers(), plans.pairs.numbers()));
}

void launch_search(const WholeImageCall& call, const Plan& plan, Stream stream) {
  const int queries = call.out.rect.width() * call.out.rect.height();
  if (plan.kernel.is_symmetric) {
    check(cudaMemsetAsync(call.integer_sums, 0, plan.sums * sizeof(float), handle(stream)),
          "clearing the sums");
    launch_kernel(call, plan.kernel, call.pixels(), stream);
    launch(finish_symmetric_kernel, dim3(static_cast<unsigned>(blocks_for(queries, join_threads))),
           dim3(join_threads), 0, stream, call);
    return;
  }
  launch_kernel(call, plan.kernel, queries, stream);
  if (plan.groups == 1) return;
  launch(join_groups_kernel, dim3(static_cast<unsigned>(blocks_for(queries, join_threads))),
         dim3(join_threads), 0, stream, call);
}

}  // namespace

std::optional<WholeImageSearch> whole_image_search(const PatchSearch& search, int channels_per_weight,
                                                   int divisor, const Extent& image) {
  const int patch = static_cast<int>(search.patch.size());
  const long long pixels = static_cast<long long>(image.width) * image.height;
  constexpr long long most_pixels = 1LL << 28;  // beyond which it would take days
  const bool has_space = !std::isinf(search.space);
  const bool is_general = search.noise > 0 || search.self == SelfWeight::max;
  if (search.border == Border::shrink || patch < 3 || patch > most_whole_image_patch ||
      pixels > most_pixels || (has_space && is_general)) {
    return std::nullopt;
  }
  const auto kernels = [&](bool hopper, int numbers) {
    if (hopper) {
      // The plain kernel's weights are halves.
      const bool of_floats = is_general || search.precision != Precision::half;
      if (!has_space && !of_floats && pixels <= tuning::most_pixels_for_symmetry) {
        const WholeImageKernel symmetric = hopper::whole_image_symmetric(channels_per_weight, numbers);
        if (symmetric.kernel != nullptr) return symmetric;
      }
      return has_space   ? hopper::whole_image_bilateral(channels_per_weight, numbers)
             : of_floats ? hopper::whole_image_general(channels_per_weight, numbers)
                         : hopper::whole_image_plain(channels_per_weight, numbers);
    }
    return has_space    ? whole_image_bilateral(channels_per_weight, numbers)
           : is_general ? whole_image_general(channels_per_weight, numbers)
                        : whole_image_plain(channels_per_weight, numbers);
  };
  const auto plan_for = [&](bool hopper, int factors) {
    const int numbers = factors * channels_per_weight * patch * patch + 4;
    const WholeImageKernel kernel = kernels(hopper, numbers);
    return Plan(kernel.kernel != nullptr ? kernel : kernels(false, numbers), pixels, channels_per_weight,
                hopper ? hopper_capability : tuning::any_capability);
  };
  const Plans plans[] = {{plan_for(false, 1), plan_for(false, 3)}, {plan_for(true, 1), plan_for(true, 3)}};
  if (plans[0].halves.kernel.kernel == nullptr) return std::nullopt;

  WholeImageSearch result;
  result.scratch = header_words + std::max(plans[0].floats(), plans[1].floats());
  result.launch =
      [setup = settings(search, channels_per_weight, divisor, plans[0].pairs.kernel.kernel != nullptr),
       border = search.border, any = plans[0], on_hopper = plans[1]](const DeviceStageCall& call, int first) {
        constexpr int least_capability = 80;  // that has these products
        const int capability = compute_capability();
        const Plans& plan = capability == hopper_capability ? on_hopper : any;
        const WholeImageCall halves =
            call_for(setup, plan.halves, WholeImagePrecision::halves, call, border, first);
        check(cudaMemsetAsync(halves.header, 0, header_words * sizeof(unsigned), handle(call.stream)),
              "clearing what kernels leave for others");
        if (capability < least_capability) {
          check(cudaMemsetAsync(halves.header + left_undone, 1, sizeof(unsigned), handle(call.stream)),
                "leaving the search to differences");
          return;
        }
        launch(range_kernel, dim3(range_blocks), dim3(range_threads), 0, call.stream, halves);
        launch_vectors(halves, plan.halves, call.stream);
        if (setup.halves_allowed && setup.self_is_max) launch_choice(halves, plan, call.stream);
        launch_search(halves, plan.halves, call.stream);
        if (plan.pairs.kernel.kernel == nullptr) return;
        const WholeImageCall pairs =
            call_for(setup, plan.pairs, WholeImagePrecision::pairs, call, border, first);
        launch_vectors(pairs, plan.pairs, call.stream);
        launch_search(pairs, plan.pairs, call.stream);
      };
  result.left_undone = [](const DeviceStageCall& call) {
    return reinterpret_cast<const unsigned*>(call.scratch.data()) + left_undone;
  };
  return result;
}

}  // namespace ungrain::cuda
