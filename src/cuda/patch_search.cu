// Chooses the kernel for a search; the kernel that serves any search; joining of split sums.
#include "cuda/patch_search.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "core/patches.h"
#include "core/window.h"
#include "cpu/exp.h"
#include "cuda/patch_pairs.h"
#include "cuda/patch_search.cuh"
#include "cuda/tuning.h"
#include "cuda/whole_image.h"

namespace ungrain::cuda {
namespace {

// ---- any patch, any number of channels, any border, the whole image

constexpr int most_patch = 31;
constexpr int tile_side = 32;
constexpr int tile_rows_each = 4;  // of a thread
constexpr int any_threads = tile_side * tile_side / tile_rows_each;

struct AnySearchCall {
  PatchSearchCall common;
  int around;                   // of a patch
  bool whole;                   // search of the image, not of a window
  const unsigned* left_undone;  // at 0 there is nothing to do; null: always filters
  float taps[most_patch];
};

// A block owns a tile; for every shift the squared differences of the tile and a halo of the patch's reach
// are summed along rows and then along columns in shared memory.
template <int Channels>
class AnySearchBlock {
 public:
  static std::size_t shared_bytes(int around) {
    const std::size_t side = tile_side + 2 * static_cast<std::size_t>(around);
    return sizeof(float) * (side * side + side * tile_side);
  }

  __device__ AnySearchBlock(const AnySearchCall& call, float* shared)
      : call_(call),
        area_(call.common.out.rect),
        around_(call.around),
        side_(tile_side + 2 * call.around),
        squares_(shared),
        row_sums_(shared + side_ * side_),
        column_(static_cast<int>(threadIdx.x) % tile_side),
        row_(static_cast<int>(threadIdx.x) / tile_side * tile_rows_each),
        left_(area_.x0 + static_cast<int>(blockIdx.x) * tile_side),
        top_(area_.y0 + block_row() * tile_side),
        searched_(call.common.in) {}

  __device__ void filter() {
    if (top_ >= area_.y1) return;
    const int reach = call_.common.reach;
    Rect shifts{-reach, -reach, reach + 1, reach + 1};
    if (call_.whole) {
      const Extent& image = call_.common.in.image;
      shifts = {-(min(left_ + tile_side, area_.x1) - 1), -(min(top_ + tile_side, area_.y1) - 1),
                image.width - left_, image.height - top_};
    }
    for (int image = 0; image < call_.common.images; ++image) {
      searched_ = call_.common.image(image);
      is_own_ = image == call_.common.own_image;
      for (int dy = shifts.y0; dy < shifts.y1; ++dy) {
        for (int dx = shifts.x0; dx < shifts.x1; ++dx) {
          find_squares(dx, dy);
          __syncthreads();
          sum_rows();
          __syncthreads();
          add(dx, dy);
        }
      }
    }
    store();
  }

 private:
  __device__ bool shrinks() const { return call_.common.in.border == Border::shrink; }
  __device__ static bool both_inside(int position, int shift, int n) {
    return position >= 0 && position < n && position + shift >= 0 && position + shift < n;
  }
  __device__ float pixel(const BorderedPlane& image, bool held, int channel, int x, int y) const {
    const float value = held ? image.inside(channel, x, y) : image.at(channel, x, y, 0.0F);
    return call_.common.scaled(value);
  }

