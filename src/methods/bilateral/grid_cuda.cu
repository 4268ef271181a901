// The bilateral grid on a GPU. A block owns a tile of cells and keeps the corners around it in shared memory, a
// range of levels at a time: each corner gathers the pixels around it (no atomics: its sums have one order), the
// three blurs run in place, and the pixels whose level is in the range are read back.
#include <algorithm>

#include "cuda/launch.cuh"
#include "cuda/load.cuh"
#include "methods/bilateral/bilateral.h"
#include "methods/bilateral/grid.h"

namespace ungrain {
namespace {

using cuda::BorderedPlane;

constexpr int tile_cells = 16;
constexpr int levels_kept = 16;  // after the blur; pixels of one less are read back
constexpr int threads = 512;
constexpr int most_space_taps = 15;
constexpr int most_range_taps = 11;

struct GridCall {
  BorderedPlane in;
  Planes out;
  int plane;
  int cell;
  float inverse_cell;
  float inverse_level;
  float lowest;
  float highest;
  int space_reach;
  int range_reach;
  float space_taps[most_space_taps];
  float range_taps[most_range_taps];

  // Corners a side, before the blur.
  __host__ __device__ int side() const { return tile_cells + 1 + 2 * space_reach; }
  __host__ __device__ int levels() const { return levels_kept + 2 * range_reach; }
  __device__ bool holds(float value) const { return value >= lowest && value <= highest; }
  __device__ int level_of(float value) const { return __float2int_rd(value * inverse_level); }
};

__device__ int floor_to_corner(int position, int cell) { return corner_before(position, cell); }

class GridBlock {
 public:
  __device__ GridBlock(const GridCall& call, float* shared)
      : call_(call),
        side_(call.side()),
        weights_(shared),
        values_(shared + side_ * side_ * call.levels()),
        column0_(floor_to_corner(call.out.rect.x0, call.cell) + static_cast<int>(blockIdx.x) * tile_cells),
        row0_(floor_to_corner(call.out.rect.y0, call.cell) + static_cast<int>(blockIdx.y) * tile_cells) {
    const Rect& out = call.out.rect;
    tile_ = {max(out.x0, column0_ * call.cell), max(out.y0, row0_ * call.cell),
             min(out.x1, (column0_ + tile_cells) * call.cell), min(out.y1, (row0_ + tile_cells) * call.cell)};
    const int x0 = (column0_ - call.space_reach - 1) * call.cell;
    const int y0 = (row0_ - call.space_reach - 1) * call.cell;
    const int pixels = (side_ + 1) * call.cell;
    held_ = call.in.holds(x0, y0, x0 + pixels, y0 + pixels);
  }

  // The levels of the tile's pixels, over the whole block; none: first > last.
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
    first = __reduce_min_sync(0xffffffffU, first);
    last = __reduce_max_sync(0xffffffffU, last);
    if (threadIdx.x % 32 == 0) {
      atomicMin(&range[0], first);
      atomicMax(&range[1], last);
    }
    __syncthreads();
  }

  // The pixels whose level is in [first, first + levels_kept - 1).
  __device__ void filter(int first) {
    gather(first);
    __syncthreads();
    blur_levels();
    __syncthreads();
    blur_rows();
    __syncthreads();
    blur_columns();
    __syncthreads();
    read(first);
    __syncthreads();
  }

 private:
  template <class Visit>
  __device__ void for_pixels(Visit visit) const {
    const int width = tile_.width();
    const int count = width * tile_.height();
    if (width <= 0) return;
    for (int i = static_cast<int>(threadIdx.x); i < count; i += threads) {
      visit(tile_.x0 + i % width, tile_.y0 + i / width);
    }
  }

  __device__ void gather(int first) {
    const int plane = side_ * side_;
    const int levels = call_.levels();
    const int cell = call_.cell;
    const int lowest_level = first - call_.range_reach;
    const bool shrink = call_.in.border == Border::shrink;
    for (int i = static_cast<int>(threadIdx.x); i < plane; i += threads) {
      for (int level = 0; level < levels; ++level) {
        weights_[level * plane + i] = 0;
        values_[level * plane + i] = 0;
      }
      const int corner_x = (column0_ - call_.space_reach + i % side_) * cell;
      const int corner_y = (row0_ - call_.space_reach + i / side_) * cell;
      for (int dy = 1 - cell; dy < cell; ++dy) {
        const float of_row = 1 - static_cast<float>(abs(dy)) * call_.inverse_cell;
        for (int dx = 1 - cell; dx < cell; ++dx) {
          const int x = corner_x + dx;
          const int y = corner_y + dy;
          if (shrink && (x < 0 || y < 0 || x >= call_.in.image.width || y >= call_.in.image.height)) continue;
          const float value = held_ ? call_.in.inside(call_.plane, x, y) : call_.in.at(call_.plane, x, y, 1e30F);
          if (!call_.holds(value)) continue;
          const float position = value * call_.inverse_level;
          const int level = __float2int_rd(position);
          const int index = level - lowest_level;
          if (index < -1 || index >= levels) continue;
          const float share = of_row * (1 - static_cast<float>(abs(dx)) * call_.inverse_cell);
          const float above = position - static_cast<float>(level);
          if (index >= 0) add(index * plane + i, share * (1 - above), value);
          if (index + 1 < levels) add((index + 1) * plane + i, share * above, value);
        }
      }
    }
  }

  __device__ void add(int at, float share, float value) {
    weights_[at] += share;
    values_[at] = fmaf(share, value, values_[at]);
  }

