#include "core/border.h"
#include "core/pixels.h"
#include "methods/box/box.h"

namespace ungrain {
namespace {

double mean_around(const BorderedPlanes<const float>& image, int plane, int x, int y, int radius) {
  double sum = 0;
  int count = 0;
  for (int dy = -radius; dy <= radius; ++dy) {
    for (int dx = -radius; dx <= radius; ++dx) {
      if (!image.counts(x + dx, y + dy)) continue;
      sum += image.at(plane, x + dx, y + dy);
      ++count;
    }
  }
  return sum / count;
}

}  // namespace

Pipeline box_reference(const BoxParams& params, const ImageSpec& spec) {
  const auto run = [params](const StageCall& call) {
    const BorderedPlanes image(call.in[0], call.image, params.border);
    for_each_pixel(call, [&](int x, int y) {
      for (int plane = 0; plane < call.out.count; ++plane) {
        call.out.at(plane, x, y) = static_cast<float>(mean_around(image, plane, x, y, params.radius));
      }
    });
  };
  return {.stages = {{.name = "box",
                      .reach = {.x = params.radius, .y = params.radius},
                      .planes = spec.colour_channels(),
                      .run = run}},
          .wraps = params.border == Border::wrap};
}

}  // namespace ungrain
