// The loop of the references.
#pragma once

#include <algorithm>

#include "core/method.h"

namespace ungrain {

// Calls body(x, y) for every pixel of the output, in pieces small enough that a slow method can still be
// cancelled.
template <class Body>
void for_each_pixel(const StageCall& call, Body body) {
  constexpr int piece = 64;
  const Rect& area = call.out.rect;
  const std::int64_t pieces = (area.width() + piece - 1) / piece;
  call.workers.for_each(pieces * area.height(), [&](std::int64_t item, int) {
    const int y = area.y0 + static_cast<int>(item / pieces);
    const int begin = area.x0 + static_cast<int>(item % pieces) * piece;
    for (int x = begin; x < std::min(begin + piece, area.x1); ++x) body(x, y);
  });
}

}  // namespace ungrain
