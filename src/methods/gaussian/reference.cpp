#include <cmath>

#include "core/border.h"
#include "core/pixels.h"
#include "methods/gaussian/gaussian.h"

namespace ungrain {
namespace {

double squared(double v) { return v * v; }

double blurred(const BorderedPlanes<const float>& image, int plane, int x, int y, int radius, double sigma) {
  double sum = 0;
  double weights = 0;
  for (int dy = -radius; dy <= radius; ++dy) {
    for (int dx = -radius; dx <= radius; ++dx) {
      if (!image.counts(x + dx, y + dy)) continue;
      const double weight = std::exp(-(squared(dx / sigma) + squared(dy / sigma)) / 2);
      sum += weight * image.at(plane, x + dx, y + dy);
      weights += weight;
    }
  }
  return sum / weights;
}

}  // namespace

Pipeline gaussian_reference(const GaussianParams& params, const ImageSpec& spec) {
  if (params.sigma == 0) return {};
  const int radius = params.radius.value();
  const auto run = [params, radius](const StageCall& call) {
    const BorderedPlanes image(call.in[0], call.image, params.border);
    for_each_pixel(call, [&](int x, int y) {
      for (int plane = 0; plane < call.out.count; ++plane) {
        call.out.at(plane, x, y) = static_cast<float>(blurred(image, plane, x, y, radius, params.sigma));
      }
    });
  };
  return {.stages = {{.name = "gaussian",
                      .reach = {.x = radius, .y = radius},
                      .planes = spec.colour_channels(),
                      .run = run}},
          .wraps = params.border == Border::wrap};
}

}  // namespace ungrain
