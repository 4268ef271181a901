#include <algorithm>
#include <vector>

#include "core/border.h"
#include "core/pixels.h"
#include "methods/median/median.h"

namespace ungrain {
namespace {

// The middle of the sorted values; the mean of the two middle ones if their number is even, which happens
// only with a shrinking border.
double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// The values of the windows in the images around. An image that does not exist is 0, or left out under
// `shrink`.
std::vector<double> values_around(const StageCall& call, const MedianParams& params, int plane, int x,
                                  int y) {
  std::vector<double> values;
  for (int dt = -params.radius_t; dt <= params.radius_t; ++dt) {
    const bool exists = call.at(0, dt).data != nullptr;
    if (!exists && params.border == Border::shrink) continue;
    const BorderedPlanes image(call.at(0, dt), call.image, params.border);
    for (int dy = -params.radius; dy <= params.radius; ++dy) {
      for (int dx = -params.radius; dx <= params.radius; ++dx) {
        if (!image.counts(x + dx, y + dy)) continue;
        values.push_back(exists ? image.at(plane, x + dx, y + dy) : 0);
      }
    }
  }
  return values;
}

}  // namespace

Pipeline median_reference(const MedianParams& params, const ImageSpec& spec) {
  const auto run = [params](const StageCall& call) {
    for_each_pixel(call, [&](int x, int y) {
      for (int plane = 0; plane < call.out.count; ++plane) {
        call.out.at(plane, x, y) = static_cast<float>(median_of(values_around(call, params, plane, x, y)));
      }
    });
  };
  return {.stages = {{.name = "median",
                      .reach = {.x = params.radius,
                                .y = params.radius,
                                .before = params.radius_t,
                                .after = params.radius_t},
                      .planes = spec.colour_channels(),
                      .run = run}},
          .wraps = params.border == Border::wrap,
          .slow_border = params.border};
}

}  // namespace ungrain
