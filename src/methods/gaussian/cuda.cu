#include "cuda/separable.h"
#include "cuda/slow_mean.h"
#include "methods/gaussian/gaussian.h"

namespace ungrain {

Pipeline gaussian_cuda(const GaussianParams& params, const ImageSpec& spec) {
  const std::vector<double> half = gaussian_half(params.sigma, params.radius.value());
  Pipeline pipeline;
  if (half.size() > 1) pipeline = cuda::separable_mean(half, params.border, spec.colour_channels());
  return cuda::with_slow_mean(std::move(pipeline), gaussian_half(params.sigma_z, params.radius_z.value()),
                              params.border, spec.colour_channels());
}

}  // namespace ungrain
