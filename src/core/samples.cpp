#include "core/samples.h"

#include <algorithm>
#include <cstring>

#include "core/border.h"

namespace ungrain {

template <class T>
void gather(const SampleRows<const T>& rows, const Extent& image, Border border, const Rect& want, T* out,
            std::ptrdiff_t out_stride) {
  const int channels = rows.channels;
  const int inside_begin = std::clamp(0, want.x0, want.x1);
  const int inside_end = std::clamp(image.width, inside_begin, want.x1);
  for (int y = want.y0; y < want.y1; ++y, out += out_stride) {
    const bool there = border == Border::wrap || border_index(border, y, image.height) != no_pixel;
    if (!there) {
      std::fill_n(out, want.width() * channels, T{});
      continue;
    }
    const int row = border_row(border, rows.rect, image, y);
    const auto outside = [&](int x) {
      const int column = border_index(border, x, image.width);
      T* to = out + static_cast<std::ptrdiff_t>(x - want.x0) * channels;
      if (column == no_pixel) {
        std::fill_n(to, channels, T{});
      } else {
        std::copy_n(rows.pixel(column, row), channels, to);
      }
    };
    for (int x = want.x0; x < inside_begin; ++x) outside(x);
    if (inside_end > inside_begin) {
      std::memcpy(out + static_cast<std::ptrdiff_t>(inside_begin - want.x0) * channels,
                  rows.pixel(inside_begin, row),
                  static_cast<std::size_t>(inside_end - inside_begin) * channels * sizeof(T));
    }
    for (int x = std::max(inside_end, want.x0); x < want.x1; ++x) outside(x);
  }
}

template void gather(const SampleRows<const std::uint8_t>&, const Extent&, Border, const Rect&, std::uint8_t*,
                     std::ptrdiff_t);
template void gather(const SampleRows<const std::uint16_t>&, const Extent&, Border, const Rect&,
                     std::uint16_t*, std::ptrdiff_t);
template void gather(const SampleRows<const float>&, const Extent&, Border, const Rect&, float*,
                     std::ptrdiff_t);

namespace {

bool is_aligned(const ConstImageView& view) {
  const std::ptrdiff_t sample = bytes_per_sample(view.spec.type);
  return view.strides.y % sample == 0 && reinterpret_cast<std::uintptr_t>(view.data) % sample == 0;
}

}  // namespace

bool lies_interleaved(const ConstImageView& view) {
  const std::ptrdiff_t sample = bytes_per_sample(view.spec.type);
  return is_aligned(view) && view.strides.x == sample * view.spec.channels &&
         (view.spec.channels == 1 || view.strides.channel == sample);
}

bool lies_planar(const ConstImageView& view) {
  const std::ptrdiff_t sample = bytes_per_sample(view.spec.type);
  return is_aligned(view) && view.strides.x == sample && view.strides.channel % sample == 0;
}

}  // namespace ungrain
