#include <algorithm>
#include <cmath>
#include <vector>

#include "core/patches.h"
#include "core/window.h"
#include "methods/nlm/nlm.h"

namespace ungrain {
namespace {

// One pixel, the channels that share its weights.
void filter_pixel(const NlmParams& params, double sigma, const PatchDistance& distance,
                  const WorkingImages& images, const Extent& extent, int x, int y, double* result) {
  const double noise = 2 * std::pow(sigma / params.h.value(), 2);
  double weights = 0;
  double largest = 0;
  std::fill_n(result, distance.count, 0.0);
  const auto add = [&](const BorderedPlanes<const double>& image, int at_x, int at_y, double weight) {
    weights += weight;
    for (int c = 0; c < distance.count; ++c) result[c] += weight * image.at(distance.first + c, at_x, at_y);
  };
  const Rect area = search_area(params.search, extent, x, y);
  for (std::size_t i = 0; i < images.all.size(); ++i) {
    const BorderedPlanes<const double>& image = images.all[i];
    for (int qy = area.y0; qy < area.y1; ++qy) {
      for (int qx = area.x0; qx < area.x1; ++qx) {
        const bool is_self = i == images.own && qx == x && qy == y;
        if (is_self || !image.counts(qx, qy)) continue;
        const double weight = std::exp(-std::max(distance(x, y, image, qx, qy) - noise, 0.0));
        if (weight < smallest_weight) continue;
        largest = std::max(largest, weight);
        add(image, qx, qy, weight);
      }
    }
  }
  add(images.image(), x, y, params.self == SelfWeight::max ? std::max(largest, least_self_weight) : 1);
  for (int c = 0; c < distance.count; ++c) result[c] /= weights;
}

}  // namespace

Pipeline nlm_reference(const NlmParams& params, const ImageSpec& spec) {
  if (is_identity(params)) return {};
  const double white = spec.white();
  const double sigma = nlm_noise(params, spec);
  const std::vector<double> patch = patch_weights(params.patch.value(), params.patch_sigma.value());
  const auto run = [=](const StageCall& call) {
    filter_working_images(
        call, params.colour, white, params.border,
        [&](const WorkingImages& images, int x, int y, int first, int count, double* result) {
          const int divisor = difference_divisor(params.colour, count);
          filter_pixel(params, sigma, {patch, images.image(), first, count, divisor, params.h.value()},
                       images, call.image, x, y, result);
        });
  };
  return {.stages = {{.name = "nlm",
                      .reach = search_reach(params.search, params.patch.value(), params.radius_t),
                      .planes = spec.colour_channels(),
                      .run = run}},
          .wraps = params.border == Border::wrap,
          .slow_border = Border::shrink};
}

}  // namespace ungrain
