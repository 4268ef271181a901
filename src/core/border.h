// Pixels beyond the image's edge: the one rule that references and fast versions share.
#pragma once

#include "core/planes.h"
#include "ungrain/methods/common.h"

namespace ungrain {

inline constexpr int no_pixel = -1;

// Which of the n pixels of an axis stands at position i; no_pixel where nothing does (constant, shrink).
constexpr int border_index(Border border, int i, int n) {
  if (i >= 0 && i < n) return i;
  const auto modulo = [](int a, int m) { return ((a % m) + m) % m; };
  switch (border) {
    case Border::symmetric: {
      const int folded = modulo(i, 2 * n);
      return folded < n ? folded : 2 * n - 1 - folded;
    }
    case Border::mirror: {
      if (n == 1) return 0;
      const int folded = modulo(i, 2 * n - 2);
      return folded < n ? folded : 2 * n - 2 - folded;
    }
    case Border::clamp:
      return i < 0 ? 0 : n - 1;
    case Border::wrap:
      return modulo(i, n);
    case Border::constant:
    case Border::shrink:
      return no_pixel;
  }
  return no_pixel;
}

// The row of `planes` that stands for image row y. Under wrap, `planes` may hold the rows beyond the edge
// themselves.
constexpr int border_row(Border border, const Rect& rect, const Extent& image, int y) {
  if (border == Border::wrap && y >= rect.y0 && y < rect.y1) return y;
  return border_index(border, y, image.height);
}

// One pixel at a time, for the references.
template <class T>
class BorderedPlanes {
 public:
  BorderedPlanes(const BasicPlanes<T>& planes, const Extent& image, Border border)
      : planes_(planes), image_(image), border_(border) {}

  // Whether the pixel takes part at all: false only outside the image under `shrink`.
  bool counts(int x, int y) const {
    return border_ != Border::shrink || (x >= 0 && x < image_.width && y >= 0 && y < image_.height);
  }

  double at(int plane, int x, int y) const {
    const int column = border_index(border_, x, image_.width);
    const int row = border_row(border_, planes_.rect, image_, y);
    if (column == no_pixel || (row == no_pixel && border_ != Border::wrap)) return 0;
    return planes_.row(plane, row)[column - planes_.rect.x0];
  }

 private:
  BasicPlanes<T> planes_;
  Extent image_;
  Border border_;
};

// Copies the rectangle `want` of one plane, which may go beyond the image, row by row into `out`: fast
// versions then need no border logic. Under constant and shrink what is outside becomes 0.
void gather(const ConstPlanes& planes, int plane, const Extent& image, Border border, const Rect& want,
            float* out, std::ptrdiff_t out_stride);

}  // namespace ungrain
