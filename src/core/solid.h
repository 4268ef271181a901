// A part of a volume as kernels see it. Planes hold it with a slice in each row (ImageSpec::slice).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/planes.h"
#include "ungrain/image.h"

namespace ungrain {

// Voxels [begin, end) along each axis, in the coordinates of the whole volume.
struct Box {
  RowRange x;
  RowRange y;
  RowRange z;

  constexpr bool contains(const Box& b) const {
    return x.begin <= b.x.begin && b.x.end <= x.end && y.begin <= b.y.begin && b.y.end <= y.end &&
           z.begin <= b.z.begin && b.z.end <= z.end;
  }
  friend bool operator==(const Box&, const Box&) = default;
};

// The size of the whole volume.
struct SolidExtent {
  int width = 0;
  int height = 0;
  int depth = 0;
};

inline SolidExtent solid_extent(const ImageSpec& spec) {
  const SliceShape& slice = spec.slice;
  return {slice.whole_width > 0 ? slice.whole_width : slice.width,
          slice.whole_height > 0 ? slice.whole_height : slice.height, spec.height};
}

template <class T>
struct BasicSolid {
  T* data = nullptr;  // the voxel at the box's begin
  Box box;
  std::ptrdiff_t line = 0;   // elements from one line of a slice to the next
  std::ptrdiff_t slice = 0;  // and from one slice to the next

  constexpr T* at(int x, int y, int z) const {  // in the volume's coordinates
    return data + (z - box.z.begin) * slice + (y - box.y.begin) * line + (x - box.x.begin);
  }
};
using Solid = BasicSolid<float>;
using ConstSolid = BasicSolid<const float>;

template <class T>
BasicSolid<T> solid_of(const BasicPlanes<T>& planes, int plane, const SliceShape& slice) {
  return {
      planes.data + plane * planes.plane_stride,
      {{slice.x, slice.x + slice.width}, {slice.y, slice.y + slice.height}, {planes.rect.y0, planes.rect.y1}},
      slice.width,
      planes.row_stride};
}

}  // namespace ungrain
