#include "cpu/patch_search_kernel.h"

#include <algorithm>
#include <cmath>

#include "core/border.h"
#include "core/window.h"
#include "cpu/exp.h"

namespace ungrain {
namespace {

// The factor of squared differences summed over the channels; never 0, because a square may be infinite.
float scale_of(double strength, int divisor) {
  return static_cast<float>(std::clamp(log2_e / (divisor * strength * strength), 1e-37, 1e36));
}

}  // namespace

SearchKernel::SearchKernel(const PatchSearch& s, const ImageSpec& spec)
    : search(s.search), radius_t(s.radius_t), border(s.border), space(s.space) {
  reach = static_cast<int>(s.patch.size()) / 2;
  channels = channels_per_weight(s.colour, spec.colour_channels());
  largest = s.self == SelfWeight::max;
  flat = std::all_of(s.patch.begin(), s.patch.end(), [&](double w) { return w == s.patch[0]; });
  // No weight is 0: it might be multiplied by an infinite square.
  for (const double weight : s.patch) patch.push_back(static_cast<float>(std::max(weight, 1e-37)));
  // Values are scaled to near 1, so that no square overflows; by a power of two, which is exactly reversible.
  const double white = s.colour == ColourMode::lab ? 100 : spec.white();
  to_unit = std::exp2(-std::round(std::log2(white)));
  const int divisor = difference_divisor(s.colour, channels);
  const double side = flat ? static_cast<double>(s.patch.size()) : 1;
  scale = scale_of(s.strength * to_unit * side, divisor);
  noise = static_cast<float>(std::min(1e30, 2 * std::pow(s.noise / s.strength, 2) * log2_e));
  compares_pixels = !std::isinf(s.range) || !std::isinf(s.space);
  pixel_scale = scale_of(s.range * to_unit * std::sqrt(2.0), divisor);
}

float SearchKernel::exponent_of_shift(int dx, int dy) const {
  const double x = dx / space;
  const double y = dy / space;
  return static_cast<float>(std::min(1e30, (x * x + y * y) / 2 * log2_e));
}

ConstPlanes gather_scaled(const SearchKernel& kernel, const ConstPlanes& planes, const Extent& image,
                          int first, const Rect& want, const SearchPlanes& to) {
  const auto factor = static_cast<float>(kernel.to_unit);
  const std::ptrdiff_t pitch = to.pitch;
  for (int c = 0; c < kernel.channels; ++c) {
    float* rows = to.memory + c * to.plane + rows_around * pitch;
    std::fill_n(rows - rows_around * pitch, rows_around * pitch, 0.0F);
    std::fill_n(rows + want.height() * pitch, rows_around * pitch, 0.0F);
    gather(planes, first + c, image, kernel.border, want, rows, pitch);
    for (int y = 0; y < want.height(); ++y) {
      float* row = rows + y * pitch;
      for (int x = 0; x < want.width(); ++x)
        row[x] = std::clamp(row[x] * factor, -most_scaled_value, most_scaled_value);
      std::fill(row + want.width(), row + pitch, 0.0F);
    }
  }
  std::fill_n(to.memory + kernel.channels * to.plane, SearchPlanes::behind, 0.0F);
  return {to.memory + rows_around * pitch, want, pitch, to.plane, kernel.channels};
}

Rect both_inside(const Extent& image, int dx, int dy) {
  return {std::max(0, -dx), std::max(0, -dy), std::min(image.width, image.width - dx),
          std::min(image.height, image.height - dy)};
}

void find_inverse_shares(const SearchKernel& kernel, const PatchShift& shift, float* shares, int pitch) {
  const int side = 2 * kernel.reach + 1;
  for (int x = 0; x < shift.weights.width(); ++x) {
    const int left = shift.weights.x0 + x - kernel.reach;
    const int begin = std::max(0, shift.compared.x0 - left);
    const int end = std::min(side, shift.compared.x1 - left);
    if (begin == 0 && end == side) {
      shares[x] = 1;
      continue;
    }
    float share = 0;
    for (int k = begin; k < end; ++k) share += kernel.patch[static_cast<std::size_t>(k)];
    shares[x] = share > 0 ? 1 / share : 0;
  }
  std::fill(shares + shift.weights.width(), shares + pitch, 0.0F);
}

}  // namespace ungrain
