// The backends of bilateral.
#pragma once

#include "core/method.h"
#include "ungrain/methods/bilateral.h"

namespace ungrain {

Pipeline bilateral_reference(const BilateralParams& params, const ImageSpec& spec);
Pipeline bilateral_cpu(const BilateralParams& params, const ImageSpec& spec);
Pipeline bilateral_cuda(const BilateralParams& params, const ImageSpec& spec);

// quality = grid; the other builders delegate to these.
Pipeline bilateral_grid_reference(const BilateralParams& params, const ImageSpec& spec);
Pipeline bilateral_grid_cpu(const BilateralParams& params, const ImageSpec& spec);
Pipeline bilateral_grid_cuda(const BilateralParams& params, const ImageSpec& spec);

// A strength of 0, or a window of one pixel, leaves the image as it is.
inline bool is_identity(const BilateralParams& params) {
  return (params.radius == 0 && params.radius_t == 0) || params.sigma_space.value() == 0 ||
         params.sigma_range.value() == 0;
}

// The squared distance in space, in deviations, of an image `offset` images away.
inline double squared_distance_of_image(const BilateralParams& params, int offset) {
  const double distance = offset * params.step_t / params.sigma_space.value();
  return distance * distance;
}

// How the channels that share a weight are compared. For one channel the distances are equal, and only the
// Euclidean one has kernels for it.
inline ColourDistance distance_among(const BilateralParams& params, int channels) {
  return channels == 1 ? ColourDistance::euclidean : params.colour_distance;
}

// Below this radius the exact filter costs less than the grid, on a CPU and on a GPU, and quality grid
// computes it instead.
inline constexpr int smallest_grid_radius = 6;
inline bool uses_grid(const BilateralParams& params) {
  return params.quality == BilateralQuality::grid && params.radius >= smallest_grid_radius;
}

// The window's reach along each axis, for each pass: one pass, or two for separable.
inline std::vector<Reach> bilateral_passes(const BilateralParams& params) {
  const int r = params.radius;
  if (params.quality != BilateralQuality::separable) {
    return {{.x = r, .y = r, .before = params.radius_t, .after = params.radius_t}};
  }
  return {{.x = r, .y = 0}, {.x = 0, .y = r}};
}

}  // namespace ungrain
