#include "core/border.h"
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
    const Rect& area = call.out.rect;
    call.workers.for_each(area.height(), [&](std::int64_t row, int) {
      const int y = area.y0 + static_cast<int>(row);
      for (int plane = 0; plane < call.out.count; ++plane) {
        for (int x = area.x0; x < area.x1; ++x) {
          call.out.row(plane, y)[x - area.x0] =
              static_cast<float>(mean_around(image, plane, x, y, params.radius));
        }
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
