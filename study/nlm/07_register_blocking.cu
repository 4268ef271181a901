// A thread filters several rows of a column: their patches' rows overlap, so that its own pixels stay in
// registers, each pixel it compares with is read once for all of them, and a sum along the column goes on
// from row to row, one square added and one taken away. (Squares of whole numbers below 256 add up exactly;
// the product, which takes any floats, never subtracts.) A warp is 32 columns wide, of which the three on
// either side only serve their neighbours' patches. Blocks are as many warps high as the block's side says.
//
// Three steps of it: sums along rows through shared memory, where the block waits; between the warp's lanes,
// which no one waits for; and with the GPU's approximate exponential.
#include "study/nlm/nlm.cuh"
#include "study/nlm/rungs.h"

namespace ungrain::study {
namespace {

constexpr int lanes = 32;
constexpr int own_lanes = lanes - 2 * patch_reach;

enum class Step { shared_sums, lane_sums, fast_exponential };

// From the sums along columns, a row's of all lanes, to those of whole patches; of use in the own lanes.
// `lines` is shared memory: Rows lines of every warp, and patch_reach before the first and after the last.
template <int Rows>
__device__ void sum_through_shared(float (&sums)[Rows], float* lines) {
  float* own = lines + patch_reach + thread_y() * Rows * lanes + thread_x();
#pragma unroll
  for (int row = 0; row < Rows; ++row) own[row * lanes] = sums[row];
  __syncthreads();
#pragma unroll
  for (int row = 0; row < Rows; ++row) {
    float sum = 0;
#pragma unroll
    for (int k = -patch_reach; k <= patch_reach; ++k) sum += own[row * lanes + k];
    sums[row] = sum;
  }
  __syncthreads();
}

template <int Rows>
__device__ void sum_between_lanes(float (&sums)[Rows]) {
  constexpr unsigned all = 0xffffffffU;
#pragma unroll
  for (int row = 0; row < Rows; ++row) {
    float sum = sums[row];
#pragma unroll
    for (int k = 1; k <= patch_reach; ++k) {
      sum += __shfl_up_sync(all, sums[row], k) + __shfl_down_sync(all, sums[row], k);
    }
    sums[row] = sum;
  }
}

template <int Rows, Step Version>
__global__ void register_blocking_kernel(Picture picture, NlmFactors factors) {
  extern __shared__ float tile[];
  constexpr int patch_rows = Rows + 2 * patch_reach;  // that this thread's patches cover
  const int radius = factors.radius;
  const int stride = lanes + 2 * radius;
  const int tile_rows = block_rows() * Rows + 2 * (radius + patch_reach);
  const int left = static_cast<int>(blockIdx.x) * own_lanes - patch_reach;  // the first lane's column
  const int top = first_row() * Rows;
  load_tile(picture, left - radius, top - patch_reach - radius, stride, tile_rows, tile, stride);
  __syncthreads();
  [[maybe_unused]] float* lines = tile + stride * tile_rows;
  // This thread's column where its first patch begins.
  const float* column = tile + (thread_y() * Rows + radius) * stride + thread_x() + radius;
  float own[patch_rows];
#pragma unroll
  for (int row = 0; row < patch_rows; ++row) own[row] = column[row * stride];
  SearchMean means[Rows];
  for (int dy = -radius; dy <= radius; ++dy) {
    for (int dx = -radius; dx <= radius; ++dx) {
      if (dx == 0 && dy == 0) continue;
      float other[patch_rows];
      float squares[patch_rows];
#pragma unroll
      for (int row = 0; row < patch_rows; ++row) {
        other[row] = column[(row + dy) * stride + dx];
        squares[row] = (other[row] - own[row]) * (other[row] - own[row]);
      }
      float sums[Rows];
      sums[0] = 0;
#pragma unroll
      for (int row = 0; row < patch_side; ++row) sums[0] += squares[row];
#pragma unroll
      for (int row = 1; row < Rows; ++row) {
        sums[row] = sums[row - 1] + squares[row + patch_side - 1] - squares[row - 1];
      }
      if constexpr (Version == Step::shared_sums) {
        sum_through_shared(sums, lines);
      } else {
        sum_between_lanes(sums);
      }
#pragma unroll
      for (int row = 0; row < Rows; ++row) {
        const float weight = Version == Step::fast_exponential ? __expf(factors.factor * sums[row])
                                                               : factors.weight(sums[row]);
        means[row].add(weight, other[row + patch_reach]);
      }
    }
  }
  if (thread_x() < patch_reach || thread_x() >= lanes - patch_reach) return;
  const int x = left + thread_x();
#pragma unroll
  for (int row = 0; row < Rows; ++row) {
    const int y = top + thread_y() * Rows + row;
    if (in_picture(picture, x, y)) {
      picture.out[y * picture.width + x] = means[row].value(own[row + patch_reach]);
    }
  }
}

template <Step Version>
auto kernel_for(int rows) {
  switch (rows) {
    case 2:
      return register_blocking_kernel<2, Version>;
    case 4:
      return register_blocking_kernel<4, Version>;
    default:
      return register_blocking_kernel<8, Version>;
  }
}

template <Step Version>
std::optional<Prepared> prepare(const RungCall& call) {
  const int warps = call.shape.side;
  const int rows = warps * call.shape.tiling;
  const int radius = call.strengths.radius;
  const int tile_floats = (lanes + 2 * radius) * (rows + 2 * search_reach(call.strengths));
  const int line_floats = Version == Step::shared_sums ? rows * lanes + 2 * patch_reach : 0;
  const std::size_t shared = sizeof(float) * static_cast<std::size_t>(tile_floats + line_floats);
  const auto kernel = kernel_for<Version>(call.shape.tiling);
  const auto use = kernel_use(kernel, lanes * warps, shared);
  if (!use) return {};
  const Picture picture = call.device;
  const dim3 grid(static_cast<unsigned>(cuda::blocks_for(picture.width, own_lanes)),
                  static_cast<unsigned>(cuda::blocks_for(picture.height, rows)));
  const dim3 block(lanes, static_cast<unsigned>(warps));
  const auto enqueue = [=, factors = NlmFactors(call.strengths)] {
    cuda::launch(kernel, grid, block, shared, Stream{}, picture, factors);
  };
  return Prepared{.enqueue = enqueue, .use = use};
}

}  // namespace

std::vector<Rung> nlm_register_blocking() {
  return {{.name = "register blocking",
           .paper = "ours",
           .idea = "N rows a thread: sums along columns in registers, along rows through shared memory",
           .shapes = Shapes::tilings,
           .prepare = prepare<Step::shared_sums>},
          {.name = "sums between lanes",
           .paper = "ours",
           .idea = "register blocking with the sums along rows between a warp's lanes",
           .shapes = Shapes::tilings,
           .prepare = prepare<Step::lane_sums>},
          {.name = "fast exponential",
           .paper = "ours",
           .idea = "sums between lanes with the approximate exponential",
           .shapes = Shapes::tilings,
           .prepare = prepare<Step::fast_exponential>}};
}

}  // namespace ungrain::study
