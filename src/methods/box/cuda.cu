#include "cuda/separable.h"
#include "methods/box/box.h"

namespace ungrain {

Pipeline box_cuda(const BoxParams& params, const ImageSpec& spec) {
  if (params.radius == 0) return {};
  return cuda::separable_mean(std::vector<double>(static_cast<std::size_t>(params.radius) + 1, 1.0),
                              params.border, spec.colour_channels());
}

}  // namespace ungrain
