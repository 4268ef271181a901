// The noise of a ycbcr image from that of its luma and of its chroma.
#pragma once

#include "ungrain/estimate.h"
#include "ungrain/noise_model.h"

namespace ungrain {

NoiseEstimate joined_noise(const NoiseEstimate& luma, const NoiseEstimate& chroma);
// Levels, blocks and darkest and brightest level are luma's.
NoiseModelEstimate joined_noise(const NoiseModelEstimate& luma, const NoiseModelEstimate& chroma);

// Gives the rows of luma and of chroma to an estimator of each. `view` has the rows from `first` on.
template <class Estimator>
void add_ycbcr_rows(ConstImageView view, int first, int height, Estimator& luma, Estimator& chroma) {
  view.region = {0, first, view.spec.width, height};
  luma.add_rows(luma_view(view));
  const ConstImageView rows = chroma_view(view);
  if (rows.spec.height > 0) chroma.add_rows(rows);
}

}  // namespace ungrain
