// [001] version 0: one thread, the spatial weights in a table, the range weights computed.
#include <cmath>
#include <vector>

#include "study/bilateral/rungs.h"
#include "study/sequential.h"

namespace ungrain::study {
namespace {

void filter_row(const Picture& picture, const std::vector<float>& spatial_weights, int radius,
                float range_factor, int y) {
  for (int x = 0; x < picture.width; ++x) {
    const float* middle = picture.pixels + static_cast<std::ptrdiff_t>(y) * picture.stride + x;
    const float* spatial = spatial_weights.data();
    float weights = 0;
    float values = 0;
    for (int dy = -radius; dy <= radius; ++dy) {
      for (int dx = -radius; dx <= radius; ++dx) {
        const float value = middle[static_cast<std::ptrdiff_t>(dy) * picture.stride + dx];
        const float difference = value - *middle;
        const float weight = *spatial++ * std::exp(range_factor * difference * difference);
        weights += weight;
        values += weight * value;
      }
    }
    picture.out[static_cast<std::ptrdiff_t>(y) * picture.width + x] = values / weights;
  }
}

std::optional<Prepared> prepare(const RungCall& call) {
  const int radius = call.strengths.radius;
  std::vector<float> spatial;
  for (int dy = -radius; dy <= radius; ++dy) {
    for (int dx = -radius; dx <= radius; ++dx) {
      spatial.push_back(static_cast<float>(
          std::exp(-(dx * dx + dy * dy) / 2.0 / call.strengths.sigma_space / call.strengths.sigma_space)));
    }
  }
  const auto factor = static_cast<float>(-0.5 / (call.strengths.sigma_range * call.strengths.sigma_range));
  return by_rows(call, [=, picture = call.host, table = std::move(spatial)](int y) {
    filter_row(picture, table, radius, factor, y);
  });
}

}  // namespace

Rung bilateral_sequential() {
  return {.name = "sequential",
          .paper = "[001] version 0",
          .idea = "one thread of the processor",
          .shapes = Shapes::none,
          .gpu = false,
          .prepare = prepare};
}

}  // namespace ungrain::study
