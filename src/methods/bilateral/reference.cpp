#include <cmath>
#include <vector>

#include "core/border.h"
#include "core/colour.h"
#include "core/pixels.h"
#include "methods/bilateral/bilateral.h"

namespace ungrain {
namespace {

double squared(double v) { return v * v; }

// The input in double, in the space where it is filtered.
struct Working {
  std::vector<double> values;
  BasicPlanes<const double> planes;
};

Working working_copy(const ConstPlanes& in, bool lab, double white) {
  Working copy;
  const Rect& rect = in.rect;
  const std::ptrdiff_t plane_size = static_cast<std::ptrdiff_t>(rect.width()) * rect.height();
  copy.values.resize(static_cast<std::size_t>(plane_size * in.count));
  const auto at = [&](int plane, int x, int y) -> double& {
    return copy.values[static_cast<std::size_t>(plane * plane_size +
                                                static_cast<std::ptrdiff_t>(y) * rect.width() + x)];
  };
  for (int y = 0; y < rect.height(); ++y) {
    for (int x = 0; x < rect.width(); ++x) {
      for (int plane = 0; plane < in.count; ++plane) at(plane, x, y) = in.row(plane, rect.y0 + y)[x];
      if (!lab) continue;
      const Triple pixel = rgb_to_lab({at(0, x, y) / white, at(1, x, y) / white, at(2, x, y) / white});
      for (int plane = 0; plane < 3; ++plane) at(plane, x, y) = pixel[static_cast<std::size_t>(plane)];
    }
  }
  copy.planes = {copy.values.data(), rect, rect.width(), plane_size, in.count};
  return copy;
}

// The channels [first, first + count) of one pixel, filtered with one set of weights.
void filter_pixel(const BilateralParams& params, const BorderedPlanes<const double>& image, int x, int y,
                  int first, int count, double* result) {
  const double sigma_range = params.sigma_range.value();
  double weights = 0;
  std::vector<double> sums(static_cast<std::size_t>(count), 0.0);
  for (int dy = -params.radius; dy <= params.radius; ++dy) {
    for (int dx = -params.radius; dx <= params.radius; ++dx) {
      if (!in_window(params, dx, dy) || !image.counts(x + dx, y + dy)) continue;
      double difference = 0;
      for (int c = 0; c < count; ++c) {
        difference +=
            squared((image.at(first + c, x + dx, y + dy) - image.at(first + c, x, y)) / sigma_range);
      }
      // The mean over the channels, so that gray stored as RGB gives gray's result; in Lab the sum, which is
      // delta E.
      if (params.colour != ColourMode::lab) difference /= count;
      const double distance = squared(dx / params.sigma_space) + squared(dy / params.sigma_space);
      const double weight = std::exp(-distance / 2) * std::exp(-difference / 2);
      weights += weight;
      for (int c = 0; c < count; ++c)
        sums[static_cast<std::size_t>(c)] += weight * image.at(first + c, x + dx, y + dy);
    }
  }
  for (int c = 0; c < count; ++c) result[c] = sums[static_cast<std::size_t>(c)] / weights;
}

}  // namespace

Pipeline bilateral_reference(const BilateralParams& params, const ImageSpec& spec) {
  if (is_identity(params)) return {};
  const bool lab = params.colour == ColourMode::lab;
  const double white = spec.white();
  const auto run = [=](const StageCall& call) {
    const Working copy = working_copy(call.in[0], lab, white);
    const BorderedPlanes image(copy.planes, call.image, params.border);
    const int channels = call.out.count;
    const int together = params.colour == ColourMode::per_channel ? 1 : channels;
    for_each_pixel(call, [&](int x, int y) {
      std::vector<double> pixel(static_cast<std::size_t>(channels));
      for (int first = 0; first < channels; first += together) {
        filter_pixel(params, image, x, y, first, together, &pixel[static_cast<std::size_t>(first)]);
      }
      if (lab) {
        const Triple rgb = lab_to_rgb({pixel[0], pixel[1], pixel[2]});
        for (std::size_t c = 0; c < 3; ++c) pixel[c] = rgb[c] * white;
      }
      for (int c = 0; c < channels; ++c) {
        call.out.at(c, x, y) = static_cast<float>(pixel[static_cast<std::size_t>(c)]);
      }
    });
  };
  return {.stages = {{.name = "bilateral",
                      .reach = {.x = params.radius, .y = params.radius},
                      .planes = spec.colour_channels(),
                      .run = run}},
          .wraps = params.border == Border::wrap};
}

}  // namespace ungrain
