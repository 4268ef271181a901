#include "core/border.h"
#include "core/pixels.h"
#include "methods/box/box.h"

namespace ungrain {
namespace {

// Of the images around, each with its border; an image that stands nowhere is 0, or under `shrink` left out.
double mean_around(const StageCall& call, const BoxParams& params, int plane, int x, int y) {
  double sum = 0;
  int count = 0;
  for (int dz = -params.radius_z; dz <= params.radius_z; ++dz) {
    const bool there = call.at(0, dz).data != nullptr;
    if (!there && params.border == Border::shrink) continue;
    const BorderedPlanes image(call.at(0, dz), call.image, params.border);
    for (int dy = -params.radius; dy <= params.radius; ++dy) {
      for (int dx = -params.radius; dx <= params.radius; ++dx) {
        if (!image.counts(x + dx, y + dy)) continue;
        if (there) sum += image.at(plane, x + dx, y + dy);
        ++count;
      }
    }
  }
  return sum / count;
}

}  // namespace

Pipeline box_reference(const BoxParams& params, const ImageSpec& spec) {
  const auto run = [params](const StageCall& call) {
    for_each_pixel(call, [&](int x, int y) {
      for (int plane = 0; plane < call.out.count; ++plane) {
        call.out.at(plane, x, y) = static_cast<float>(mean_around(call, params, plane, x, y));
      }
    });
  };
  return {.stages = {{.name = "box",
                      .reach = {.x = params.radius,
                                .y = params.radius,
                                .before = params.radius_z,
                                .after = params.radius_z},
                      .planes = spec.colour_channels(),
                      .run = run}},
          .wraps = params.border == Border::wrap,
          .slow_border = params.border};
}

}  // namespace ungrain
