// The bilateral grid on a GPU. A block owns a tile of cells and keeps the cells that reach it in shared
// memory, a range of levels at a time: a thread adds the pixels of its cell (no atomics: the sums have one
// order), the three blurs run in place, and the pixels whose level is in the range are interpolated.
#include <algorithm>

#include "cuda/launch.cuh"
#include "cuda/load.cuh"
#include "cuda/warp.cuh"
#include "methods/bilateral/bilateral.h"
#include "methods/bilateral/grid.h"
#include "ungrain/error.h"

namespace ungrain {
namespace {

using cuda::BorderedPlane;

constexpr int tile_cells = 16;
// Levels after the blur; pixels between them are interpolated. As many as let a multiprocessor hold two
// blocks.
constexpr int levels_kept = 15;
constexpr int most_space_reach = 6;
constexpr int range_reach = 4;  // both as BilateralGrid fits them
constexpr int levels_held = levels_kept + 2 * range_reach;

struct GridCall {
  BorderedPlane in;
  Planes out;
  int plane;
  int cell;
  float half_inverse_cell;
  float inverse_level;
  float lowest;
  float highest;
  float space_taps[2 * most_space_reach + 1];
  float range_taps[2 * range_reach + 1];

  __device__ bool holds(float value) const { return value >= lowest && value <= highest; }
  __device__ int level_of(float value) const { return __float2int_rd(value * inverse_level); }
};

template <int SpaceReach>
class GridBlock {
 public:
  static constexpr int read_side = tile_cells + 2;         // cells between which pixels are interpolated
  static constexpr int side = read_side + 2 * SpaceReach;  // before the blur
  static constexpr int pitch = side + 1;                   // odd: rows lie in different banks
  // Distance from level to level: a multiple of the number of banks, so that threads on neighbouring cells
  // use different banks at any levels.
  static constexpr int plane = (side * pitch + 15) / 16 * 16;
  static constexpr int warps = (side * side + 31) / 32;
  static constexpr int threads = 32 * warps;  // one for each cell
  static constexpr std::size_t shared_bytes = sizeof(float2) * plane * levels_held;

  __device__ GridBlock(const GridCall& call, float2* shared)
      : call_(call),
        cells_(shared),
        column0_(cell_of(call.out.rect.x0, call.cell) + static_cast<int>(blockIdx.x) * tile_cells),
        row0_(cell_of(call.out.rect.y0, call.cell) + cuda::block_row() * tile_cells) {
    const Rect& out = call.out.rect;
    tile_ = {max(out.x0, column0_ * call.cell), max(out.y0, row0_ * call.cell),
             min(out.x1, (column0_ + tile_cells) * call.cell), min(out.y1, (row0_ + tile_cells) * call.cell)};
    const int x0 = (column0_ - 1 - SpaceReach) * call.cell;
    const int y0 = (row0_ - 1 - SpaceReach) * call.cell;
    held_ = call.in.holds(x0, y0, x0 + side * call.cell, y0 + side * call.cell);
  }

  // The range of levels of the tile's pixels, over the whole block; without any: first > last.
  __device__ void find_levels(int* range) const {
    if (threadIdx.x == 0) {
      range[0] = INT_MAX;
      range[1] = INT_MIN;
    }
    __syncthreads();
    int first = INT_MAX;
    int last = INT_MIN;
    for_pixels([&](int x, int y) {
      const float value = call_.in.inside(call_.plane, x, y);
      if (!call_.holds(value)) {
        call_.out.at(call_.plane, x, y) = value;
        return;
      }
      first = min(first, call_.level_of(value));
      last = max(last, call_.level_of(value));
    });
    first = cuda::warp_least(first);
    last = cuda::warp_greatest(last);
    if (threadIdx.x % 32 == 0) {
      atomicMin(&range[0], first);
      atomicMax(&range[1], last);
    }
    __syncthreads();
  }

  // Filters the pixels whose level is in [first, first + levels_kept - 1), none of them above `last`.
  __device__ void filter(int first, int last) {
    const int kept = min(levels_kept, last - first + 2);
    count(first, kept + 2 * range_reach);
    __syncthreads();
    blur_levels(kept);
    __syncthreads();
    blur_rows(kept);
    __syncthreads();
    blur_columns(kept);
    __syncthreads();
    read(first);
    __syncthreads();
  }

 private:
  template <class Visit>
  __device__ void for_pixels(Visit visit) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int y = tile_.y0 + static_cast<int>(threadIdx.x) / 32; y < tile_.y1; y += warps) {
      for (int x = tile_.x0 + lane; x < tile_.x1; x += 32) visit(x, y);
    }
  }

