#include <cmath>
#include <vector>

#include "core/border.h"
#include "core/pixels.h"
#include "core/window.h"
#include "methods/bilateral/bilateral.h"

namespace ungrain {
namespace {

double squared(double v) { return v * v; }

// The channels [first, first + count) of one pixel, filtered with one set of weights.
void filter_pixel(const BilateralParams& params, const BorderedPlanes<const double>& image, int x, int y,
                  int first, int count, double* result) {
  const double sigma_range = params.sigma_range.value();
  const int divisor = difference_divisor(params.colour, count);
  double weights = 0;
  std::vector<double> sums(static_cast<std::size_t>(count), 0.0);
  for (int dy = -params.radius; dy <= params.radius; ++dy) {
    for (int dx = -params.radius; dx <= params.radius; ++dx) {
      if (!in_window(params.window, params.radius, dx, dy) || !image.counts(x + dx, y + dy)) continue;
      double difference = 0;
      for (int c = first; c < first + count; ++c) {
        difference += squared((image.at(c, x + dx, y + dy) - image.at(c, x, y)) / sigma_range);
      }
      const double distance = squared(dx / params.sigma_space) + squared(dy / params.sigma_space);
      const double weight = std::exp(-distance / 2) * std::exp(-difference / divisor / 2);
      weights += weight;
      for (int c = 0; c < count; ++c) {
        sums[static_cast<std::size_t>(c)] += weight * image.at(first + c, x + dx, y + dy);
      }
    }
  }
  for (int c = 0; c < count; ++c) result[c] = sums[static_cast<std::size_t>(c)] / weights;
}

}  // namespace

Pipeline bilateral_reference(const BilateralParams& params, const ImageSpec& spec) {
  if (is_identity(params)) return {};
  const double white = spec.white();
  const auto run = [=](const StageCall& call) {
    const WorkingCopy copy(call.in[0], params.colour, white);
    const BorderedPlanes image(copy.planes(), call.image, params.border);
    const int channels = call.out.count;
    const int together = channels_together(params.colour, channels);
    for_each_pixel(call, [&](int x, int y) {
      std::vector<double> pixel(static_cast<std::size_t>(channels));
      for (int first = 0; first < channels; first += together) {
        filter_pixel(params, image, x, y, first, together, &pixel[static_cast<std::size_t>(first)]);
      }
      store_working_pixel(pixel, params.colour, white, call.out, x, y);
    });
  };
  return {.stages = {{.name = "bilateral",
                      .reach = {.x = params.radius, .y = params.radius},
                      .planes = spec.colour_channels(),
                      .run = run}},
          .wraps = params.border == Border::wrap};
}

}  // namespace ungrain
