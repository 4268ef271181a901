#include "noise/correlation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "core/portable_math.h"

namespace ungrain {
namespace {

constexpr int side = NoiseModel::side;
constexpr double pi = 3.141592653589793;

// Autocorrelations of the cosine transform's functions along one axis, at distances of 0 to 7.
using Autocorrelations = std::array<std::array<double, side>, side>;

Autocorrelations autocorrelations() {
  Autocorrelations result{};
  for (int k = 0; k < side; ++k) {
    const double scale = std::sqrt((k == 0 ? 1.0 : 2.0) / side);
    std::array<double, side> wave{};
    for (int x = 0; x < side; ++x) wave[x] = scale * portable::cos(pi * (2 * x + 1) * k / (2.0 * side));
    for (int apart = 0; apart < side; ++apart) {
      for (int x = 0; x + apart < side; ++x) result[k][apart] += wave[x] * wave[x + apart];
    }
  }
  return result;
}

// The least power at any of (2 reach + 1)² frequencies. The square may be a part of a longer correlation, and
// truncation would give valid numbers negative power. So it is faded out linearly, which keeps all power at
// or above 0 if the whole correlation's is.
double least_power(const CorrelationSquare& square) {
  const int reach = square.reach();
  const int count = 2 * reach + 1;
  const auto size = static_cast<std::size_t>(count);
  std::vector<double> cosines(size);
  std::vector<double> sines(size);
  for (int n = 0; n < count; ++n) {
    cosines[n] = portable::cos(2 * pi * n / count);
    sines[n] = portable::sin(2 * pi * n / count);
  }
  // Calls body(place, index of the wave there) for all places from -reach to reach.
  const auto along_wave = [&](int frequency, const auto& body) {
    int turn = (count - frequency * reach % count) % count;
    for (int d = -reach; d <= reach; ++d) {
      body(d, turn);
      turn += frequency;
      if (turn >= count) turn -= count;
    }
  };
  const auto fade = [&](int d) { return 1 - std::abs(d) / (reach + 1.0); };

  // Along rows: even and odd parts for each row and frequency.
  std::vector<double> even(size * size);
  std::vector<double> odd(size * size);
  for (int dy = -reach; dy <= reach; ++dy) {
    for (int u = 0; u < count; ++u) {
      const int at = (dy + reach) * count + u;
      along_wave(u, [&](int dx, int turn) {
        const double value = square.at(dx, dy) * fade(dx) * fade(dy);
        even[at] += value * cosines[turn];
        odd[at] += value * sines[turn];
      });
    }
  }
  double least = 0;
  for (int v = 0; v <= reach; ++v) {  // the other half mirrors it
    for (int u = 0; u < count; ++u) {
      double power = 0;
      along_wave(v, [&](int dy, int turn) {
        const int at = (dy + reach) * count + u;
        power += even[at] * cosines[turn] - odd[at] * sines[turn];
      });
      least = std::min(least, power);
    }
  }
  return least;
}

}  // namespace

int correlation_reach(const std::vector<double>& correlation) {
  return (static_cast<int>(std::lround(std::sqrt(static_cast<double>(correlation.size())))) - 1) / 2;
}

std::string fault_of_correlation(const std::vector<double>& correlation) {
  constexpr int most_reach = 133;  // of patches in the widest search
  constexpr double rounding = 1e-9;
  constexpr double least = -1e-3;  // where the mean power is 1
  const CorrelationSquare square(correlation);
  const int count = 2 * square.reach() + 1;
  if (static_cast<std::size_t>(count) * count != correlation.size() || square.reach() > most_reach) {
    return fmt::format(
        "a noise model's correlation is a square of 1 x 1, 3 x 3 ... {0} x {0} numbers, got {1}",
        2 * most_reach + 1, correlation.size());
  }
  for (const double value : correlation) {
    if (!(std::abs(value) <= 1)) return fmt::format("a noise model's correlation is -1 to 1, got {}", value);
  }
  if (square.at(0, 0) != 1)
    return fmt::format("a noise model's correlation is 1 in the middle, got {}", square.at(0, 0));
  for (int dy = 0; dy <= square.reach(); ++dy) {
    for (int dx = -square.reach(); dx <= square.reach(); ++dx) {
      if (std::abs(square.at(dx, dy) - square.at(-dx, -dy)) <= rounding) continue;
      return fmt::format("a noise model's correlation is the same at (dx, dy) and (-dx, -dy), got {} and {}",
                         square.at(dx, dy), square.at(-dx, -dy));
    }
  }
  if (least_power(square) < least)
    return "a noise model's correlation is that of no noise: some frequency's power is below 0";
  return {};
}

PatchCovariances::PatchCovariances(const std::vector<double>& correlation, int reach) {
  static const Autocorrelations along = autocorrelations();
  const CorrelationSquare square(correlation);
  reach_x_ = reach_y_ = std::min(reach, square.reach() + side - 1);

  // First along rows: [row of the square][dx][i].
  const int rows = 2 * square.reach() + 1;
  std::vector<std::array<double, side>> of_rows(static_cast<std::size_t>(rows) * row());
  for (int y = 0; y < rows; ++y) {
    for (int dx = -reach_x_; dx <= reach_x_; ++dx) {
      std::array<double, side>& sums = of_rows[y * row() + (dx + reach_x_)];
      for (int t = -(side - 1); t < side; ++t) {
        const double value = square.at(dx + t, y - square.reach());
        for (int i = 0; i < side; ++i) sums[i] += along[i][std::abs(t)] * value;
      }
    }
  }
  values_.resize(row() * (static_cast<std::size_t>(reach_y_) + 1));
  int used_x = 0;
  int used_y = 0;
  for (int dy = 0; dy <= reach_y_; ++dy) {
    for (int dx = -reach_x_; dx <= reach_x_; ++dx) {
      NoiseModel::Spectrum& at = values_[dy * row() + (dx + reach_x_)];
      at.fill(0);
      for (int t = std::max(-(side - 1), -square.reach() - dy); t <= std::min(side - 1, square.reach() - dy);
           ++t) {
        const std::array<double, side>& sums = of_rows[(dy + t + square.reach()) * row() + (dx + reach_x_)];
        for (int j = 0; j < side; ++j) {
          for (int i = 0; i < side; ++i) at[j * side + i] += along[j][std::abs(t)] * sums[i];
        }
      }
      constexpr double counts = 1e-3;
      if (std::none_of(at.begin(), at.end(), [](double value) { return std::abs(value) > counts; })) continue;
      used_x = std::max(used_x, std::abs(dx));
      used_y = std::max(used_y, dy);
    }
  }

  std::vector<NoiseModel::Spectrum> used;
  for (int dy = 0; dy <= used_y; ++dy) {
    for (int dx = -used_x; dx <= used_x; ++dx) used.push_back(values_[dy * row() + (dx + reach_x_)]);
  }
  reach_x_ = used_x;
  reach_y_ = used_y;
  values_ = std::move(used);
}

double PatchCovariances::of_pixels(int dx, int dy) const {
  if (!within(dx, dy)) return 0;
  const NoiseModel::Spectrum& values = at(dx, dy);
  return std::accumulate(values.begin(), values.end(), 0.0) / (side * side);
}

}  // namespace ungrain
