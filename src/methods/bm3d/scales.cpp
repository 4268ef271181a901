#include "methods/bm3d/scales.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/portable_math.h"
#include "noise/noise_model.h"

namespace ungrain {
namespace {

constexpr int side = NoiseModel::side;
constexpr double pi = 3.141592653589793;
using Spectrum = NoiseModel::Spectrum;

// Of the variances at whole frequencies.
double between(const Spectrum& variances, double across, double down) {
  const int x0 = static_cast<int>(across);
  const int y0 = static_cast<int>(down);
  const int x1 = std::min(x0 + 1, side - 1);
  const int y1 = std::min(y0 + 1, side - 1);
  const double fx = across - x0;
  const double fy = down - y0;
  return (1 - fy) * ((1 - fx) * variances[y0 * side + x0] + fx * variances[y0 * side + x1]) +
         fy * ((1 - fx) * variances[y1 * side + x0] + fx * variances[y1 * side + x1]);
}

// What a mean of two neighbours leaves of the power at frequency i of 8, a wave of 16 / i pixels.
double left_by_mean(double frequency) {
  const double amplitude = portable::cos(pi * frequency / (2 * side));
  return amplitude * amplitude;
}

// The spectrum of the means of 2 x 2 pixels. Frequency i there is i / 2 here, and what lies as far from the
// finest frequency on the other side is folded onto it.
Spectrum of_half(const Spectrum& spectrum) {
  Spectrum variances;
  for (int n = 0; n < side * side; ++n) variances[n] = spectrum[n] * spectrum[n];
  variances[0] = std::max(variances[1], variances[side]);  // not measured, but guessed from above
  Spectrum half;
  for (int j = 0; j < side; ++j) {
    for (int i = 0; i < side; ++i) {
      double variance = 0;
      for (const double down : {j / 2.0, side - j / 2.0}) {
        for (const double across : {i / 2.0, side - i / 2.0}) {
          const double power =
              between(variances, std::min<double>(across, side - 1), std::min<double>(down, side - 1));
          variance += power * left_by_mean(across) * left_by_mean(down) / 4;
        }
      }
      half[j * side + i] = std::sqrt(variance);
    }
  }
  return half;
}

// Halving and enlarging again along one axis, as the passes of two_scales() do it: the row of pixel x in
// terms of the pixels around it, for an even or an odd x.
double weight_of_pixel(int x, int from) {
  const int own = x >= 0 ? x / 2 : (x - 1) / 2;
  const int other = x % 2 == 0 ? own - 1 : own + 1;
  const int pair = from >= 0 ? from / 2 : (from - 1) / 2;
  return pair == own ? 0.375 : pair == other ? 0.125 : 0;
}

// The share of white noise's deviation that stays in each coefficient where what halving and enlarging keep
// is taken away.
const Spectrum& left_by_coarse() {
  static const Spectrum shares = [] {
    std::array<double, side> kept{};     // of a coefficient in itself
    std::array<double, side> squares{};  // of all that it takes over
    for (int k = 0; k < side; ++k) {
      const double scale = std::sqrt((k == 0 ? 1.0 : 2.0) / side);
      const auto basis = [&](int x) { return scale * portable::cos(pi * (2 * x + 1) * k / (2.0 * side)); };
      for (const int parity : {0, 1}) {  // where the patch begins
        for (int from = -2; from < side + 2; ++from) {
          double sum = 0;
          for (int x = 0; x < side; ++x) sum += basis(x) * weight_of_pixel(x + parity, from + parity);
          squares[k] += sum * sum / 2;
          if (from >= 0 && from < side) kept[k] += sum * basis(from) / 2;
        }
      }
    }
    Spectrum values;
    for (int j = 0; j < side; ++j) {
      for (int i = 0; i < side; ++i) {
        const double left = 1 - 2 * kept[i] * kept[j] + squares[i] * squares[j];
        values[j * side + i] = std::sqrt(std::clamp(left, 0.0, 1.0));
      }
    }
    return values;
  }();
  return shares;
}

Bm3dParams with_model(Bm3dParams params, NoiseModel model) {
  params.scales = 1;
  params.sigma = {mean_deviation(model, 0)};
  params.noise_model = std::make_shared<const NoiseModel>(std::move(model));
  return params;
}

}  // namespace

int bm3d_scales(const NoiseModel& model, const ImageSpec& spec) {
  constexpr int least_side = 64;  // of which a window of half the size is still a part
  if (std::min(spec.width, spec.height) < least_side) return 1;
  constexpr double coarse = 2.5;
  return std::any_of(model.channels.begin(), model.channels.end(),
                     [](const NoiseModel::Channel& channel) {
                       return band_rms(channel.spectrum, low_band) >
                              coarse * band_rms(channel.spectrum, high_band);
                     })
             ? 2
             : 1;
}

Bm3dParams bm3d_coarse(const Bm3dParams& params) {
  NoiseModel model = *params.noise_model;
  for (NoiseModel::Channel& channel : model.channels) channel.spectrum = of_half(channel.spectrum);
  return with_model(params, std::move(model));
}

Bm3dParams bm3d_fine(const Bm3dParams& params) {
  NoiseModel model = *params.noise_model;
  for (NoiseModel::Channel& channel : model.channels) {
    for (int n = 0; n < side * side; ++n) channel.spectrum[n] *= left_by_coarse()[n];
  }
  return with_model(params, std::move(model));
}

}  // namespace ungrain
