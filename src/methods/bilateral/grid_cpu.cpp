// The bilateral grid on the CPU, tile by tile: the grid of a tile and what reaches it stays in a core's
// cache. Every cell's sums are taken in the order of the rows and columns, so that they do not depend on the
// tile.
#include <algorithm>
#include <cmath>

#include "core/border.h"
#include "cpu/tiles.h"
#include "methods/bilateral/bilateral.h"
#include "methods/bilateral/grid.h"

namespace ungrain {
namespace {

constexpr int tile_cells = 32;  // a side

struct GridTile {
  GridTile(const BilateralGrid& g, Border rule) : grid(g), border(rule) {
    for (const double tap : g.space_taps) space_taps.push_back(static_cast<float>(tap));
    for (const double tap : g.range_taps) range_taps.push_back(static_cast<float>(tap));
    half_inverse_cell = 0.5F / static_cast<float>(g.cell);
    inverse_level = static_cast<float>(1 / g.level);
    most_levels = level_of(static_cast<float>(g.highest)) + 2 - level_of(static_cast<float>(g.lowest));
  }

  int side() const { return tile_cells * grid.cell; }  // pixels
  std::size_t pixels() const {
    const auto wide = static_cast<std::size_t>(side() + 2 * grid.reach());
    return wide * wide;
  }
  std::size_t cells() const {
    const auto wide = static_cast<std::size_t>(tile_cells + 2 * grid.space_reach() + 6);
    return wide * wide * static_cast<std::size_t>(most_levels);
  }
  // The pixels, then the cells' weights and values, twice.
  std::size_t scratch() const { return pixels() + 4 * cells(); }

  int level_of(float value) const { return static_cast<int>(std::floor(value * inverse_level)); }

  BilateralGrid grid;
  Border border;
  std::vector<float> space_taps;
  std::vector<float> range_taps;
  float half_inverse_cell;
  float inverse_level;
  int most_levels;
};

// Cells of a box: [level][row][column], weights and values in planes of their own.
struct Box {
  int x0, y0, level0;
  int columns, rows, levels;

  std::ptrdiff_t index(int x, int y, int level) const {
    return (static_cast<std::ptrdiff_t>(level - level0) * rows + (y - y0)) * columns + (x - x0);
  }
  std::ptrdiff_t size() const { return static_cast<std::ptrdiff_t>(columns) * rows * levels; }
};

struct Planes2 {
  float* weights;
  float* values;
};

// out[i] = sum over the taps of in[i + k * step], where that lies on the same line of `length` along the
// axis. A line's neighbours at distance `step` are whole runs of `step` floats: for x the run is a single
// float.
void blur(const std::vector<float>& taps, const float* __restrict in, float* __restrict out,
          std::ptrdiff_t size, std::ptrdiff_t step, int length) {
  const int reach = static_cast<int>(taps.size()) / 2;
  std::fill_n(out, size, 0.0F);
  for (std::ptrdiff_t line = 0; line < size; line += step * length) {
    if (step == 1) {
      for (int k = -reach; k <= reach; ++k) {
        const float tap = taps[static_cast<std::size_t>(k + reach)];
        const int begin = std::max(0, -k);
        const int end = std::min(length, length - k);
        const float* from = in + line + k;
        float* to = out + line;
        for (int i = begin; i < end; ++i) to[i] += tap * from[i];
      }
      continue;
    }
    for (int position = 0; position < length; ++position) {
      float* to = out + line + position * step;
      for (int k = std::max(-reach, -position); k <= std::min(reach, length - 1 - position); ++k) {
        const float tap = taps[static_cast<std::size_t>(k + reach)];
        const float* from = in + line + (position + k) * step;
        for (std::ptrdiff_t i = 0; i < step; ++i) to[i] += tap * from[i];
      }
    }
  }
}

class Worker {
 public:
  Worker(const GridTile& setup, const StageCall& call, const Rect& tile, int plane, float* memory)
      : setup_(setup), grid_(setup.grid), call_(call), tile_(tile), plane_(plane), pixels_(memory) {
    const auto cells = static_cast<std::ptrdiff_t>(setup.cells());
    float* behind = memory + setup.pixels();
    first_ = {behind, behind + cells};
    second_ = {behind + 2 * cells, behind + 3 * cells};
  }

  void filter() {
    load();
    find_box();
    if (box_.levels > 0) {
      count();
      const auto plane = static_cast<std::ptrdiff_t>(box_.columns) * box_.rows;
      blur_both(setup_.range_taps, first_, second_, plane, box_.levels);
      blur_both(setup_.space_taps, second_, first_, 1, box_.columns);
      blur_both(setup_.space_taps, first_, second_, box_.columns, box_.rows);
    }
    read();
  }

 private:
  void load() {
    const int reach = grid_.reach();
    area_ = {tile_.x0 - reach, tile_.y0 - reach, tile_.x1 + reach, tile_.y1 + reach};
    gather(call_.in[0], plane_, call_.image, setup_.border, area_, pixels_, area_.width());
    if (setup_.border == Border::shrink) {
      inside_ = {std::max(area_.x0, 0), std::max(area_.y0, 0), std::min(area_.x1, call_.image.width),
                 std::min(area_.y1, call_.image.height)};
    } else {
      inside_ = area_;
    }
  }

