#include "methods/bm3d/pilot.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/convert.h"

namespace ungrain {

void PilotRows::read(int slice, const Planes& out) const {
  // Whole rows of chroma, whose rows lie in the room of luma's.
  const int step = spec_.chroma.y;
  const int first = out.rect.y0 / step * step;
  const int end = std::min(spec_.height, (out.rect.y1 + step - 1) / step * step);
  ImageSpec part = spec_;
  part.height = end - first;
  Image rows(part);
  pilot_->read_rows(slice, first, rows.view());

  std::vector<float> row(static_cast<std::size_t>(spec_.width));
  for (int plane = 0; plane < out.count; ++plane) {
    const int between = plane > 0 ? step : 1;
    for (int y = out.rect.y0; y < out.rect.y1; ++y) {
      if (y % between != 0) continue;
      load_row(std::as_const(rows).view(), y - first, plane, row.data());
      std::transform(row.begin() + out.rect.x0, row.begin() + out.rect.x1, out.row(plane, y),
                     [](float value) { return std::isfinite(value) ? value : 0.0F; });
    }
  }
}

}  // namespace ungrain
