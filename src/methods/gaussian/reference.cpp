#include <cmath>

#include "core/border.h"
#include "core/pixels.h"
#include "methods/gaussian/gaussian.h"

namespace ungrain {
namespace {

double squared(double v) { return v * v; }

// Along an axis of which only the centre counts, sigma may be 0.
double in_sigmas(int offset, double sigma) { return offset == 0 ? 0 : offset / sigma; }

// Of the images around, each with its border; an image that stands nowhere is 0, or under `shrink` left out.
double blurred(const StageCall& call, const GaussianParams& params, int plane, int x, int y) {
  const int radius = params.sigma == 0 ? 0 : params.radius.value();
  double sum = 0;
  double weights = 0;
  for (int dz = -call.reach.before; dz <= call.reach.after; ++dz) {
    const bool there = call.at(0, dz).data != nullptr;
    if (!there && params.border == Border::shrink) continue;
    const BorderedPlanes image(call.at(0, dz), call.image, params.border);
    for (int dy = -radius; dy <= radius; ++dy) {
      for (int dx = -radius; dx <= radius; ++dx) {
        if (!image.counts(x + dx, y + dy)) continue;
        const double weight =
            std::exp(-(squared(in_sigmas(dx, params.sigma)) + squared(in_sigmas(dy, params.sigma)) +
                       squared(in_sigmas(dz, params.sigma_z))) /
                     2);
        if (there) sum += weight * image.at(plane, x + dx, y + dy);
        weights += weight;
      }
    }
  }
  return sum / weights;
}

}  // namespace

Pipeline gaussian_reference(const GaussianParams& params, const ImageSpec& spec) {
  if (params.sigma == 0 && params.sigma_z == 0) return {};
  const int radius = params.sigma == 0 ? 0 : params.radius.value();
  const int radius_z = params.sigma_z == 0 ? 0 : params.radius_z.value();
  const auto run = [params](const StageCall& call) {
    for_each_pixel(call, [&](int x, int y) {
      for (int plane = 0; plane < call.out.count; ++plane) {
        call.out.at(plane, x, y) = static_cast<float>(blurred(call, params, plane, x, y));
      }
    });
  };
  return {.stages = {{.name = "gaussian",
                      .reach = {.x = radius, .y = radius, .before = radius_z, .after = radius_z},
                      .planes = spec.colour_channels(),
                      .run = run}},
          .wraps = params.border == Border::wrap,
          .slow_border = params.border};
}

}  // namespace ungrain