  // Along a line of corners `step` apart, in place: what a position becomes is read from there on.
  __device__ static void blur(float* line, int step, int count, const float* taps, int tap_count) {
    for (int i = 0; i < count; ++i) {
      float sum = 0;
      for (int k = 0; k < tap_count; ++k) sum = fmaf(taps[k], line[(i + k) * step], sum);
      line[i * step] = sum;
    }
  }

  __device__ void blur_levels() {
    const int plane = side_ * side_;
    for (int i = static_cast<int>(threadIdx.x); i < 2 * plane; i += threads) {
      float* line = i < plane ? weights_ + i : values_ + (i - plane);
      blur(line, plane, levels_kept, call_.range_taps, 2 * call_.range_reach + 1);
    }
  }

  __device__ void blur_rows() {
    const int lines = levels_kept * side_;
    for (int i = static_cast<int>(threadIdx.x); i < 2 * lines; i += threads) {
      float* line = i < lines ? weights_ + i * side_ : values_ + (i - lines) * side_;
      blur(line, 1, tile_cells + 1, call_.space_taps, 2 * call_.space_reach + 1);
    }
  }

  __device__ void blur_columns() {
    const int columns = tile_cells + 1;
    const int lines = levels_kept * columns;
    for (int i = static_cast<int>(threadIdx.x); i < 2 * lines; i += threads) {
      const int line = i < lines ? i : i - lines;
      float* corners = i < lines ? weights_ : values_;
      blur(corners + line / columns * side_ * side_ + line % columns, side_, columns, call_.space_taps,
           2 * call_.space_reach + 1);
    }
  }

  __device__ void read(int first) {
    const int plane = side_ * side_;
    for_pixels([&](int x, int y) {
      const float value = call_.in.inside(call_.plane, x, y);
      if (!call_.holds(value)) return;
      const float position = value * call_.inverse_level;
      const int level = __float2int_rd(position);
      const int index = level - first;
      if (index < 0 || index >= levels_kept - 1) return;
      const int column = floor_to_corner(x, call_.cell);
      const int row = floor_to_corner(y, call_.cell);
      const float right = static_cast<float>(x - column * call_.cell) * call_.inverse_cell;
      const float below = static_cast<float>(y - row * call_.cell) * call_.inverse_cell;
      const float above = position - static_cast<float>(level);
      const int at = index * plane + (row - row0_) * side_ + (column - column0_);
      float weights = 0;
      float values = 0;
      for (int corner = 0; corner < 4; ++corner) {
        const float share = ((corner & 1) != 0 ? right : 1 - right) * ((corner & 2) != 0 ? below : 1 - below);
        const int place = at + (corner & 1) + (corner >> 1) * side_;
        weights = fmaf(share, fmaf(above, weights_[place + plane], (1 - above) * weights_[place]), weights);
        values = fmaf(share, fmaf(above, values_[place + plane], (1 - above) * values_[place]), values);
      }
      call_.out.at(call_.plane, x, y) = values / weights;
    });
  }

  const GridCall& call_;
  int side_;
  float* weights_;
  float* values_;
  int column0_;  // corners at the tile's left and top
  int row0_;
  Rect tile_;
  bool held_;
};

__global__ void __launch_bounds__(threads) grid_kernel(const __grid_constant__ GridCall call) {
  extern __shared__ float shared[];
  __shared__ int range[2];
  GridBlock block(call, shared);
  block.find_levels(range);
  for (int first = range[0]; first <= range[1]; first += levels_kept - 1) block.filter(first);
}

}  // namespace

Pipeline bilateral_grid_cuda(const BilateralParams& params, const ImageSpec& spec) {
  const BilateralGrid grid(params, spec);
  GridCall setup{};
  setup.cell = grid.cell;
  setup.inverse_cell = 1.0F / static_cast<float>(grid.cell);
  setup.inverse_level = static_cast<float>(1 / grid.level);
  setup.lowest = static_cast<float>(grid.lowest);
  setup.highest = static_cast<float>(grid.highest);
  setup.space_reach = grid.space_reach();
  setup.range_reach = grid.range_reach();
  std::copy(grid.space_taps.begin(), grid.space_taps.end(), setup.space_taps);
  std::copy(grid.range_taps.begin(), grid.range_taps.end(), setup.range_taps);
  const auto launch = [setup, border = params.border](const DeviceStageCall& call) {
    GridCall of_call = setup;
    of_call.in = {call.in[0], call.image, border};
    of_call.out = call.out;
    const Rect& area = call.out.rect;
    const auto tiles = [&](int begin, int end) {
      const int corners = corner_before(end - 1, setup.cell) - corner_before(begin, setup.cell) + 1;
      return static_cast<unsigned>(cuda::blocks_for(corners, tile_cells));
    };
    const std::size_t corners = static_cast<std::size_t>(setup.side()) * setup.side() * setup.levels();
    for (of_call.plane = 0; of_call.plane < call.out.count; ++of_call.plane) {
      cuda::launch(grid_kernel, dim3(tiles(area.x0, area.x1), tiles(area.y0, area.y1)), dim3(threads),
                   2 * corners * sizeof(float), call.stream, of_call);
    }
  };
  return {.stages = {{.name = "grid",
                      .reach = {.x = grid.reach(), .y = grid.reach()},
                      .planes = spec.colour_channels(),
                      .launch = launch}},
          .wraps = params.border == Border::wrap};
}

}  // namespace ungrain
