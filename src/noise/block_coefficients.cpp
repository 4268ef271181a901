#include "noise/block_coefficients.h"

#include <algorithm>
#include <cmath>

#include "core/opponent.h"
#include "core/portable_math.h"

namespace ungrain {
namespace {

using Spectrum = NoiseModel::Spectrum;
constexpr int side = NoiseModel::side;
constexpr int coefficients = side * side;

const Spectrum& cosines() {
  static const Spectrum basis = [] {
    constexpr double pi = 3.141592653589793;
    Spectrum values{};
    for (int k = 0; k < side; ++k) {
      const double scale = std::sqrt((k == 0 ? 1.0 : 2.0) / side);
      for (int x = 0; x < side; ++x)
        values[k * side + x] = scale * portable::cos(pi * (2 * x + 1) * k / (2.0 * side));
    }
    return values;
  }();
  return basis;
}

const Spectrum& exchanged_cosines() {  // rows and columns exchanged
  static const Spectrum basis = [] {
    Spectrum values{};
    for (int i = 0; i < coefficients; ++i) values[i % side * side + i / side] = cosines()[i];
    return values;
  }();
  return basis;
}

}  // namespace

Spectrum channel_of(const float* samples, int channels, int channel) {
  Spectrum block{};
  if (channels == 1) {
    std::copy_n(samples, coefficients, block.begin());
    return block;
  }
  for (int c = 0; c < channels; ++c) {
    const double factor = opponent_matrix[channel][c];
    const float* from = samples + static_cast<std::ptrdiff_t>(c) * coefficients;
    for (int i = 0; i < coefficients; ++i) block[i] += factor * double{from[i]};
  }
  return block;
}

Spectrum squared_coefficients(const Spectrum& block) {
  const Spectrum& basis = cosines();
  const Spectrum& exchanged = exchanged_cosines();
  Spectrum half;
  for (int y = 0; y < side; ++y) {
    std::array<double, side> sums{};
    for (int x = 0; x < side; ++x) {
      const double value = block[y * side + x];
      for (int i = 0; i < side; ++i) sums[i] += exchanged[x * side + i] * value;
    }
    std::copy(sums.begin(), sums.end(), half.begin() + y * side);
  }
  Spectrum squares;
  for (int j = 0; j < side; ++j) {
    std::array<double, side> sums{};
    for (int y = 0; y < side; ++y) {
      const double weight = basis[j * side + y];
      for (int i = 0; i < side; ++i) sums[i] += weight * half[y * side + i];
    }
    for (int i = 0; i < side; ++i) squares[j * side + i] = sums[i] * sums[i];
  }
  return squares;
}

}  // namespace ungrain
