#include "cpu/separable.h"
#include "methods/box/box.h"

namespace ungrain {

Pipeline box_cpu(const BoxParams& params, const ImageSpec& spec) {
  if (params.radius == 0) return {};
  return separable_mean(std::vector<double>(static_cast<std::size_t>(params.radius) + 1, 1.0), params.border,
                        spec.colour_channels());
}

}  // namespace ungrain
