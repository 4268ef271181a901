#include <cmath>
#include <vector>

#include "core/window.h"
#include "methods/bilateral/bilateral.h"

namespace ungrain {
namespace {

double squared(double v) { return v * v; }

// The weighted sums of the channels [first, first + count) of one pixel, which share their weights.
struct PixelSums {
  double weights = 0;
  std::vector<double> values;
};

// Adds the window of that reach around (x, y) in one of the images, `offset` images away.
void add_window(const BilateralParams& params, const Reach& reach, const BorderedPlanes<const double>& own,
                const BorderedPlanes<const double>& image, int offset, int x, int y, int first,
                PixelSums& sums) {
  const int count = static_cast<int>(sums.values.size());
  const double sigma_range = params.sigma_range.value();
  const int divisor = difference_divisor(params.colour, count);
  for (int dy = -reach.y; dy <= reach.y; ++dy) {
    for (int dx = -reach.x; dx <= reach.x; ++dx) {
      if (!in_window(params.window, params.radius, dx, dy) || !image.counts(x + dx, y + dy)) continue;
      double absolutes = 0;
      double squares = 0;
      for (int c = first; c < first + count; ++c) {
        const double difference = (image.at(c, x + dx, y + dy) - own.at(c, x, y)) / sigma_range;
        absolutes += std::abs(difference);
        squares += squared(difference);
      }
      const bool city_block = params.colour_distance == ColourDistance::city_block;
      const double range_distance = city_block ? squared(absolutes) : squares / divisor;
      const double distance = squared(dx / params.sigma_space.value()) +
                              squared(dy / params.sigma_space.value()) +
                              squared_distance_of_image(params, offset);
      const double weight = std::exp(-distance / 2) * std::exp(-range_distance / 2);
      sums.weights += weight;
      for (int c = 0; c < count; ++c) {
        sums.values[static_cast<std::size_t>(c)] += weight * image.at(first + c, x + dx, y + dy);
      }
    }
  }
}

}  // namespace

Pipeline bilateral_reference(const BilateralParams& params, const ImageSpec& spec) {
  if (is_identity(params)) return {};
  if (uses_grid(params)) return bilateral_grid_reference(params, spec);
  const double white = spec.white();
  Pipeline pipeline{.stages = {}, .wraps = params.border == Border::wrap, .slow_border = Border::shrink};
  for (const Reach& reach : bilateral_passes(params)) {
    const auto run = [=](const StageCall& call) {
      filter_working_images(
          call, params.colour, white, params.border,
          [&](const WorkingImages& images, int x, int y, int first, int count, double* result) {
            PixelSums sums{.values = std::vector<double>(static_cast<std::size_t>(count), 0.0)};
            for (std::size_t i = 0; i < images.all.size(); ++i) {
              const int offset = static_cast<int>(i) - static_cast<int>(images.own);
              add_window(params, reach, images.image(), images.all[i], offset, x, y, first, sums);
            }
            for (int c = 0; c < count; ++c)
              result[c] = sums.values[static_cast<std::size_t>(c)] / sums.weights;
          });
    };
    pipeline.stages.push_back(
        {.name = "bilateral", .reach = reach, .planes = spec.colour_channels(), .run = run});
  }
  return pipeline;
}

}  // namespace ungrain
