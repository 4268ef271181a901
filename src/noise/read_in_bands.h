// Images that are read once, a band of rows at a time.
#pragma once

#include <algorithm>

#include "ungrain/denoiser.h"
#include "ungrain/image.h"

namespace ungrain {

template <class Look>
void for_bands(RowReader& rows, const ImageSpec& spec, Look look) {
  constexpr int about_pixels = 1 << 20;
  ImageSpec band_spec = spec;
  band_spec.height = std::clamp(about_pixels / spec.width / spec.chroma.y, 1, spec.height) * spec.chroma.y;
  band_spec.height = std::min(band_spec.height, spec.height);
  Image band(band_spec);
  for (int first = 0; first < spec.height; first += band_spec.height) {
    const int count = std::min(band_spec.height, spec.height - first);
    ImageView view = band.view().rows(0, count);
    view.region = {0, first, spec.width, spec.height};
    rows.read_rows(first, view);
    look(ConstImageView(view));
  }
}

template <class Estimator>
auto estimate_in_bands(Estimator estimator, RowReader& rows, const ImageSpec& spec) {
  for_bands(rows, spec, [&](const ConstImageView& band) { estimator.add_rows(band); });
  return estimator.finish();
}

}  // namespace ungrain
