#include "noise/block_coefficients.h"

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

}  // namespace

Spectrum channel_of(const float* samples, int channels, int channel) {
  Spectrum block{};
  for (int i = 0; i < coefficients; ++i) {
    if (channels == 1) {
      block[i] = samples[i];
    } else {
      for (int c = 0; c < channels; ++c) {
        block[i] += opponent_matrix[channel][c] * double{samples[c * coefficients + i]};
      }
    }
  }
  return block;
}

Spectrum squared_coefficients(const Spectrum& block) {
  const Spectrum& basis = cosines();
  Spectrum half{};
  for (int y = 0; y < side; ++y) {
    for (int i = 0; i < side; ++i) {
      for (int x = 0; x < side; ++x) half[y * side + i] += basis[i * side + x] * block[y * side + x];
    }
  }
  Spectrum squares{};
  for (int j = 0; j < side; ++j) {
    for (int i = 0; i < side; ++i) {
      double sum = 0;
      for (int y = 0; y < side; ++y) sum += basis[j * side + y] * half[y * side + i];
      squares[j * side + i] = sum * sum;
    }
  }
  return squares;
}

}  // namespace ungrain
