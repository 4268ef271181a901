#include "methods/bm3d/bm3d.h"
#include "methods/bm3d/fast.h"
#include "methods/bm3d/scales.h"
#include "methods/bm3d/time.h"

namespace ungrain {

Pipeline bm3d_cpu(const Bm3dParams& params, const ImageSpec& spec) {
  return bm3d_in_scales(params, spec, cpu_scale_passes(), [](const Bm3dParams& p, const ImageSpec& of) {
    const Bm3dSettings settings = bm3d_settings(p, of);
    if (is_identity(settings)) return Pipeline{};
    if (settings.over_time) return bm3d_time_cpu(settings, of);
    return bm3d_fast_takes(settings, of) ? bm3d_fast(settings, of) : bm3d_general(settings, of);
  });
}

}  // namespace ungrain