  __device__ static void add_share(float2& cell, float share, float value) {
    const float2 now = cell;
    cell = make_float2(now.x + share, fmaf(share, value, now.y));
  }

  // Every thread adds the pixels of its cell, row by row.
  __device__ void count(int first, int levels) {
    const int i = static_cast<int>(threadIdx.x);
    if (i >= side * side) return;
    const int at = i / side * pitch + i % side;
    for (int level = 0; level < levels; ++level) cells_[level * plane + at] = make_float2(0, 0);
    const int x0 = (column0_ - 1 - SpaceReach + i % side) * call_.cell;
    const int y0 = (row0_ - 1 - SpaceReach + i / side) * call_.cell;
    const int lowest_level = first - range_reach;
    const auto add = [&](float value) {
      if (!call_.holds(value)) return;
      const float position = value * call_.inverse_level;
      const int level = __float2int_rd(position);
      const int index = level - lowest_level;
      if (index < -1 || index >= levels) return;
      const float after = position - static_cast<float>(level);
      float2* const place = cells_ + index * plane + at;
      if (index >= 0) add_share(*place, 1 - after, value);
      if (index + 1 < levels) add_share(place[plane], after, value);
    };
    if (held_) {
      const float* row = &call_.in.planes.at(call_.plane, x0, y0);
      for (int y = 0; y < call_.cell; ++y) {
        for (int x = 0; x < call_.cell; ++x) add(row[x]);
        row += call_.in.planes.row_stride;
      }
      return;
    }
    const bool shrink = call_.in.border == Border::shrink;
    for (int y = y0; y < y0 + call_.cell; ++y) {
      for (int x = x0; x < x0 + call_.cell; ++x) {
        if (shrink && (x < 0 || y < 0 || x >= call_.in.image.width || y >= call_.in.image.height)) continue;
        add(call_.in.at(call_.plane, x, y, 1e30F));
      }
    }
  }

  // Blurs along a line of cells `step` apart, in place, through a window in registers.
  template <int Reach>
  __device__ static void blur(float2* line, int step, int count, const float* taps) {
    float2 window[2 * Reach + 1];
#pragma unroll
    for (int k = 0; k < 2 * Reach; ++k) window[k] = line[k * step];
    for (int i = 0; i < count; ++i) {
      window[2 * Reach] = line[(i + 2 * Reach) * step];
      float2 sum = make_float2(0, 0);
#pragma unroll
      for (int k = 0; k <= 2 * Reach; ++k) {
        sum.x = fmaf(taps[k], window[k].x, sum.x);
        sum.y = fmaf(taps[k], window[k].y, sum.y);
      }
      line[i * step] = sum;
#pragma unroll
      for (int k = 0; k < 2 * Reach; ++k) window[k] = window[k + 1];
    }
  }

  __device__ void blur_levels(int kept) {
    const int i = static_cast<int>(threadIdx.x);
    if (i >= side * side) return;
    blur<range_reach>(cells_ + i / side * pitch + i % side, plane, kept, call_.range_taps);
  }

  __device__ void blur_rows(int kept) {
    for (int line = static_cast<int>(threadIdx.x); line < kept * side; line += threads) {
      blur<SpaceReach>(cells_ + line / side * plane + line % side * pitch, 1, read_side, call_.space_taps);
    }
  }

  __device__ void blur_columns(int kept) {
    for (int line = static_cast<int>(threadIdx.x); line < kept * read_side; line += threads) {
      blur<SpaceReach>(cells_ + line / read_side * plane + line % read_side, pitch, read_side,
                       call_.space_taps);
    }
  }

  // between_cells() of a position in the tile, without a division by the cell.
  __device__ CellPosition between(int position) const {
    int first = __float2int_rd((static_cast<float>(2 * position + 1)) * call_.half_inverse_cell);
    int after = 2 * position - (call_.cell - 1) - 2 * call_.cell * first;
    if (after < 0) {
      --first;
      after += 2 * call_.cell;
    }
    return {first, after};
  }

