// Samples as they lie in memory: rows of pixels whose channels follow each other. For filters that work
// without float planes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/planes.h"
#include "ungrain/image.h"
#include "ungrain/methods/common.h"

namespace ungrain {

template <class T>
struct SampleRows {
  T* data = nullptr;  // the first sample of the pixel (rect.x0, rect.y0)
  Rect rect;
  std::ptrdiff_t row_stride = 0;  // samples
  int channels = 1;               // samples from a pixel to the next

  // The pixel (rect.x0, y); y in image coordinates.
  constexpr T* row(int y) const { return data + (y - rect.y0) * row_stride; }
  constexpr T* pixel(int x, int y) const {
    return row(y) + static_cast<std::ptrdiff_t>(x - rect.x0) * channels;
  }
};

// One of several planes as rows of one channel.
template <class T>
constexpr SampleRows<T> rows_of_plane(const BasicPlanes<T>& planes, int plane) {
  return {planes.row(plane, planes.rect.y0), planes.rect, planes.row_stride, 1};
}

// Copies the rectangle `want`, which may go beyond the image, row by row into `out` (strides in samples):
// fast versions then need no border logic. Under constant and shrink what is outside becomes 0.
template <class T>
void gather(const SampleRows<const T>& rows, const Extent& image, Border border, const Rect& want, T* out,
            std::ptrdiff_t out_stride);

extern template void gather(const SampleRows<const std::uint8_t>&, const Extent&, Border, const Rect&,
                            std::uint8_t*, std::ptrdiff_t);
extern template void gather(const SampleRows<const std::uint16_t>&, const Extent&, Border, const Rect&,
                            std::uint16_t*, std::ptrdiff_t);
extern template void gather(const SampleRows<const float>&, const Extent&, Border, const Rect&, float*,
                            std::ptrdiff_t);

// Whether a filter can read the samples in place: each row packed, with all channels interleaved or with one.
bool lies_interleaved(const ConstImageView& view);
bool lies_planar(const ConstImageView& view);

}  // namespace ungrain
