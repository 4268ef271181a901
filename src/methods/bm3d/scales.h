// Noise coarser than a patch: bm3d at half the size before bm3d at the image's own size.
#pragma once

#include "core/two_scales.h"
#include "methods/bm3d/settings.h"
#include "ungrain/methods/bm3d.h"

namespace ungrain {

// 2 if the model has much less noise in fine frequencies than in coarse ones and the image is large enough to
// be halved; else 1.
int bm3d_scales(const NoiseModel& model, const ImageSpec& spec);

// The parameters of both sizes, from resolved ones with a noise model.
Bm3dParams bm3d_coarse(const Bm3dParams& params);
Bm3dParams bm3d_fine(const Bm3dParams& params);

// `build` makes the pipeline of one size.
template <class Build>
Pipeline bm3d_in_scales(const Bm3dParams& params, const ImageSpec& spec, const ScalePasses& passes,
                        const Build& build) {
  if (params.scales.value_or(1) == 1) return build(params, spec);
  return two_scales(build(bm3d_coarse(params), half_of(spec)), build(bm3d_fine(params), spec), spec, passes);
}

}  // namespace ungrain
