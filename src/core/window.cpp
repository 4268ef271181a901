#include "core/window.h"

#include "core/colour.h"

namespace ungrain {

WorkingCopy::WorkingCopy(const ConstPlanes& in, ColourMode mode, double white) {
  const Rect& rect = in.rect;
  const std::ptrdiff_t plane_size = static_cast<std::ptrdiff_t>(rect.width()) * rect.height();
  values_.resize(static_cast<std::size_t>(plane_size * in.count));
  const BasicPlanes<double> copy{values_.data(), rect, rect.width(), plane_size, in.count};
  for (int y = rect.y0; y < rect.y1; ++y) {
    for (int x = rect.x0; x < rect.x1; ++x) {
      for (int plane = 0; plane < in.count; ++plane) copy.at(plane, x, y) = in.at(plane, x, y);
      if (mode != ColourMode::lab) continue;
      const Triple lab =
          rgb_to_lab({copy.at(0, x, y) / white, copy.at(1, x, y) / white, copy.at(2, x, y) / white});
      for (int plane = 0; plane < 3; ++plane) copy.at(plane, x, y) = lab[static_cast<std::size_t>(plane)];
    }
  }
  planes_ = copy;
}

void store_working_pixel(const std::vector<double>& pixel, ColourMode mode, double white, const Planes& out,
                         int x, int y) {
  if (mode == ColourMode::lab) {
    const Triple rgb = lab_to_rgb({pixel[0], pixel[1], pixel[2]});
    for (int c = 0; c < 3; ++c)
      out.at(c, x, y) = static_cast<float>(rgb[static_cast<std::size_t>(c)] * white);
    return;
  }
  for (int c = 0; c < out.count; ++c)
    out.at(c, x, y) = static_cast<float>(pixel[static_cast<std::size_t>(c)]);
}

}  // namespace ungrain