  __device__ void find_squares(int dx, int dy) {
    const PatchSearchCall& common = call_.common;
    const int x0 = left_ - around_;
    const int y0 = top_ - around_;
    const bool held = common.in.holds(x0, y0, x0 + side_, y0 + side_);
    const bool other_held = common.in.holds(x0 + dx, y0 + dy, x0 + dx + side_, y0 + dy + side_);
    for (int i = static_cast<int>(threadIdx.x); i < side_ * side_; i += any_threads) {
      const int x = x0 + i % side_;
      const int y = y0 + i / side_;
      float sum = 0;
      const bool counts = !shrinks() || (both_inside(x, dx, common.in.image.width) &&
                                         both_inside(y, dy, common.in.image.height));
      if (counts) {
#pragma unroll
        for (int c = 0; c < Channels; ++c) {
          const float difference = pixel(common.in, held, common.first_channel + c, x, y) -
                                   pixel(searched_, other_held, common.first_channel + c, x + dx, y + dy);
          sum = fmaf(difference, difference, sum);
        }
      }
      squares_[i] = fminf(sum, 1e30F);  // so that no weight of 0 is multiplied by infinity
    }
  }

  __device__ void sum_rows() {
    for (int row = static_cast<int>(threadIdx.x) / tile_side; row < side_; row += any_threads / tile_side) {
      float sum = 0;
      for (int tap = 0; tap <= 2 * around_; ++tap) {
        sum = fmaf(call_.taps[tap], squares_[row * side_ + column_ + tap], sum);
      }
      row_sums_[row * tile_side + column_] = sum;
    }
  }

  // Share of a patch's weights along one axis that belongs to pairs that count.
  __device__ float share(int position, int shift, int n) const {
    float sum = 0;
    for (int tap = 0; tap <= 2 * around_; ++tap) {
      if (both_inside(position - around_ + tap, shift, n)) sum += call_.taps[tap];
    }
    return sum;
  }

  __device__ void add(int dx, int dy) {
    const PatchSearchCall& common = call_.common;
    const int x = left_ + column_;
    const bool only_inside = shrinks() || call_.whole;
    if (x >= area_.x1 || (is_own_ && dx == 0 && dy == 0)) return;
    if (only_inside && !both_inside(x, dx, common.in.image.width)) return;
    const float across = shrinks() ? share(x, dx, common.in.image.width) : 1;
    const float constant = static_cast<float>(dx) * static_cast<float>(dx) * common.space_ratio +
                           static_cast<float>(dy) * static_cast<float>(dy) * common.space_ratio;
#pragma unroll
    for (int k = 0; k < tile_rows_each; ++k) {
      const int y = top_ + row_ + k;
      if (y >= area_.y1) break;
      if (only_inside && !both_inside(y, dy, common.in.image.height)) continue;
      float exponent = 0;
      for (int tap = 0; tap <= 2 * around_; ++tap) {
        exponent = fmaf(call_.taps[tap], row_sums_[(row_ + k + tap) * tile_side + column_], exponent);
      }
      if (shrinks()) exponent /= across * share(y, dy, common.in.image.height);
      exponent = fmaxf(exponent - common.noise, 0.0F) + constant;
      float others[Channels];
#pragma unroll
      for (int c = 0; c < Channels; ++c) {
        others[c] = pixel(searched_, false, common.first_channel + c, x + dx, y + dy);
        const float difference = pixel(common.in, true, common.first_channel + c, x, y) - others[c];
        exponent = fmaf(difference * common.pixel_ratio, difference, exponent);
      }
      const float weight = exp2_fast(-exponent);
      weights_[k] += weight;
      largest_[k] = fmaxf(largest_[k], weight);
#pragma unroll
      for (int c = 0; c < Channels; ++c) values_[c][k] = fmaf(weight, others[c], values_[c][k]);
    }
  }

  __device__ void store() const {
    const PatchSearchCall& common = call_.common;
    const int x = left_ + column_;
    if (x >= area_.x1) return;
#pragma unroll
    for (int k = 0; k < tile_rows_each; ++k) {
      const int y = top_ + row_ + k;
      if (y >= area_.y1) break;
      const float self = self_weight(common.self_is_max, largest_[k]);
#pragma unroll
      for (int c = 0; c < Channels; ++c) {
        const int channel = common.first_channel + c;
        const float own = pixel(common.in, true, channel, x, y);
        common.store(channel, x, y, own, fmaf(self, own, values_[c][k]), weights_[k] + self);
      }
    }
  }

