#include "core/border.h"

#include <algorithm>
#include <cstring>

namespace ungrain {

void gather(const ConstPlanes& planes, int plane, const Extent& image, Border border, const Rect& want,
            float* out, std::ptrdiff_t out_stride) {
  const int inside_begin = std::clamp(0, want.x0, want.x1);
  const int inside_end = std::clamp(image.width, inside_begin, want.x1);
  for (int y = want.y0; y < want.y1; ++y, out += out_stride) {
    const bool there = border == Border::wrap || border_index(border, y, image.height) != no_pixel;
    if (!there) {
      std::fill_n(out, want.width(), 0.0F);
      continue;
    }
    const float* row = planes.row(plane, border_row(border, planes.rect, image, y)) - planes.rect.x0;
    const auto outside = [&](int x) {
      const int column = border_index(border, x, image.width);
      return column == no_pixel ? 0.0F : row[column];
    };
    for (int x = want.x0; x < inside_begin; ++x) out[x - want.x0] = outside(x);
    if (inside_end > inside_begin) {
      std::memcpy(out + (inside_begin - want.x0), row + inside_begin,
                  static_cast<std::size_t>(inside_end - inside_begin) * sizeof(float));
    }
    for (int x = std::max(inside_end, want.x0); x < want.x1; ++x) out[x - want.x0] = outside(x);
  }
}

}  // namespace ungrain
