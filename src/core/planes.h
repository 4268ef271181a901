// The input and output of kernels: float planes that cover a rectangle of the image.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ungrain {

struct Extent {
  int width = 0;
  int height = 0;
};

// Rows, columns or slices [begin, end) in image coordinates.
struct RowRange {
  int begin = 0;
  int end = 0;
  constexpr int count() const { return end - begin; }
  friend bool operator==(const RowRange&, const RowRange&) = default;
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

// What the planes of a stage's result hold.
enum class Element : std::uint8_t { f32, f16, i32, u16, u8 };

constexpr std::size_t bytes_of(Element element) {
  switch (element) {
    case Element::f32:
    case Element::i32:
      return 4;
    case Element::f16:
    case Element::u16:
      return 2;
    case Element::u8:
      break;
  }
  return 1;
}

template <class T>
constexpr bool holds(Element element) {
  using Plain = std::remove_const_t<T>;
  if (std::is_same_v<Plain, float>) return element == Element::f32;
  if (std::is_same_v<Plain, std::int32_t>) return element == Element::i32;
  if (std::is_same_v<Plain, std::uint8_t>) return element == Element::u8;
  // Halves are passed as their bits.
  return std::is_same_v<Plain, std::uint16_t> && (element == Element::u16 || element == Element::f16);
}

[[noreturn]] void refuse_element_type();  // Error(internal)

// Planes whose element type is known at run time.
struct TypedPlanes {
  void* data = nullptr;
  Element element = Element::f32;
  Rect rect;
  std::ptrdiff_t row_stride = 0;  // elements
  std::ptrdiff_t plane_stride = 0;
  int count = 0;

  template <class T>
  BasicPlanes<T> as() const {
    if (!holds<T>(element)) refuse_element_type();
    return {static_cast<T*>(data), rect, row_stride, plane_stride, count};
  }
};

}  // namespace ungrain
