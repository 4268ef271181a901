// How kernels read pixels: core/border.h's border rule, as everywhere.
#pragma once

#include "core/border.h"
#include "core/planes.h"

namespace ungrain::cuda {

// A plane with its border.
struct BorderedPlane {
  ConstPlanes planes;
  Extent image;
  Border border;

  static constexpr bool may_be_nonfinite = false;

  struct Column {
    const float* from;
    std::ptrdiff_t stride;
    __device__ float operator[](int row) const { return from[row * stride]; }
  };
  __device__ Column column(int plane, int x, int y) const {
    return {&planes.at(plane, x, y), planes.row_stride};
  }

  // Whether every pixel of the rectangle is held, without the border rule.
  __device__ bool holds(int x0, int y0, int x1, int y1) const {
    const Rect& rect = planes.rect;
    return x0 >= rect.x0 && x1 <= rect.x1 && y0 >= rect.y0 && y1 <= rect.y1;
  }

  __device__ float inside(int plane, int x, int y) const { return planes.row(plane, y)[x - planes.rect.x0]; }

  // The column and the row that stand for any position; no_pixel where none does.
  __device__ int column_for(int x) const {
    const int column = border_index(border, x, image.width);
    return column >= planes.rect.x0 && column < planes.rect.x1 ? column : no_pixel;
  }
  __device__ int row_for(int y) const {
    const int row = border_row(border, planes.rect, image, y);
    return row >= planes.rect.y0 && row < planes.rect.y1 ? row : no_pixel;
  }
  // The pixel there; `nothing` where none counts. Positions that only pad a tile and that no result depends
  // on may lie outside what is held: they give `nothing` too.
  __device__ float at_found(int plane, int column, int row, float nothing) const {
    if (column == no_pixel || row == no_pixel) return border == Border::constant ? 0.0F : nothing;
    return inside(plane, column, row);
  }

  __device__ float at(int plane, int x, int y, float nothing) const {
    return at_found(plane, column_for(x), row_for(y), nothing);
  }
};

}  // namespace ungrain::cuda
