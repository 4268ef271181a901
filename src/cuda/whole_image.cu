// What is done before and after the products: the range of the values, the pixels as vectors, the joining of
// sums that were split.
#include "cuda/whole_image.h"

#include <algorithm>
#include <cmath>

#include "core/window.h"
#include "cpu/exp.h"
#include "cuda/whole_image.cuh"

namespace ungrain::cuda {
namespace {

constexpr int range_threads = 256;
constexpr int range_blocks = 264;

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
  high = __reduce_max_sync(~0U, high);
  low = __reduce_max_sync(~0U, low);
  if (threadIdx.x % 32 != 0) return;
  atomicMax(&call.range[0], high);
  atomicMax(&call.range[1], low);
}

constexpr int vector_threads = 128;

// How keys lie for the kernel that takes them.
struct KeyLayout {
  int words;
  int keys;
  int planes;
};

// A warp writes the vectors of a tile of 8 keys as the tensor cores' lanes take them.
__global__ void __launch_bounds__(vector_threads)
    vectors_kernel(const __grid_constant__ WholeImageCall call, WholeImagePrecision precision,
                   const __grid_constant__ KeyLayout layout, int tiles) {
  const ValueRange range(call);
  const WholeImagePrecision chosen = range.precision(call);
  if (blockIdx.x == 0 && threadIdx.x == 0) call.range[2] = chosen == WholeImagePrecision::floats ? 1 : 0;
  if (chosen != precision) return;
  const PixelVectors vectors{call, range.centre, precision == WholeImagePrecision::pairs};
  const int tile = static_cast<int>(blockIdx.x * vector_threads + threadIdx.x) / 32;
  if (tile >= tiles) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int key = 8 * tile + lane / 4;
  const bool exists = key < call.pixels();
  const int x = exists ? key % call.in.image.width : 0;
  const int y = exists ? key / call.in.image.width : 0;
  float norm = vectors.norm(x, y, lane % 4);
  // A key that only fills up a stage is far from everything.
  constexpr float far_away = -60000;
  norm = exists ? call.noise - norm : far_away;
  const int count = call.components() * (vectors.pairs ? 3 : 1);
  const int together = layout.words == 2 ? 2 : 4;
  std::uint32_t* const to = call.keys + static_cast<std::size_t>(tile) * layout.words * 32;
  for (int word = 0; word < layout.words; ++word) {
    const int slot = 8 * word + 2 * (lane % 4);
    __half2 both{};
    if (exists || slot + 1 >= count) {
      both = __halves2half2(exists || slot >= count ? vectors.of_key(x, y, slot, norm) : __half{},
                            vectors.of_key(x, y, slot + 1, norm));
    }
    to[(word / together * 32 + lane) * together + word % together] =
        reinterpret_cast<const std::uint32_t&>(both);
  }
  if (lane % 4 != 0) return;
  float* const values = call.values +
                        static_cast<std::size_t>(key / layout.keys) * layout.planes * layout.keys +
                        key % layout.keys;
  for (int plane = 0; plane < layout.planes; ++plane) {
    float value = 0;
    if (exists && plane < call.channels) value = call.in.inside(call.first_channel + plane, x, y);
    if (exists && plane == call.channels) value = static_cast<float>(x) * call.space_root;
    if (exists && plane == call.channels + 1) value = static_cast<float>(y) * call.space_root;
    values[plane * layout.keys] = value;
  }
}

constexpr int join_threads = 256;

// A pixel's sums of all groups in their order, and the pixel itself.
__global__ void __launch_bounds__(join_threads)
    join_groups_kernel(const __grid_constant__ WholeImageCall call, WholeImagePrecision precision) {
  if (ValueRange(call).precision(call) != precision) return;
  const Rect& area = call.out.rect;
  const int pixels = area.width() * area.height();
  const int pixel = static_cast<int>(blockIdx.x * join_threads + threadIdx.x);
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

// Into how many groups the keys are split, so that a small image keeps the GPU busy: by the image's size
// alone and for one size of GPU, so that bits do not depend on parts or machines.
int groups_for(long long pixels, const WholeImageKernel& kernel) {
  constexpr int multiprocessors = 132;  // of an H200
  constexpr double to_begin = 4;        // stages' time that a block needs before the first
  const auto blocks = static_cast<double>((pixels + kernel.queries - 1) / kernel.queries);
  const auto stages = static_cast<double>((pixels + kernel.keys - 1) / kernel.keys);
  int best = 1;
  double least = 0;
  for (int groups = 1; groups <= 64 && groups <= stages; ++groups) {
    const double rounds = std::ceil(blocks * groups / (multiprocessors * kernel.resident));
    const double time = rounds * (std::ceil(stages / groups) + to_begin);
    if (groups > 1 && time >= 0.98 * least) continue;
    best = groups;
    least = time;
  }
  return best;
}

struct Plan {
  WholeImageKernel kernel;
  int numbers = 0;
  int groups = 1;
  std::size_t keys = 0;  // words
  std::size_t values = 0;
  std::size_t sums = 0;

  Plan(WholeImageKernel chosen, long long pixels, int together) : kernel(chosen) {
    if (kernel.kernel == nullptr) return;
    const auto stages = static_cast<std::size_t>((pixels + kernel.keys - 1) / kernel.keys);
    groups = groups_for(pixels, kernel);
    keys = stages * static_cast<std::size_t>(kernel.keys / 8 * kernel.words * 32);
    values = stages * static_cast<std::size_t>(kernel.keys * kernel.planes);
    if (groups > 1) {
      sums = static_cast<std::size_t>(groups) * static_cast<std::size_t>(together + 2) *
             static_cast<std::size_t>(pixels);
    }
  }
  std::size_t floats() const { return keys + values + sums; }
};

constexpr std::size_t range_floats = 4;

}  // namespace

std::optional<WholeImageSearch> whole_image_search(const PatchSearch& search, int together, int divisor,
                                                   const Extent& image) {
  const int patch = static_cast<int>(search.patch.size());
  const long long pixels = static_cast<long long>(image.width) * image.height;
  constexpr long long most_pixels = 1LL << 28;  // beyond which it would take days
  if (search.border == Border::shrink || patch < 3 || patch > most_whole_image_patch ||
      pixels > most_pixels) {
    return std::nullopt;
  }
  const bool has_space = !std::isinf(search.space);
  const bool is_general = search.noise > 0 || search.self == SelfWeight::max;
  if (has_space && is_general) return std::nullopt;
  const auto kernel_for = [&](int factor) {
    const int numbers = factor * together * patch * patch + 4;
    const WholeImageKernel kernel = has_space    ? whole_image_bilateral(together, numbers)
                                    : is_general ? whole_image_general(together, numbers)
                                                 : whole_image_plain(together, numbers);
    return Plan(kernel, pixels, together);
  };
  const Plan halves = kernel_for(1);
  const Plan pairs = kernel_for(3);
  if (halves.kernel.kernel == nullptr) return std::nullopt;

  // Bounds that keep every factor and its square finite; beyond them differences of floats decide.
  constexpr double weakest = 1e-15;
  constexpr double strongest = 1e15;
  WholeImageCall setup{};
  setup.channels = together;
  setup.patch = patch;
  const double scale = std::clamp(std::sqrt(log2_e / divisor) / search.strength, weakest, strongest);
  setup.scale = static_cast<float>(scale);
  for (int i = 0; i < patch; ++i) {
    setup.roots[i] = static_cast<float>(std::sqrt(search.patch[static_cast<std::size_t>(i)] * scale));
  }
  const double middle = search.patch[static_cast<std::size_t>(patch / 2)] * scale;
  const double own = std::min(std::sqrt(log2_e / (2.0 * divisor)) / search.range, strongest);
  setup.centre_root = static_cast<float>(std::hypot(middle, own));
  setup.noise = static_cast<float>(std::min(1e4, 2 * std::pow(search.noise / search.strength, 2) * log2_e));
  setup.space_root = static_cast<float>(std::min(1e3, std::sqrt(log2_e / 2) / search.space));
  setup.self_is_max = search.self == SelfWeight::max;
  setup.halves_allowed = search.precision == Precision::half;

  const auto with_scratch = [setup, border = search.border](const DeviceStageCall& call, const Plan& plan) {
    WholeImageCall of_call = setup;
    of_call.in = {call.in[0], call.image, border};
    of_call.out = call.out;
    of_call.groups = plan.groups;
    float* next = call.scratch.data();
    of_call.range = reinterpret_cast<unsigned*>(next);
    next += range_floats;
    of_call.keys = reinterpret_cast<std::uint32_t*>(next);
    next += plan.keys;
    of_call.values = next;
    of_call.sums = next + plan.values;
    return of_call;
  };
  const auto launch_plan = [with_scratch](const DeviceStageCall& call, int first, const Plan& plan,
                                          WholeImagePrecision precision) {
    if (plan.kernel.kernel == nullptr) return;
    WholeImageCall of_call = with_scratch(call, plan);
    of_call.first_channel = first;
    const int tiles = static_cast<int>(plan.keys / static_cast<std::size_t>(plan.kernel.words * 32));
    const KeyLayout layout{plan.kernel.words, plan.kernel.keys, plan.kernel.planes};
    launch(vectors_kernel, dim3(static_cast<unsigned>(blocks_for(tiles, vector_threads / 32))),
           dim3(vector_threads), 0, call.stream, of_call, precision, layout, tiles);
    const int queries = call.out.rect.width() * call.out.rect.height();
    const dim3 grid(static_cast<unsigned>(blocks_for(queries, plan.kernel.queries)),
                    static_cast<unsigned>(plan.groups));
    launch(plan.kernel.kernel, grid, dim3(static_cast<unsigned>(plan.kernel.threads)), plan.kernel.shared,
           call.stream, of_call, precision);
    if (plan.groups == 1) return;
    launch(join_groups_kernel, dim3(static_cast<unsigned>(blocks_for(queries, join_threads))),
           dim3(join_threads), 0, call.stream, of_call, precision);
  };
  WholeImageSearch result;
  result.scratch = range_floats + std::max(halves.floats(), pairs.floats());
  result.launch = [=](const DeviceStageCall& call, int first) {
    WholeImageCall of_call = with_scratch(call, halves);
    of_call.first_channel = first;
    check(cudaMemsetAsync(of_call.range, 0, range_floats * sizeof(float), handle(call.stream)),
          "clearing the range of values");
    launch(range_kernel, dim3(range_blocks), dim3(range_threads), 0, call.stream, of_call);
    launch_plan(call, first, halves, WholeImagePrecision::halves);
    launch_plan(call, first, pairs, WholeImagePrecision::pairs);
  };
  result.left_undone = [](const DeviceStageCall& call) {
    return reinterpret_cast<const unsigned*>(call.scratch.data()) + 2;
  };
  return result;
}

}  // namespace ungrain::cuda
