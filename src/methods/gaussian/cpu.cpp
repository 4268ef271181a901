#include <cmath>

#include "cpu/separable.h"
#include "cpu/slow_mean.h"
#include "methods/gaussian/gaussian.h"

namespace ungrain {

std::vector<double> gaussian_half(double sigma, int radius) {
  std::vector<double> half{1};
  for (int k = 1; sigma > 0 && k <= radius; ++k) half.push_back(std::exp(-std::pow(k / sigma, 2) / 2));
  return half;
}

Pipeline gaussian_cpu(const GaussianParams& params, const ImageSpec& spec) {
  const std::vector<double> half = gaussian_half(params.sigma, params.radius.value());
  Pipeline pipeline;
  if (half.size() > 1) pipeline = weighted_mean(half, params.border, spec);
  return with_slow_mean(std::move(pipeline), gaussian_half(params.sigma_z, params.radius_z.value()),
                        params.border, spec.colour_channels());
}

}  // namespace ungrain
