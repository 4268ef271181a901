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

}  // namespace

Pipeline median_reference(const MedianParams& params, const ImageSpec& spec) {
  const auto run = [params](const StageCall& call) {
    const BorderedPlanes image(call.in[0], call.image, params.border);
    for_each_pixel(call, [&](int x, int y) {
      for (int plane = 0; plane < call.out.count; ++plane) {
        std::vector<double> values;
        for (int dy = -params.radius; dy <= params.radius; ++dy) {
          for (int dx = -params.radius; dx <= params.radius; ++dx) {
            if (image.counts(x + dx, y + dy)) values.push_back(image.at(plane, x + dx, y + dy));
          }
        }
        call.out.at(plane, x, y) = static_cast<float>(median_of(values));
      }
    });
  };
  return {.stages = {{.name = "median",
                      .reach = {.x = params.radius, .y = params.radius},
                      .planes = spec.colour_channels(),
                      .run = run}},
          .wraps = params.border == Border::wrap};
}

}  // namespace ungrain
