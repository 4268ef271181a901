#include <cmath>

#include "cpu/separable.h"
#include "methods/gaussian/gaussian.h"

namespace ungrain {

Pipeline gaussian_cpu(const GaussianParams& params, const ImageSpec& spec) {
  const int radius = params.radius.value();
  if (params.sigma == 0 || radius == 0) return {};
  std::vector<double> half;
  for (int k = 0; k <= radius; ++k) half.push_back(std::exp(-std::pow(k / params.sigma, 2) / 2));
  return weighted_mean(half, params.border, spec);
}

}  // namespace ungrain
