// The bilateral grid on the CPU, tile by tile: the grid of a tile and its halo stays in a core's cache. Every
// cell's sums are taken in the order of the rows and columns, so that they do not depend on the tile.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "core/border.h"
#include "cpu/tiles.h"
#include "methods/bilateral/bilateral.h"
#include "methods/bilateral/grid.h"
#include "methods/bilateral/grid_kernels.h"

namespace ungrain {
namespace {

constexpr int tile_cells = 40;  // a side

struct GridTile {
  GridTile(const BilateralGrid& g, Border rule) : grid(g), border(rule) {
    for (const double tap : g.space_taps) space_taps.push_back(static_cast<float>(tap));
    for (const double tap : g.range_taps) range_taps.push_back(static_cast<float>(tap));
    half_inverse_cell = 0.5F / static_cast<float>(g.cell);
    inverse_level = static_cast<float>(1 / g.level);
    held = {static_cast<float>(g.lowest), static_cast<float>(g.highest)};
    if (!g.holds(held.lowest)) held.lowest = std::nextafter(held.lowest, held.highest);
    if (!g.holds(held.highest)) held.highest = std::nextafter(held.highest, held.lowest);
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
  std::size_t cell_floats() const { return 2 * cells() + blur_slack; }
  // A line of cells with padding on both sides, whose neighbours are less than a vector apart.
  std::size_t line_floats() const {
    const int along_range = 2 * (most_levels + 2 * grid.range_reach());
    const int along_x = static_cast<int>(blur_slack) * (tile_cells + 4 * grid.space_reach() + 6);
    return static_cast<std::size_t>(along_range + along_x) + blur_slack;
  }
  // The pixels; the cells' weights and values, twice; a line of cells; the positions of a row's pixels
  // between the columns.
  std::size_t scratch() const {
    constexpr std::size_t floats_of_column = sizeof(ColumnPosition) / sizeof(float);
    return pixels() + 2 * cell_floats() + line_floats() +
           static_cast<std::size_t>(side()) * floats_of_column + 16;
  }

  int level_of(float value) const { return static_cast<int>(std::floor(value * inverse_level)); }

  BilateralGrid grid;
  Border border;
  std::vector<float> space_taps;
  std::vector<float> range_taps;
  float half_inverse_cell;
  float inverse_level;
  HeldValues held{};
  int most_levels;
};

// Cells of a box: [row][column][level], weight and value side by side.
struct Box {
  int x0, y0, level0;
  int columns, rows, levels;

  std::ptrdiff_t column_step() const { return 2 * static_cast<std::ptrdiff_t>(levels); }
  std::ptrdiff_t row_step() const { return columns * column_step(); }
  std::ptrdiff_t index(int x, int y, int level) const {
    return (y - y0) * row_step() + (x - x0) * column_step() + 2 * static_cast<std::ptrdiff_t>(level - level0);
  }
  std::ptrdiff_t size() const { return rows * row_step(); }
};

class Worker {
 public:
  Worker(const GridTile& setup, const StageCall& call, const Rect& tile, int plane, float* memory)
      : setup_(setup), grid_(setup.grid), call_(call), tile_(tile), plane_(plane), pixels_(memory) {
    first_ = memory + setup.pixels();
    second_ = first_ + setup.cell_floats();
    line_ = second_ + setup.cell_floats();
    void* behind = line_ + setup.line_floats();
    std::size_t room = 64 + static_cast<std::size_t>(setup.side()) * sizeof(ColumnPosition);
    columns_ = static_cast<ColumnPosition*>(
        std::align(alignof(ColumnPosition), sizeof(ColumnPosition), behind, room));
  }

  void filter() {
    load();
    find_box();
    if (box_.levels > 0) {
      count();
      const auto cells = static_cast<std::ptrdiff_t>(box_.columns) * box_.rows;
      blur_cells(setup_.range_taps.data(), grid_.range_reach(), first_, second_, cells, box_.levels, 2,
                 line_);
      blur_cells(setup_.space_taps.data(), grid_.space_reach(), second_, first_, box_.rows, box_.columns,
                 box_.column_step(), line_);
      blur_cells(setup_.space_taps.data(), grid_.space_reach(), first_, second_, 1, box_.rows,
                 box_.row_step(), line_);
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
    float low = std::numeric_limits<float>::max();
    float high = -low;
    for (int y = inside_.y0; y < inside_.y1; ++y) {
      extend_range(pixel_row(y) + (inside_.x0 - area_.x0), inside_.width(), setup_.held, low, high);
    }
    const bool empty = high < low;
    if (empty) low = high = 0;
    box_.x0 = cell_of(area_.x0, grid_.cell);
    box_.y0 = cell_of(area_.y0, grid_.cell);
    box_.level0 = setup_.level_of(low);
    box_.columns = cell_of(area_.x1 - 1, grid_.cell) + 1 - box_.x0;
    box_.rows = cell_of(area_.y1 - 1, grid_.cell) + 1 - box_.y0;
    box_.levels = empty ? 0 : setup_.level_of(high) + 2 - box_.level0;
  }

  // The position of a pixel between two cells.
  struct CellShare {
    int first;
    float after;  // the share of the next one
  };
  CellShare between(int position) const {
    const CellPosition cells = between_cells(position, grid_.cell);
    return {cells.first, static_cast<float>(cells.after) * setup_.half_inverse_cell};
  }
  void count() {
    std::fill_n(first_, box_.size(), 0.0F);
    for (int y = inside_.y0; y < inside_.y1; ++y) {
      const int row = cell_of(y, grid_.cell);
      const float* pixels = pixel_row(y) - area_.x0;
      for (int x = inside_.x0; x < inside_.x1;) {
        const int column = cell_of(x, grid_.cell);
        const int end = std::min(inside_.x1, (column + 1) * grid_.cell);
        float* const cell = first_ + box_.index(column, row, box_.level0);
        count_in_cell(pixels + x, end - x, setup_.held, setup_.inverse_level, box_.level0, cell);
        x = end;
      }
    }
  }

  void read() const {
    for (int x = tile_.x0; x < tile_.x1; ++x) {
      const CellShare column = between(x);
      columns_[x - tile_.x0] = {box_.index(column.first, box_.y0, box_.level0), column.after};
    }
    for (int y = tile_.y0; y < tile_.y1; ++y) {
      const CellShare row = between(y);
      const float* upper = second_ + (row.first - box_.y0) * box_.row_step();
      const GridRow cells{upper,       upper + box_.row_step(), row.after,  box_.column_step(),
                          box_.level0, setup_.inverse_level,    setup_.held};
      read_grid_row(cells, columns_, pixel_row(y) + (tile_.x0 - area_.x0), tile_.width(),
                    call_.out.row(plane_, y) + (tile_.x0 - call_.out.rect.x0));
    }
  }

  const GridTile& setup_;
  const BilateralGrid& grid_;
  const StageCall& call_;
  Rect tile_;
  int plane_;
  float* pixels_;
  float* first_;
  float* second_;
  float* line_;
  ColumnPosition* columns_;
  Rect area_{};
  Rect inside_{};  // the part of the area where pixels count
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