  const AnySearchCall& call_;
  const Rect& area_;
  int around_;
  int side_;
  float* squares_;   // [row][column], a patch's reach around the tile
  float* row_sums_;  // [row][column of the tile]
  int column_;
  int row_;
  int left_;
  int top_;
  BorderedPlane searched_;  // one image of the sequence after the other
  bool is_own_ = true;      // it is the image that is filtered
  float weights_[tile_rows_each] = {};
  float largest_[tile_rows_each] = {};
  float values_[Channels][tile_rows_each] = {};
};

template <int Channels>
__global__ void __launch_bounds__(any_threads) any_search_kernel(const __grid_constant__ AnySearchCall call) {
  extern __shared__ float shared[];
  if (call.left_undone != nullptr && *call.left_undone == 0) return;
  AnySearchBlock<Channels>(call, shared).filter();
}

void launch_any(int channels, const AnySearchCall& call, Stream stream) {
  constexpr void (*kernels[])(AnySearchCall) = {any_search_kernel<1>, any_search_kernel<2>,
                                                any_search_kernel<3>, any_search_kernel<4>};
  const Rect& area = call.common.out.rect;
  const dim3 grid = tall_grid(blocks_for(area.width(), tile_side), blocks_for(area.height(), tile_side));
  launch(kernels[channels - 1], grid, dim3(any_threads), AnySearchBlock<1>::shared_bytes(call.around), stream,
         call);
}

// ---- sums of groups

constexpr int join_threads = 256;

// Sums of a split block: adds each pixel's sums of all groups in their order, and the pixel itself.
__global__ void __launch_bounds__(join_threads)
    join_kernel(const __grid_constant__ PatchSearchCall call, int channels, bool adds_self, int own_columns,
                int own_rows) {
  const SearchRaster raster(call, own_columns, own_rows);
  const int before = (raster.first_split_row - raster.first_row) * raster.across;
  const SearchPlace place(call, raster, before + static_cast<int>(blockIdx.x));
  if (!place.is_split) return;
  const Rect& area = call.out.rect;
  const int kind = own_rows * own_columns;
  const float* const sums = call.sums + place.sums(call, channels, kind);
  const std::ptrdiff_t group = static_cast<std::ptrdiff_t>(channels + 2) * kind;
  const int i = static_cast<int>(blockIdx.y * join_threads + threadIdx.x);
  const int x = place.column * own_columns + i % own_columns;
  const int y = place.row * own_rows + i / own_columns;
  if (i >= kind || x < area.x0 || x >= area.x1 || y < area.y0 || y >= area.y1) return;
  float weights = 0;
  float largest = 0;
  for (int g = 0; g < call.groups; ++g) {
    weights += sums[g * group + i];
    if (call.self_is_max) largest = fmaxf(largest, sums[g * group + (channels + 1) * kind + i]);
  }
  const float self = adds_self ? self_weight(call.self_is_max, largest) : 0;
  for (int c = 0; c < channels; ++c) {
    float values = 0;
    for (int g = 0; g < call.groups; ++g) values += sums[g * group + (1 + c) * kind + i];
    const float own = call.scaled(call.in.inside(call.first_channel + c, x, y));
    call.store(call.first_channel + c, x, y, own, fmaf(self, own, values), weights + self);
  }
}

// ---- which kernel

// Which blocks of an image are split, and into how many groups. Whole blocks come first, as many as fill the
// GPU for some rounds; then pieces, which keep all of it busy to the end. The number of blocks of the whole
// image decides, so that parts of an image are filtered like the whole. One size of GPU is assumed, so that
// bits do not depend on the GPU: the split is made before it is known.
struct Split {
  int first = 0;
  int groups = 1;
};

// The estimated time of a split, in rows of the search.
double time_of(const Split& split, int blocks, const tuning::Split& gpu, int side) {
  const int resident = gpu.resident_blocks();
  const double whole = side + gpu.rows_to_load;
  const double piece = std::ceil(static_cast<double>(side) / split.groups) + gpu.rows_to_load;
  const double pieces = static_cast<double>(blocks - split.first) * split.groups;
  if (split.first == 0) return std::ceil(pieces / resident) * piece;
  // Blocks that start together end half a block apart after some rounds: pieces fill the gaps.
  const double rounds = static_cast<double>(split.first) / resident;
  const double gaps = whole / 2 * std::clamp((rounds - 1) / gpu.rounds_to_spread, 0.0, 1.0);
  const double in_pieces = pieces * piece / resident;
  return rounds * whole + std::max(in_pieces, gaps) + (pieces > 0 ? piece / 2 : 0);
}

Split split_for(int blocks, int side) {
  const tuning::Split& gpu = tuning::split_on(tuning::any_capability);
  const int resident = gpu.resident_blocks();
  Split best{blocks, 1};
  double least = std::ceil(static_cast<double>(blocks) / resident) * (side + gpu.rows_to_load);
  const int most_halves = 2 * blocks / resident;
  for (int halves = most_halves; halves >= std::max(0, most_halves - 3); --halves) {
    for (int groups = 2; groups <= side; ++groups) {
      const Split split{halves * resident / 2, groups};
      const double time = time_of(split, blocks, gpu, side);
      if (time >= least) continue;
      least = time;
      best = split;
    }
  }
  return best;
}

struct Choice {
  PatchSearchKernel kernel;
  bool adds_self = true;
};

constexpr std::size_t most_shared = 200 * 1024;

// The one-sided kernel for a search, if one was compiled for it.
Choice choose_compiled(const PatchSearch& search, int channels_per_weight) {
  if (search.search == whole_image || search.border == Border::shrink) return {};
  const int patch = static_cast<int>(search.patch.size());
  const bool weighs_pixels = !std::isinf(search.range) || !std::isinf(search.space);
  if (weighs_pixels) {
    const bool fits = is_flat(search.patch) && search.noise == 0 && search.self == SelfWeight::one;
    return fits ? Choice{bilateral_search_kernel(channels_per_weight, patch), false} : Choice{};
  }
  if (!is_flat(search.patch)) return {gaussian_search_kernel(channels_per_weight, patch)};
  const bool plain = search.noise == 0 && search.self == SelfWeight::one;
  return {flat_search_kernel(channels_per_weight, patch, plain)};
}

Choice choose(const PatchSearch& search, int channels_per_weight) {
  const Choice choice = choose_compiled(search, channels_per_weight);
  const bool fits =
      choice.kernel.kernel != nullptr && choice.kernel.shared_bytes(search.search / 2) <= most_shared;
  return fits ? choice : Choice{};
}

// The part of the arguments that does not depend on the call. `flat`: the patch's weights are in the scale.
PatchSearchCall settings(const PatchSearch& search, int divisor, bool flat) {
  // Bounds that keep every scaled value and every square finite; beyond them the weights are 0 or 1 anyway.
  constexpr double weakest = 1e-15;
  constexpr double strongest = 1e15;
  constexpr double most = 1e30;
  PatchSearchCall call{};
  call.reach = search.search == whole_image ? 0 : search.search / 2;
  call.groups = 1;
  const double wanted = std::sqrt(log2_e / divisor) / search.strength * (flat ? search.patch.front() : 1);
  call.scale = static_cast<float>(std::clamp(wanted, weakest, strongest));
  call.unscale = 1 / call.scale;
  call.noise = static_cast<float>(std::min(most, 2 * std::pow(search.noise / search.strength, 2) * log2_e));
  call.self_is_max = search.self == SelfWeight::max;
  const double pixel_scale = log2_e / (2.0 * divisor) / search.range / search.range;
  call.pixel_ratio = static_cast<float>(std::min(1e37, pixel_scale / call.scale / call.scale));
  call.space_ratio = static_cast<float>(std::min(1e26, log2_e / 2 / search.space / search.space));
  if (!flat && search.patch.size() <= most_compiled_patch) {
    std::copy(search.patch.begin(), search.patch.end(), call.patch);
  }
  return call;
}

// The image that is filtered and those around it that exist. All lie alike in the ring of a sequence.
void set_images(PatchSearchCall& to, const DeviceStageCall& call, Border border) {
  to.in = {call.at(0, 0), call.image, border};
  to.images = 0;
  for (int offset = -call.reach.before; offset <= call.reach.after; ++offset) {
    const float* const data = call.at(0, offset).data;
    if (data == nullptr) continue;
    if (offset == 0) to.own_image = to.images;
    to.image_data[to.images++] = data;
  }
}

// ---- the stage

struct SearchStage {
  const PatchSearch& search;
  const ImageSpec& spec;
  int channels;  // that share a weight
  int divisor;
};

using Launch = std::function<void(const DeviceStageCall&)>;

Launch any_launch(const SearchStage& of, const std::optional<WholeImageSearch>& products) {
  AnySearchCall any{.common = settings(of.search, of.divisor, false),
                    .around = static_cast<int>(of.search.patch.size()) / 2,
                    .whole = of.search.search == whole_image,
                    .left_undone = nullptr,
                    .taps = {}};
  std::copy(of.search.patch.begin(), of.search.patch.end(), any.taps);
  return [=, border = of.search.border, channels = of.channels](const DeviceStageCall& call) {
    AnySearchCall of_call = any;
    set_images(of_call.common, call, border);
    of_call.common.out = call.out;
    for (int first = 0; first < call.out.count; first += channels) {
      of_call.common.first_channel = first;
      if (products) {
        products->launch(call, first);
        of_call.left_undone = products->left_undone(call);
      }
      launch_any(channels, of_call, call.stream);
    }
  };
}

// Which GPU it will be is not known before the call.
Launch where_shared_suffices(std::size_t bytes, Launch launch, const SearchStage& of) {
  return [=, launch = std::move(launch), otherwise = any_launch(of, std::nullopt)](
             const DeviceStageCall& call) { has_shared(bytes) ? launch(call) : otherwise(call); };
}

void set_pairs(Stage& filter, const SearchStage& of) {
  const PairSearch pairs = pair_search(of.search, of.channels, {of.spec.width, of.spec.height});
  filter.scratch = pairs.scratch(of.spec.height);
  filter.scratch_for = pairs.scratch;
  const PatchSearchCall setup = settings(of.search, of.divisor, is_flat(of.search.patch));
  const Launch launch_pairs = [=, border = of.search.border,
                               channels = of.channels](const DeviceStageCall& call) {
    PatchSearchCall of_call = setup;
    set_images(of_call, call, border);
    of_call.out = call.out;
    of_call.sums = call.scratch.data();
    for (int first = 0; first < call.out.count; first += channels) {
      of_call.first_channel = first;
      pairs.launch(of_call, call.stream);
    }
  };
  filter.launch = where_shared_suffices(pairs.shared_bytes, launch_pairs, of);
}

// Scratch of the one-sided search.
void set_scratch(Stage& filter, const SearchStage& of, const PatchSearchKernel& kernel,
                 const PatchSearchCall& setup) {
  const std::size_t group = static_cast<std::size_t>(of.channels + 2) *
                            static_cast<std::size_t>(kernel.own_rows * kernel.own_columns);
  // Whole rows of blocks, because an area may begin anywhere in a row.
  const int down = blocks_for(of.spec.height, kernel.own_rows);
  const int split_rows = setup.groups > 1 ? down - setup.first_split / setup.blocks_across : 0;
  filter.scratch = static_cast<std::size_t>(split_rows) * static_cast<std::size_t>(setup.blocks_across) *
                   static_cast<std::size_t>(setup.groups) * group;
  if (of.search.radius_t == 0) return;
  // A group for each image, over all blocks that so many rows may touch.
  const std::size_t images = static_cast<std::size_t>(2 * of.search.radius_t + 1);
  filter.scratch_for = [=, across = setup.blocks_across, own_rows = kernel.own_rows,
                        one = filter.scratch](int rows) {
    const auto blocks = static_cast<std::size_t>(across * (rows / own_rows + 2));
    return std::max(one, blocks * images * group);
  };
}

void set_one_sided(Stage& filter, const SearchStage& of, const Choice& choice) {
  const PatchSearchKernel& kernel = choice.kernel;
  PatchSearchCall setup = settings(of.search, of.divisor, is_flat(of.search.patch));
  setup.blocks_across = blocks_for(of.spec.width, kernel.own_columns);
  const Split split =
      split_for(setup.blocks_across * blocks_for(of.spec.height, kernel.own_rows), setup.side());
  setup.first_split = split.first;
  setup.groups = split.groups;
  set_scratch(filter, of, kernel, setup);
  const Launch launch_one_sided = [=, border = of.search.border,
                                   channels = of.channels](const DeviceStageCall& call) {
    PatchSearchCall of_call = setup;
    set_images(of_call, call, border);
    if (of_call.images > 1) {
      of_call.first_split = 0;
      of_call.groups = of_call.images;
    }
    of_call.out = call.out;
    of_call.sums = call.scratch.data();
    const SearchRaster raster(of_call, kernel.own_columns, kernel.own_rows);
    const int blocks = raster.blocks() + (of_call.groups - 1) * raster.split_blocks();
    for (int first = 0; first < call.out.count; first += channels) {
      of_call.first_channel = first;
      launch(kernel.kernel, dim3(static_cast<unsigned>(blocks)), dim3(kernel.threads),
             kernel.shared_bytes(of_call.reach), call.stream, of_call);
      if (of_call.groups == 1 || raster.split_blocks() == 0) continue;
      const int pixels = kernel.own_columns * kernel.own_rows;
      const dim3 joined(static_cast<unsigned>(raster.split_blocks()),
                        static_cast<unsigned>(blocks_for(pixels, join_threads)));
      launch(join_kernel, joined, dim3(join_threads), 0, call.stream, of_call, channels, choice.adds_self,
             kernel.own_columns, kernel.own_rows);
    }
  };
  filter.launch = where_shared_suffices(kernel.shared_bytes(setup.reach), launch_one_sided, of);
}

void set_any(Stage& filter, const SearchStage& of) {
  std::optional<WholeImageSearch> products;
  if (of.search.search == whole_image) {
    products = whole_image_search(of.search, of.channels, of.divisor, {of.spec.width, of.spec.height});
  }
  if (products) filter.scratch = products->scratch;
  filter.launch = any_launch(of, products);
}

}  // namespace

Pipeline patch_search_cuda(std::string name, const PatchSearch& search, const ImageSpec& spec) {
  const int channels_per_weight = ungrain::channels_per_weight(search.colour, spec.colour_channels());
  const SearchStage of{search, spec, channels_per_weight,
                       difference_divisor(search.colour, channels_per_weight)};
  Stage filter{.name = std::move(name),
               .reach = search_reach(search.search, static_cast<int>(search.patch.size()), search.radius_t),
               .planes = spec.colour_channels()};
  if (searches_pairs(search, channels_per_weight)) {
    set_pairs(filter, of);
  } else if (const Choice choice = choose(search, channels_per_weight); choice.kernel.kernel != nullptr) {
    set_one_sided(filter, of, choice);
  } else {
    set_any(filter, of);
  }
  Pipeline pipeline =
      in_colour_mode(search.colour, {std::move(filter)}, spec.white(), search.border == Border::wrap);
  pipeline.slow_border = Border::shrink;
  return pipeline;
}

}  // namespace ungrain::cuda
