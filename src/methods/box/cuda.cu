#include "cuda/separable.h"
#include "cuda/slow_mean.h"
#include "methods/box/box.h"

namespace ungrain {

Pipeline box_cuda(const BoxParams& params, const ImageSpec& spec) {
  const auto ones = [](int radius) { return std::vector<double>(static_cast<std::size_t>(radius) + 1, 1.0); };
  Pipeline pipeline;
  if (params.radius > 0) {
    pipeline = cuda::separable_mean(ones(params.radius), params.border, spec.colour_channels());
  }
  return cuda::with_slow_mean(std::move(pipeline), ones(params.radius_z), params.border,
                              spec.colour_channels());
}

}  // namespace ungrain
