// Chooses the kernel for a search that visits each pair of pixels once, and joins the sums that its blocks
// leave.
#include "cuda/patch_pairs.h"

#include <algorithm>
#include <cmath>

#include "core/patches.h"
#include "cuda/patch_pairs.cuh"
#include "cuda/tuning.h"

namespace ungrain::cuda {
namespace {

constexpr int join_threads = 128;
constexpr int join_rows = 2;  // of a thread

struct JoinCall {
  PatchSearchCall search;
  PairRaster raster;
  int own_columns;
  int own_rows;
  int columns;  // of a block's sums
  int plane;    // from one kind of sums to the next
  int each;     // from one group to the next
};

// A position along one axis within blocks that follow each other every `each` pixels.
struct InBlock {
  int block;
  int offset;

  // position = begin + ahead; begin is the same for all threads.
  __device__ InBlock(int begin, int ahead, int each) : block(begin / each) {
    offset = begin - block * each + ahead;
    while (offset >= each) {
      offset -= each;
      ++block;
    }
  }
};

// Adds each pixel's sums of all blocks and groups in their order, and the pixel itself. Blocks leave sums
// from their first own row on, and from the search's reach to the left of their first own column on: the
// first of two blocks with sums for a pixel has that pixel at its lower or right end.
template <int Channels, bool HasLargest>
__global__ void __launch_bounds__(join_threads) join_pairs_kernel(const __grid_constant__ JoinCall call) {
  const PatchSearchCall& search = call.search;
  const Rect& area = search.out.rect;
  const auto thread = static_cast<int>(threadIdx.x);
  const int x0 = area.x0 + static_cast<int>(blockIdx.x) * join_threads;
  const int x = x0 + thread;
  if (x >= area.x1) return;
  const InBlock column(x0 + 2 * search.reach, thread, call.own_columns);
  const bool has_left = column.offset < 2 * search.reach;
#pragma unroll
  for (int i = 0; i < join_rows; ++i) {
    const int y = area.y0 + block_row() * join_rows + i;
    if (y >= area.y1) return;
    const InBlock row(y + search.reach, 0, call.own_rows);
    const bool has_upper = row.offset < search.reach;
    float weights = 0;
    float largest = 0;
    float values[Channels] = {};
    const auto add = [&](int up, int left) {
      const int block = (row.block - up - call.raster.first_row) * call.raster.across + column.block - left -
                        call.raster.first_column;
      const int sum =
          (row.offset + up * call.own_rows) * call.columns + column.offset + left * call.own_columns;
      const float* from =
          search.sums + static_cast<std::ptrdiff_t>(call.raster.sums_of(block)) * call.each + sum;
      const int groups = call.raster.groups_of(block);
#pragma unroll 1
      for (int group = 0; group < groups; ++group, from += call.each) {
        weights += from[0];
#pragma unroll
        for (int c = 0; c < Channels; ++c) values[c] += from[(1 + c) * call.plane];
        if constexpr (HasLargest) largest = fmaxf(largest, from[(1 + Channels) * call.plane]);
      }
    };
    if (has_upper && has_left) add(1, 1);
    if (has_upper) add(1, 0);
    if (has_left) add(0, 1);
    add(0, 0);
    const float self = self_weight(HasLargest && search.self_is_max, largest);
#pragma unroll
    for (int c = 0; c < Channels; ++c) {
      const float own = search.scaled(search.in.inside(search.first_channel + c, x, y));
      search.store(search.first_channel + c, x, y, own, fmaf(self, own, values[c]), weights + self);
    }
  }
}

template <int Channels>
auto join_kernel_for(bool has_largest) {
  return has_largest ? join_pairs_kernel<Channels, true> : join_pairs_kernel<Channels, false>;
}

PairSearchKernel kernel_for(const PatchSearch& search, int channels) {
  const int patch = static_cast<int>(search.patch.size());
  const bool plain = search.noise == 0 && search.self == SelfWeight::one;
  if (patch == 1 && plain && std::isinf(search.range)) return spatial_pair_kernel(channels);
  if (!std::isinf(search.range) || !std::isinf(search.space)) {
    return is_flat(search.patch) && plain ? bilateral_pair_kernel(channels, patch) : PairSearchKernel{};
  }
  return is_flat(search.patch) ? flat_pair_kernel(channels, patch, plain)
                               : gaussian_pair_kernel(channels, patch);
}

// The time of blocks that begin in this order, each as soon as there is room for it: `whole` ones, then
// pieces.
double time_in_turn(int whole, double whole_time, int pieces, double piece_time, int resident) {
  const int rounds = whole / resident;
  const int late = whole % resident;  // places where the last whole block ends a round later
  const double begin = rounds * whole_time;
  const double end = begin + (late > 0 ? whole_time : 0);
  // The other places take pieces while the late ones are still busy.
  const auto before_end = static_cast<int>((end - begin) / piece_time);
  const int in_gaps = std::min(pieces, (resident - late) * before_end);
  const int after = pieces - in_gaps;
  if (after == 0)
    return std::max(end, begin + std::ceil(static_cast<double>(pieces) / (resident - late)) * piece_time);
  return end + std::ceil(static_cast<double>(after) / resident) * piece_time;
}

// How the rows of the search are split, where an image has too few blocks to keep a GPU busy to the end. The
// size of the whole image decides, so that parts of it are filtered like the whole. One size of GPU is
// assumed, so that bits do not depend on the GPU.
PairSplit split_for(int across, int down, int rows) {
  const tuning::Split& gpu = tuning::split_on(tuning::any_capability);
  const int resident = gpu.resident_blocks();
  const int blocks = across * down;
  const double rounds = static_cast<double>(blocks) / resident;
  const auto time_of = [&](int groups) {
    return std::ceil(static_cast<double>(rows) / groups) + gpu.rows_to_load;
  };

  // All blocks alike.
  PairSplit best{.first_row = 0, .groups = 1};
  double least = 0;
  for (int groups = 1; groups <= rows; ++groups) {
    // After some rounds blocks no longer end together.
    const double of_pieces = rounds * groups;
    const double whole_rounds = of_pieces < gpu.rounds_to_spread ? std::ceil(of_pieces) : of_pieces + 0.5;
    const double time = whole_rounds * time_of(groups);
    if (groups > 1 && time >= least) continue;
    least = time;
    best.groups = groups;
  }
  if (best.groups > 1 || rounds < 1 || rounds > gpu.most_rounds_in_step) return best;

  // Whole blocks, then the last rows of blocks in pieces, which fill the last round. Sums of pieces are
  // joined.
  constexpr int most_pieces = 3;  // more of them take longer than estimated
  constexpr double rows_to_join = 1;
  const double whole_time = time_of(1) + rows_to_join;
  least = gpu.worthwhile * std::ceil(rounds) * whole_time;
  for (int first_row = std::max(0, down - 2 * resident / across); first_row < down; ++first_row) {
    for (int groups = 2; groups <= most_pieces; ++groups) {
      const int pieces = (down - first_row) * across * groups;
      const double time =
          time_in_turn(first_row * across, whole_time, pieces, time_of(groups) + rows_to_join, resident);
      if (time >= least) continue;
      least = time;
      best = {.first_row = first_row, .groups = groups};
    }
  }
  return best;
}

// What every GPU has for which this is compiled.
constexpr std::size_t most_shared = 99 * 1024;

}  // namespace

bool searches_pairs(const PatchSearch& search, int channels_per_weight) {
  if (search.search == whole_image || search.search == 1) return false;
  if (search.border == Border::shrink || search.radius_t > 0) return false;
  const PairSearchKernel kernel = kernel_for(search, channels_per_weight);
  const int reach = search.search / 2;
  if (kernel.kernel == nullptr || kernel.shared_bytes(reach) > most_shared) return false;
  // A pixel has sums of at most two blocks along either axis.
  return reach <= kernel.own_rows && 2 * reach <= kernel.own_columns;
}

PairSearch pair_search(const PatchSearch& search, int channels_per_weight, const Extent& image) {
  const PairSearchKernel kernel = kernel_for(search, channels_per_weight);
  const int reach = search.search / 2;
  const auto raster_of = [=](const Rect& area, const PairSplit& split) {
    return PairRaster(area, reach, kernel.own_columns, kernel.own_rows, split);
  };
  const PairSumsLayout layout(kernel.own_columns, kernel.own_rows, reach, kernel.kinds);
  const Rect whole{0, 0, image.width, image.height};
  const PairRaster of_image = raster_of(whole, {});
  const PairSplit split = split_for(of_image.across, of_image.down, reach + 1);
  const int most_sums = raster_of(whole, split).sums();

  PairSearch pairs;
  pairs.shared_bytes = kernel.shared_bytes(reach);
  pairs.scratch = [=, across = of_image.across](int rows) {
    // So many rows may touch one row of blocks more, depending on where they begin.
    const int down = rows / kernel.own_rows + 2 + blocks_for(reach, kernel.own_rows);
    const std::size_t sums = static_cast<std::size_t>(split.groups) * static_cast<std::size_t>(across) *
                             static_cast<std::size_t>(down);
    return static_cast<std::size_t>(layout.each()) * std::min(sums, static_cast<std::size_t>(most_sums));
  };
  pairs.launch = [=](const PatchSearchCall& call, Stream stream) {
    PatchSearchCall of_call = call;
    of_call.first_split = split.first_row;
    of_call.groups = split.groups;
    const Rect& area = call.out.rect;
    const PairRaster raster = raster_of(area, split);
    launch(kernel.kernel, dim3(static_cast<unsigned>(raster.sums())), dim3(kernel.threads),
           kernel.shared_bytes(reach), stream, of_call);
    const JoinCall join{.search = of_call,
                        .raster = raster,
                        .own_columns = kernel.own_columns,
                        .own_rows = kernel.own_rows,
                        .columns = layout.columns,
                        .plane = static_cast<int>(layout.plane()),
                        .each = static_cast<int>(layout.each())};
    const bool has_largest = kernel.kinds > 1 + channels_per_weight;
    const auto join_kernel =
        channels_per_weight == 1 ? join_kernel_for<1>(has_largest) : join_kernel_for<3>(has_largest);
    const dim3 grid = tall_grid(blocks_for(area.width(), join_threads), blocks_for(area.height(), join_rows));
    launch(join_kernel, grid, dim3(join_threads), 0, stream, join);
  };
  return pairs;
}

}  // namespace ungrain::cuda
