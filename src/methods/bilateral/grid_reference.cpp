#include <cmath>
#include <vector>

#include "core/border.h"
#include "core/pixels.h"
#include "methods/bilateral/bilateral.h"
#include "methods/bilateral/grid.h"

namespace ungrain {
namespace {

// A cell's sums at a level: of the weights and of the weighted values.
struct Sums {
  double weights = 0;
  double values = 0;
};

// The cells from (x0, y0, level0) on.
class Cells {
 public:
  Cells(int x0, int y0, int level0, int columns, int rows, int levels)
      : x0_(x0),
        y0_(y0),
        level0_(level0),
        columns_(columns),
        rows_(rows),
        levels_(levels),
        sums_(static_cast<std::size_t>(columns) * rows * levels) {}

  Sums& at(int x, int y, int level) {
    const std::ptrdiff_t row = (static_cast<std::ptrdiff_t>(level - level0_) * rows_ + (y - y0_)) * columns_;
    return sums_[static_cast<std::size_t>(row + x - x0_)];
  }

  // Blurs along one axis, given as a step in x, y or level; zero beyond the cells.
  void blur(const std::vector<double>& taps, int step_x, int step_y, int step_level) {
    const int reach = static_cast<int>(taps.size()) / 2;
    Cells before = *this;
    for_each([&](int x, int y, int level) {
      Sums sums;
      for (int k = -reach; k <= reach; ++k) {
        const int from_x = x + k * step_x;
        const int from_y = y + k * step_y;
        const int from_level = level + k * step_level;
        if (!before.contains(from_x, from_y, from_level)) continue;
        const Sums& from = before.at(from_x, from_y, from_level);
        sums.weights += taps[static_cast<std::size_t>(k + reach)] * from.weights;
        sums.values += taps[static_cast<std::size_t>(k + reach)] * from.values;
      }
      at(x, y, level) = sums;
    });
  }

 private:
  bool contains(int x, int y, int level) const {
    return x >= x0_ && x < x0_ + columns_ && y >= y0_ && y < y0_ + rows_ && level >= level0_ &&
           level < level0_ + levels_;
  }

  template <class Visit>
  void for_each(Visit visit) const {
    for (int level = level0_; level < level0_ + levels_; ++level) {
      for (int y = y0_; y < y0_ + rows_; ++y) {
        for (int x = x0_; x < x0_ + columns_; ++x) visit(x, y, level);
      }
    }
  }

  int x0_, y0_, level0_;
  int columns_, rows_, levels_;
  std::vector<Sums> sums_;
};

// The level at or below a value, and the share of the next one.
struct LevelPosition {
  int first;
  double after;
};
LevelPosition between_levels(const BilateralGrid& grid, double value) {
  const double first = std::floor(value / grid.level);
  return {static_cast<int>(first), value / grid.level - first};
}

void filter_plane(const BilateralGrid& grid, const StageCall& call, int plane, Border border) {
  const BorderedPlanes image(call.in[0], call.image, border);
  const Rect& out = call.out.rect;
  const int reach = grid.reach();
  const Rect area{out.x0 - reach, out.y0 - reach, out.x1 + reach, out.y1 + reach};
  const int x0 = cell_of(area.x0, grid.cell);
  const int y0 = cell_of(area.y0, grid.cell);
  const int level0 = static_cast<int>(std::floor(grid.lowest / grid.level));
  Cells cells(x0, y0, level0, cell_of(area.x1 - 1, grid.cell) + 1 - x0,
              cell_of(area.y1 - 1, grid.cell) + 1 - y0,
              static_cast<int>(std::floor(grid.highest / grid.level)) + 2 - level0);
  for (int y = area.y0; y < area.y1; ++y) {
    for (int x = area.x0; x < area.x1; ++x) {
      if (!image.counts(x, y)) continue;
      const double value = image.at(plane, x, y);
      if (!grid.holds(value)) continue;
      const LevelPosition level = between_levels(grid, value);
      for (const int next : {0, 1}) {
        const double share = next == 1 ? level.after : 1 - level.after;
        Sums& sums = cells.at(cell_of(x, grid.cell), cell_of(y, grid.cell), level.first + next);
        sums.weights += share;
        sums.values += share * value;
      }
    }
  }
  cells.blur(grid.range_taps, 0, 0, 1);
  cells.blur(grid.space_taps, 1, 0, 0);
  cells.blur(grid.space_taps, 0, 1, 0);
  for_each_pixel(call, [&](int x, int y) {
    const double value = image.at(plane, x, y);
    call.out.at(plane, x, y) = static_cast<float>(value);
    if (!grid.holds(value)) return;
    const LevelPosition level = between_levels(grid, value);
    const CellPosition column = between_cells(x, grid.cell);
    const CellPosition row = between_cells(y, grid.cell);
    const double right = column.after / (2.0 * grid.cell);
    const double below = row.after / (2.0 * grid.cell);
    Sums sums;
    for (const int dl : {0, 1}) {
      for (const int dy : {0, 1}) {
        for (const int dx : {0, 1}) {
          const double share = (dl == 1 ? level.after : 1 - level.after) * (dy == 1 ? below : 1 - below) *
                               (dx == 1 ? right : 1 - right);
          const Sums& from = cells.at(column.first + dx, row.first + dy, level.first + dl);
          sums.weights += share * from.weights;
          sums.values += share * from.values;
        }
      }
    }
    call.out.at(plane, x, y) = static_cast<float>(sums.values / sums.weights);
  });
}

}  // namespace

Pipeline bilateral_grid_reference(const BilateralParams& params, const ImageSpec& spec) {
  const BilateralGrid grid(params, spec);
  const auto run = [grid, border = params.border](const StageCall& call) {
    for (int plane = 0; plane < call.out.count; ++plane) filter_plane(grid, call, plane, border);
  };
  return {.stages = {{.name = "grid",
                      .reach = {.x = grid.reach(), .y = grid.reach()},
                      .planes = spec.colour_channels(),
                      .run = run}},
          .wraps = params.border == Border::wrap};
}

}  // namespace ungrain
