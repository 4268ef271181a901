#include <algorithm>
#include <cmath>
#include <vector>

#include "core/patches.h"
#include "core/window.h"
#include "methods/nlm_bilateral/nlm_bilateral.h"

namespace ungrain {
namespace {

double squared(double v) { return v * v; }

// One pixel, the channels that share its weights.
void filter_pixel(const NlmBilateralParams& params, const PatchDistance& distance,
                  const WorkingImages& images, const Extent& extent, int x, int y, double* result) {
  const BorderedPlanes<const double>& own = images.image();
  double weights = 0;
  std::fill_n(result, distance.count, 0.0);
  const Rect area = search_area(params.search, extent, x, y);
  for (const BorderedPlanes<const double>& image : images.all) {
    for (int qy = area.y0; qy < area.y1; ++qy) {
      for (int qx = area.x0; qx < area.x1; ++qx) {
        if (!image.counts(qx, qy)) continue;
        double difference = 0;
        for (int c = distance.first; c < distance.first + distance.count; ++c) {
          difference += squared((own.at(c, x, y) - image.at(c, qx, qy)) / params.sigma_range.value());
        }
        const double space = squared((qx - x) / params.sigma_space) + squared((qy - y) / params.sigma_space);
        const double weight = std::exp(-distance(x, y, image, qx, qy) / 2) *
                              std::exp(-difference / distance.divisor / 2) * std::exp(-space / 2);
        weights += weight;
        for (int c = 0; c < distance.count; ++c) result[c] += weight * image.at(distance.first + c, qx, qy);
      }
    }
  }
  for (int c = 0; c < distance.count; ++c) result[c] /= weights;
}

}  // namespace

Pipeline nlm_bilateral_reference(const NlmBilateralParams& params, const ImageSpec& spec) {
  if (is_identity(params)) return {};
  const double white = spec.white();
  const std::vector<double> patch = patch_weights(params.patch.value(), 0);
  const auto run = [=](const StageCall& call) {
    filter_working_images(
        call, params.colour, white, params.border,
        [&](const WorkingImages& images, int x, int y, int first, int count, double* result) {
          const int divisor = difference_divisor(params.colour, count);
          filter_pixel(params, {patch, images.image(), first, count, divisor, params.sigma_h.value()}, images,
                       call.image, x, y, result);
        });
  };
  return {.stages = {{.name = "nlm-bilateral",
                      .reach = search_reach(params.search, params.patch.value(), params.radius_t),
                      .planes = spec.colour_channels(),
                      .run = run}},
          .wraps = params.border == Border::wrap,
          .slow_border = Border::shrink};
}

}  // namespace ungrain
