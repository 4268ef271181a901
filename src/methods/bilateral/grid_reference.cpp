#include <cmath>
#include <vector>

#include "core/border.h"
#include "core/pixels.h"
#include "methods/bilateral/bilateral.h"
#include "methods/bilateral/grid.h"

namespace ungrain {
namespace {

// A corner's sums: of the weights and of the weighted values.
struct Sums {
  double weights = 0;
  double values = 0;
};

// The corners from (x0, y0, level0) on.
class Corners {
 public:
  Corners(int x0, int y0, int level0, int columns, int rows, int levels)
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

  // Along one axis, given as a step in x, y or level; beyond the corners there is nothing.
  void blur(const std::vector<double>& taps, int step_x, int step_y, int step_level) {
    const int reach = static_cast<int>(taps.size()) / 2;
    Corners before = *this;
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

// Calls visit(x, y, level, share) for the eight corners around a pixel of that value; the shares sum to 1.
template <class Visit>
void for_corners_around(const BilateralGrid& grid, int x, int y, double value, Visit visit) {
  const int column = corner_before(x, grid.cell);
  const int row = corner_before(y, grid.cell);
  const int level = static_cast<int>(std::floor(value / grid.level));
  const double right = (x - static_cast<double>(column) * grid.cell) / grid.cell;
  const double below = (y - static_cast<double>(row) * grid.cell) / grid.cell;
  const double above = value / grid.level - level;
  for (const int dl : {0, 1}) {
    for (const int dy : {0, 1}) {
      for (const int dx : {0, 1}) {
        const double share =
            (dx == 1 ? right : 1 - right) * (dy == 1 ? below : 1 - below) * (dl == 1 ? above : 1 - above);
        visit(column + dx, row + dy, level + dl, share);
      }
    }
  }
}

void filter_plane(const BilateralGrid& grid, const StageCall& call, int plane, Border border) {
  const BorderedPlanes image(call.in[0], call.image, border);
  const Rect& out = call.out.rect;
  const int reach = grid.reach();
  const Rect area{out.x0 - reach, out.y0 - reach, out.x1 + reach, out.y1 + reach};
  const int x0 = corner_before(area.x0, grid.cell);
  const int y0 = corner_before(area.y0, grid.cell);
  const int level0 = static_cast<int>(std::floor(grid.lowest / grid.level));
  Corners corners(x0, y0, level0, corner_before(area.x1 - 1, grid.cell) + 2 - x0,
                  corner_before(area.y1 - 1, grid.cell) + 2 - y0,
                  static_cast<int>(std::floor(grid.highest / grid.level)) + 2 - level0);
  for (int y = area.y0; y < area.y1; ++y) {
    for (int x = area.x0; x < area.x1; ++x) {
      if (!image.counts(x, y)) continue;
      const double value = image.at(plane, x, y);
      if (!grid.holds(value)) continue;
      for_corners_around(grid, x, y, value, [&](int column, int row, int level, double share) {
        corners.at(column, row, level).weights += share;
        corners.at(column, row, level).values += share * value;
      });
    }
  }
  corners.blur(grid.range_taps, 0, 0, 1);
  corners.blur(grid.space_taps, 1, 0, 0);
  corners.blur(grid.space_taps, 0, 1, 0);
  for_each_pixel(call, [&](int x, int y) {
    const double value = image.at(plane, x, y);
    call.out.at(plane, x, y) = static_cast<float>(value);
    if (!grid.holds(value)) return;
    Sums sums;
    for_corners_around(grid, x, y, value, [&](int column, int row, int level, double share) {
      sums.weights += share * corners.at(column, row, level).weights;
      sums.values += share * corners.at(column, row, level).values;
    });
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
