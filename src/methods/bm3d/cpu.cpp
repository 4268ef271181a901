#include "methods/bm3d/bm3d.h"
#include "methods/bm3d/fast.h"

namespace ungrain {

Pipeline bm3d_cpu(const Bm3dParams& params, const ImageSpec& spec) {
  const Bm3dSettings settings = bm3d_settings(params, spec);
  if (is_identity(settings)) return {};
  return bm3d_fast_takes(settings, spec) ? bm3d_fast(settings, spec) : bm3d_general(settings, spec);
}

}  // namespace ungrain
