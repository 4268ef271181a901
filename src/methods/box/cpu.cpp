#include "cpu/separable.h"
#include "cpu/slow_mean.h"
#include "methods/box/box.h"

namespace ungrain {

Pipeline box_cpu(const BoxParams& params, const ImageSpec& spec) {
  Pipeline pipeline;
  if (params.radius > 0) pipeline = box_mean(params.radius, params.border, spec);
  return with_slow_mean(std::move(pipeline),
                        std::vector<double>(static_cast<std::size_t>(params.radius_z) + 1, 1.0),
                        params.border, spec.colour_channels());
}

}  // namespace ungrain
