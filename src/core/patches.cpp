#include "core/patches.h"

#include <cmath>

#include "ungrain/methods/common.h"

namespace ungrain {

Reach search_reach(int search, int patch, int radius_t) {
  if (search == whole_image) return {.whole = true};
  const int reach = search / 2 + patch / 2;
  return {.x = reach, .y = reach, .before = radius_t, .after = radius_t};
}

std::vector<double> patch_weights(int patch, double sigma) {
  std::vector<double> weights;
  double sum = 0;
  for (int k = -(patch / 2); k <= patch / 2; ++k) {
    weights.push_back(sigma == 0 ? 1 : std::exp(-std::pow(k / sigma, 2) / 2));
    sum += weights.back();
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

Rect search_area(int search, const Extent& image, int x, int y) {
  if (search == whole_image) return {0, 0, image.width, image.height};
  const int reach = search / 2;
  return {x - reach, y - reach, x + reach + 1, y + reach + 1};
}

double PatchDistance::operator()(int x, int y, const BorderedPlanes<const double>& other, int other_x,
                                 int other_y) const {
  const int reach = static_cast<int>(weights.size()) / 2;
  double sum = 0;
  double total = 0;
  for (int ky = -reach; ky <= reach; ++ky) {
    for (int kx = -reach; kx <= reach; ++kx) {
      if (!image.counts(x + kx, y + ky) || !other.counts(other_x + kx, other_y + ky)) continue;
      const double weight =
          weights[static_cast<std::size_t>(kx + reach)] * weights[static_cast<std::size_t>(ky + reach)];
      total += weight;
      for (int c = first; c < first + count; ++c) {
        const double difference =
            (image.at(c, x + kx, y + ky) - other.at(c, other_x + kx, other_y + ky)) / strength;
        sum += weight * difference * difference;
      }
    }
  }
  return sum / total / divisor;
}

}  // namespace ungrain
