#include "cpu/separable.h"
#include "methods/box/box.h"

namespace ungrain {

Pipeline box_cpu(const BoxParams& params, const ImageSpec& spec) {
  if (params.radius == 0) return {};
  return box_mean(params.radius, params.border, spec);
}

}  // namespace ungrain
