// Divides work into tiles that stay in a core's cache.
#pragma once

#include <algorithm>
#include <functional>

#include "core/planes.h"
#include "core/workers.h"

namespace ungrain {

// Calls body(tile, worker) for tiles of at most width x height that together cover `area`. Tiles start at
// multiples of their size in image coordinates, so that a pixel has the same position in its tile in every
// band.
template <class Body>
void for_tiles(Workers& workers, const Rect& area, int width, int height, Body body) {
  const auto floor_to = [](int v, int step) {
    return (v >= 0 ? v / step : -((-v + step - 1) / step)) * step;
  };
  const int left = floor_to(area.x0, width);
  const int top = floor_to(area.y0, height);
  const std::int64_t columns = (area.x1 - left + width - 1) / width;
  const std::int64_t rows = (area.y1 - top + height - 1) / height;
  workers.for_each(columns * rows, [&](std::int64_t item, int worker) {
    const int x = left + static_cast<int>(item % columns) * width;
    const int y = top + static_cast<int>(item / columns) * height;
    body(Rect{std::max(x, area.x0), std::max(y, area.y0), std::min(x + width, area.x1),
              std::min(y + height, area.y1)},
         worker);
  });
}

}  // namespace ungrain