  __device__ void read(int first) {
    for_pixels([&](int x, int y) {
      const float value = call_.in.inside(call_.plane, x, y);
      if (!call_.holds(value)) return;
      const float position = value * call_.inverse_level;
      const int level = __float2int_rd(position);
      const int index = level - first;
      if (index < 0 || index >= levels_kept - 1) return;
      const CellPosition column = between(x - column0_ * call_.cell);
      const CellPosition row = between(y - row0_ * call_.cell);
      const float right = static_cast<float>(column.after) * call_.half_inverse_cell;
      const float below = static_cast<float>(row.after) * call_.half_inverse_cell;
      const float above = position - static_cast<float>(level);
      const float2* const at = cells_ + index * plane + (row.first + 1) * pitch + (column.first + 1);
      float weights = 0;
      float values = 0;
#pragma unroll
      for (int corner = 0; corner < 4; ++corner) {
        const float share = ((corner & 1) != 0 ? right : 1 - right) * ((corner & 2) != 0 ? below : 1 - below);
        const float2 lower = at[(corner & 1) + (corner >> 1) * pitch];
        const float2 upper = at[(corner & 1) + (corner >> 1) * pitch + plane];
        weights = fmaf(share, fmaf(above, upper.x, (1 - above) * lower.x), weights);
        values = fmaf(share, fmaf(above, upper.y, (1 - above) * lower.y), values);
      }
      call_.out.at(call_.plane, x, y) = values / weights;
    });
  }

  const GridCall& call_;
  float2* cells_;  // [level][row][column]: weights and weighted values
  int column0_;    // the tile's first cell
  int row0_;
  Rect tile_;
  bool held_;
};

template <int SpaceReach>
__global__ void __launch_bounds__(GridBlock<SpaceReach>::threads)
    grid_kernel(const __grid_constant__ GridCall call) {
  extern __shared__ float2 shared[];
  __shared__ int range[2];
  GridBlock<SpaceReach> block(call, shared);
  block.find_levels(range);
  for (int first = range[0]; first <= range[1]; first += levels_kept - 1) block.filter(first, range[1]);
}

template <int SpaceReach>
void launch_for(const GridCall& call, dim3 grid, Stream stream) {
  using Block = GridBlock<SpaceReach>;
  cuda::launch(grid_kernel<SpaceReach>, grid, dim3(Block::threads), Block::shared_bytes, stream, call);
}

void launch_grid(int space_reach, const GridCall& call, dim3 grid, Stream stream) {
  switch (space_reach) {
    case 1:
      return launch_for<1>(call, grid, stream);
    case 2:
      return launch_for<2>(call, grid, stream);
    case 3:
      return launch_for<3>(call, grid, stream);
    case 4:
      return launch_for<4>(call, grid, stream);
    case 5:
      return launch_for<5>(call, grid, stream);
    case most_space_reach:
      return launch_for<most_space_reach>(call, grid, stream);
    default:
      throw Error(ErrorCode::internal, "the grid's window is larger than its kernels know");
  }
}

}  // namespace

Pipeline bilateral_grid_cuda(const BilateralParams& params, const ImageSpec& spec) {
  const BilateralGrid grid(params, spec);
  GridCall setup{};
  setup.cell = grid.cell;
  setup.half_inverse_cell = 0.5F / static_cast<float>(grid.cell);
  setup.inverse_level = static_cast<float>(1 / grid.level);
  setup.lowest = static_cast<float>(grid.lowest);
  setup.highest = static_cast<float>(grid.highest);
  if (grid.range_reach() != range_reach || grid.space_reach() > most_space_reach) {
    throw Error(ErrorCode::internal, "the grid's window is larger than its kernels know");
  }
  std::copy(grid.space_taps.begin(), grid.space_taps.end(), setup.space_taps);
  std::copy(grid.range_taps.begin(), grid.range_taps.end(), setup.range_taps);
  const auto launch = [setup, reach = grid.space_reach(),
                       border = params.border](const DeviceStageCall& call) {
    GridCall of_call = setup;
    of_call.in = {call.in[0], call.image, border};
    of_call.out = call.out;
    const Rect& area = call.out.rect;
    const auto tiles = [&](int begin, int end) {
      const int cells = cell_of(end - 1, setup.cell) - cell_of(begin, setup.cell) + 1;
      return cuda::blocks_for(cells, tile_cells);
    };
    for (of_call.plane = 0; of_call.plane < call.out.count; ++of_call.plane) {
      launch_grid(reach, of_call, cuda::tall_grid(tiles(area.x0, area.x1), tiles(area.y0, area.y1)),
                  call.stream);
    }
  };
  return {.stages = {{.name = "grid",
                      .reach = {.x = grid.reach(), .y = grid.reach()},
                      .planes = spec.colour_channels(),
                      .launch = launch}},
          .wraps = params.border == Border::wrap};
}

}  // namespace ungrain
