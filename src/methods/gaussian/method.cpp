#include <cmath>

#include "core/choices.h"
#include "methods/gaussian/gaussian.h"

namespace ungrain {

namespace {

Cost cost(const GaussianParams& p, const ImageSpec& spec) {
  const int taps = 2 * p.radius.value_or(static_cast<int>(3 * p.sigma)) + 1;
  return {.cpu_ns = (0.6 + 0.1 * taps) * spec.channels, .gpu_ns = (0.015 + 0.001 * taps) * spec.channels};
}

}  // namespace

const Method& gaussian_method() {
  using P = GaussianParams;
  static const Method method = make_method<P>({
      .summary = "Gaussian blur; blurs edges, a baseline",
      .descriptors =
          {
              describe::number(&P::sigma, "sigma", {.min = 0, .max = 256, .unit = Unit::pixels},
                               "standard deviation of the window; 0 returns the input"),
              describe::derived(
                  &P::radius, "radius", {.min = 0, .max = 1024, .unit = Unit::pixels}, "ceil(3 sigma)",
                  +[](const P& p, const ImageSpec&) -> std::optional<int> {
                    return static_cast<int>(std::ceil(3 * p.sigma));
                  },
                  "half-width of the window"),
              describe::number(&P::sigma_z, "sigma_z", {.min = 0, .max = 21},
                               "standard deviation along a sequence, in images; 0: each image by itself"),
              describe::derived(
                  &P::radius_z, "radius_z", {.min = 0, .max = 64}, "ceil(3 sigma_z)",
                  +[](const P& p, const ImageSpec&) -> std::optional<int> {
                    return static_cast<int>(std::ceil(3 * p.sigma_z));
                  },
                  "images before and after each that take part"),
              describe::border(&P::border),
          },
      .cost = cost,
      .depth = {{"sigma_z", "sigma"}},
      .reference = gaussian_reference,
      .cpu = gaussian_cpu,
      .cuda = UNGRAIN_CUDA_VERSION(gaussian_cuda),
  });
  return method;
}

}  // namespace ungrain