  const float* pixel_row(int y) const {
    return pixels_ + static_cast<std::ptrdiff_t>(y - area_.y0) * area_.width();
  }

  void find_box() {
    float low = 0;
    float high = -1;
    for (int y = inside_.y0; y < inside_.y1; ++y) {
      const float* row = pixel_row(y);
      for (int x = inside_.x0; x < inside_.x1; ++x) {
        const float value = row[x - area_.x0];
        if (!grid_.holds(value)) continue;
        if (high < low) low = high = value;
        low = std::min(low, value);
        high = std::max(high, value);
      }
    }
    box_.x0 = cell_of(area_.x0, grid_.cell);
    box_.y0 = cell_of(area_.y0, grid_.cell);
    box_.level0 = setup_.level_of(low);
    box_.columns = cell_of(area_.x1 - 1, grid_.cell) + 1 - box_.x0;
    box_.rows = cell_of(area_.y1 - 1, grid_.cell) + 1 - box_.y0;
    box_.levels = high < low ? 0 : setup_.level_of(high) + 2 - box_.level0;
  }

  // Where a position lies between two cells, a value between two levels.
  struct Between {
    int first;
    float after;  // the share of the next one
  };
  Between between(int position) const {
    const BetweenCells cells = between_cells(position, grid_.cell);
    return {cells.first, static_cast<float>(cells.after) * setup_.half_inverse_cell};
  }
  Between level_between(float value) const {
    const float position = value * setup_.inverse_level;
    const float first = std::floor(position);
    return {static_cast<int>(first), position - first};
  }

  void count() {
    std::fill_n(first_.weights, box_.size(), 0.0F);
    std::fill_n(first_.values, box_.size(), 0.0F);
    const auto level_step = static_cast<std::ptrdiff_t>(box_.columns) * box_.rows;
    for (int y = inside_.y0; y < inside_.y1; ++y) {
      const int row = cell_of(y, grid_.cell);
      for (int x = inside_.x0; x < inside_.x1; ++x) {
        const float value = pixel_row(y)[x - area_.x0];
        if (!grid_.holds(value)) continue;
        const Between level = level_between(value);
        const std::ptrdiff_t at = box_.index(cell_of(x, grid_.cell), row, level.first);
        first_.weights[at] += 1 - level.after;
        first_.values[at] += (1 - level.after) * value;
        first_.weights[at + level_step] += level.after;
        first_.values[at + level_step] += level.after * value;
      }
    }
  }

  void blur_both(const std::vector<float>& taps, const Planes2& in, const Planes2& out, std::ptrdiff_t step,
                 int length) const {
    blur(taps, in.weights, out.weights, box_.size(), step, length);
    blur(taps, in.values, out.values, box_.size(), step, length);
  }

  void read() const {
    const auto level_step = static_cast<std::ptrdiff_t>(box_.columns) * box_.rows;
    for (int y = tile_.y0; y < tile_.y1; ++y) {
      const Between row = between(y);
      float* out = call_.out.row(plane_, y) + (tile_.x0 - call_.out.rect.x0);
      for (int x = tile_.x0; x < tile_.x1; ++x) {
        const float value = pixel_row(y)[x - area_.x0];
        out[x - tile_.x0] = value;
        if (!grid_.holds(value)) continue;
        const Between column = between(x);
        const Between level = level_between(value);
        const std::ptrdiff_t at = box_.index(column.first, row.first, level.first);
        float weights = 0;
        float values = 0;
        for (const int dy : {0, 1}) {
          for (const int dx : {0, 1}) {
            const float share =
                (dy == 1 ? row.after : 1 - row.after) * (dx == 1 ? column.after : 1 - column.after);
            const std::ptrdiff_t place = at + dy * box_.columns + dx;
            weights += share * ((1 - level.after) * second_.weights[place] +
                                level.after * second_.weights[place + level_step]);
            values += share * ((1 - level.after) * second_.values[place] +
                               level.after * second_.values[place + level_step]);
          }
        }
        out[x - tile_.x0] = values / weights;
      }
    }
  }

  const GridTile& setup_;
  const BilateralGrid& grid_;
  const StageCall& call_;
  Rect tile_;
  int plane_;
  float* pixels_;
  Planes2 first_{};
  Planes2 second_{};
  Rect area_{};
  Rect inside_{};  // of the area, where pixels take part
  Box box_{};
};

}  // namespace

Pipeline bilateral_grid_cpu(const BilateralParams& params, const ImageSpec& spec) {
  const GridTile setup(BilateralGrid(params, spec), params.border);
  const auto run = [setup](const StageCall& call) {
    for_tiles(call.workers, call.out.rect, setup.side(), setup.side(), [&](const Rect& tile, int worker) {
      for (int plane = 0; plane < call.out.count; ++plane) {
        Worker(setup, call, tile, plane, call.scratch_of(worker)).filter();
      }
    });
  };
  return {.stages = {{.name = "grid",
                      .reach = {.x = setup.grid.reach(), .y = setup.grid.reach()},
                      .planes = spec.colour_channels(),
                      .scratch = setup.scratch(),
                      .run = run}},
          .wraps = params.border == Border::wrap};
}

}  // namespace ungrain
