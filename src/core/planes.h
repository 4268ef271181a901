// What kernels see: float planes that cover a rectangle of the image.
#pragma once

#include <cstddef>
#include <type_traits>

namespace ungrain {

struct Extent {
  int width = 0;
  int height = 0;
};

// Pixels [x0, x1) x [y0, y1) in the coordinates of the whole image.
struct Rect {
  int x0 = 0;
  int y0 = 0;
  int x1 = 0;
  int y1 = 0;

  constexpr int width() const { return x1 - x0; }
  constexpr int height() const { return y1 - y0; }
  constexpr bool contains(const Rect& r) const {
    return x0 <= r.x0 && y0 <= r.y0 && r.x1 <= x1 && r.y1 <= y1;
  }
  friend bool operator==(const Rect&, const Rect&) = default;
};

// `count` planes of one rectangle. Rows above 0 or from the image's height on exist only under a wrap border.
template <class T>
struct BasicPlanes {
  T* data = nullptr;  // the pixel (rect.x0, rect.y0) of plane 0
  Rect rect;
  std::ptrdiff_t row_stride = 0;  // elements
  std::ptrdiff_t plane_stride = 0;
  int count = 0;

  constexpr T& at(int plane, int x, int y) const {
    return row(plane, y)[x - rect.x0];
  }  // in image coordinates
  // The pixel (rect.x0, y); y in image coordinates.
  constexpr T* row(int plane, int y) const {
    return data + plane * plane_stride + (y - rect.y0) * row_stride;
  }

  constexpr operator BasicPlanes<const T>() const  // NOLINT: constants are made from anything
      requires(!std::is_const_v<T>) {
    return {data, rect, row_stride, plane_stride, count};
  }
};

using Planes = BasicPlanes<float>;
using ConstPlanes = BasicPlanes<const float>;

}  // namespace ungrain
