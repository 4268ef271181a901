#include "methods/bm3d/scales.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/portable_math.h"
#include "noise/correlation.h"
#include "noise/noise_model.h"

namespace ungrain {
namespace {

constexpr int side = NoiseModel::side;
constexpr double pi = 3.141592653589793;
using Spectrum = NoiseModel::Spectrum;

// Bilinear interpolation of the variances at whole frequencies.
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

// The share of power that a mean of two neighbours leaves at frequency i of 8, a wave of 16 / i pixels.
double left_by_mean(double frequency) {
  const double amplitude = portable::cos(pi * frequency / (2 * side));
  return amplitude * amplitude;
}

// The spectrum of the means of 2 x 2 pixels. Its frequency i is i / 2 of the image; the frequency mirrored at
// the finest one is aliased onto it.
Spectrum of_half(const Spectrum& spectrum) {
  Spectrum variances;
  for (int n = 0; n < side * side; ++n) variances[n] = spectrum[n] * spectrum[n];
  variances[0] = std::max(variances[1], variances[side]);  // not measured; estimated from its neighbours
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

// Halving and enlarging along one axis, as the passes of two_scales() do it: the weight of pixel `from` in
// pixel x, which depends on whether x is even.
double weight_of_pixel(int x, int from) {
  const int own = x >= 0 ? x / 2 : (x - 1) / 2;
  const int other = x % 2 == 0 ? own - 1 : own + 1;
  const int pair = from >= 0 ? from / 2 : (from - 1) / 2;
  return pair == own ? 0.375 : pair == other ? 0.125 : 0;
}

// The share of white noise's deviation that stays in each coefficient after subtracting what halving and
// enlarging keep.
const Spectrum& left_by_coarse() {
  static const Spectrum shares = [] {
    std::array<double, side> kept{};     // of a coefficient in its own result
    std::array<double, side> squares{};  // of all coefficients in the result
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

// ---- The same for a known correlation, which also gives the covariances of patches

// A channel whose covariances are `covariance(dx, dy)` times the square of its deviation.
template <class Covariance>
NoiseModel::Channel with_covariances(NoiseModel::Channel channel, int reach, const Covariance& covariance) {
  const double variance = covariance(0, 0);
  if (!(variance > 0)) return channel;
  std::vector<double> correlation;
  for (int dy = -reach; dy <= reach; ++dy) {
    for (int dx = -reach; dx <= reach; ++dx) {
      // The mean of both, because rounding may have made them different.
      const double both = (covariance(dx, dy) + covariance(-dx, -dy)) / (2 * variance);
      correlation.push_back(dx == 0 && dy == 0 ? 1 : std::clamp(both, -1.0, 1.0));
    }
  }
  const PatchCovariances covariances(correlation, 0);
  const double scale = std::sqrt(variance) * band_rms(channel.spectrum, {0, 2 * (side - 1)});
  for (double& deviation : channel.deviations) deviation *= scale;
  for (std::size_t n = 0; n < channel.spectrum.size(); ++n)
    channel.spectrum[n] = std::sqrt(std::max(covariances.at(0, 0)[n], 0.0));
  channel.correlation = std::move(correlation);
  return channel;
}

// The channel of means of 2 x 2 pixels: its covariances are those of pixels 2 (dx, dy) apart and their
// neighbours.
NoiseModel::Channel half_of(const NoiseModel::Channel& channel) {
  const CorrelationSquare own(channel.correlation);
  return with_covariances(channel, (own.reach() + 1) / 2, [&](int dx, int dy) {
    double sum = 0;
    for (int b = -1; b <= 1; ++b) {
      for (int a = -1; a <= 1; ++a)
        sum += (a == 0 ? 0.5 : 0.25) * (b == 0 ? 0.5 : 0.25) * own.at(2 * dx + a, 2 * dy + b);
    }
    return sum;
  });
}

// The channel after subtracting what halving and enlarging keep: the mean over the four positions of a pixel
// relative to the halves.
NoiseModel::Channel rest_of(const NoiseModel::Channel& channel) {
  const CorrelationSquare own(channel.correlation);
  // The taps of a pixel's value, by the parity of its column and row.
  struct Tap {
    int x;
    int y;
    double weight;
  };
  std::vector<Tap> taps[2][2];
  for (const int y : {0, 1}) {
    for (const int x : {0, 1}) {
      taps[y][x].push_back({0, 0, 1});
      for (int dy = -3; dy <= 3; ++dy) {
        for (int dx = -3; dx <= 3; ++dx) {
          const double weight = weight_of_pixel(x, x + dx) * weight_of_pixel(y, y + dy);
          if (weight != 0) taps[y][x].push_back({dx, dy, -weight});
        }
      }
    }
  }
  constexpr int taps_reach = 6;  // of two pixels' taps added
  return with_covariances(channel, own.reach() + taps_reach, [&](int dx, int dy) {
    double sum = 0;
    for (const int y : {0, 1}) {
      for (const int x : {0, 1}) {
        for (const Tap& a : taps[y][x]) {
          for (const Tap& b : taps[(y + dy) & 1][(x + dx) & 1])
            sum += a.weight * b.weight * own.at(dx + b.x - a.x, dy + b.y - a.y) / 4;
        }
      }
    }
    return sum;
  });
}

Bm3dParams with_model(Bm3dParams params, NoiseModel model) {
  params.scales = 1;
  params.sigma = {mean_deviation(model, 0)};
  params.noise_model = std::make_shared<const NoiseModel>(std::move(model));
  return params;
}

}  // namespace

int bm3d_scales(const NoiseModel& model, const ImageSpec& spec) {
  constexpr int least_side = 64;  // a window at half the size is still smaller than the image
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
  for (NoiseModel::Channel& channel : model.channels) {
    if (channel.correlation.empty()) {
      channel.spectrum = of_half(channel.spectrum);
    } else {
      channel = half_of(channel);
    }
  }
  return with_model(params, std::move(model));
}

Bm3dParams bm3d_fine(const Bm3dParams& params) {
  NoiseModel model = *params.noise_model;
  for (NoiseModel::Channel& channel : model.channels) {
    if (!channel.correlation.empty()) {
      channel = rest_of(channel);
      continue;
    }
    for (int n = 0; n < side * side; ++n) channel.spectrum[n] *= left_by_coarse()[n];
  }
  return with_model(params, std::move(model));
}

}  // namespace ungrain
