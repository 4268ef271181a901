// Models of known noise: from its power spectral density, or from the kernel that it was made with from white
// noise.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/convert.h"
#include "core/opponent.h"
#include "core/portable_math.h"
#include "noise/correlation.h"
#include "ungrain/error.h"
#include "ungrain/noise_model.h"

namespace ungrain {
namespace {

constexpr double pi = 3.141592653589793;
// The farthest distance of pixels in 8 x 8 patches of one 39 x 39 window.
constexpr int most_reach = 2 * 19 + NoiseModel::side - 1;

[[noreturn]] void fail(const std::string& what) { throw Error(ErrorCode::invalid_argument, what); }

// R(dx, dy) for |dx|, |dy| <= reach, in pixel units².
struct Autocovariance {
  explicit Autocovariance(int to) : reach(to), values(static_cast<std::size_t>(side()) * side()) {}

  int side() const { return 2 * reach + 1; }
  double& at(int dx, int dy) { return values[static_cast<std::size_t>((dy + reach) * side() + dx + reach)]; }
  double at(int dx, int dy) const {
    return values[static_cast<std::size_t>((dy + reach) * side() + dx + reach)];
  }

  int reach;
  std::vector<double> values;
};

std::vector<double> samples_of(const ConstImageView& view, int channel) {
  const auto width = static_cast<std::size_t>(view.spec.width);
  std::vector<double> samples(width * view.spec.height);
  for (int y = 0; y < view.spec.height; ++y) load_row(view, y, channel, samples.data() + y * width);
  return samples;
}

// cos and sin of 2 pi n / count.
struct Waves {
  explicit Waves(int count) : cosines(static_cast<std::size_t>(count)), sines(cosines.size()) {
    for (int n = 0; n < count; ++n) {
      cosines[n] = portable::cos(2 * pi * n / count);
      sines[n] = portable::sin(2 * pi * n / count);
    }
  }
  std::vector<double> cosines;
  std::vector<double> sines;
};

// The inverse Fourier transform at the few places needed. Only the density's part that is symmetric to its
// mirror image counts, because noise is real.
Autocovariance autocovariance_of_psd(const std::vector<double>& psd, int width, int height) {
  const int reach_x = std::min(most_reach, (width - 1) / 2);
  const int reach_y = std::min(most_reach, (height - 1) / 2);
  const Waves across(width);
  const Waves down(height);
  const int columns = reach_x + 1;
  // Along rows, for dx >= 0.
  std::vector<double> even(static_cast<std::size_t>(height) * columns);
  std::vector<double> odd(even.size());
  for (int v = 0; v < height; ++v) {
    for (int dx = 0; dx < columns; ++dx) {
      double in_phase = 0;
      double out_of_phase = 0;
      int turn = 0;
      for (int u = 0; u < width; ++u) {
        const double power = psd[static_cast<std::size_t>(v) * width + u];
        in_phase += power * across.cosines[turn];
        out_of_phase += power * across.sines[turn];
        turn += dx;
        if (turn >= width) turn -= width;
      }
      even[static_cast<std::size_t>(v) * columns + dx] = in_phase;
      odd[static_cast<std::size_t>(v) * columns + dx] = out_of_phase;
    }
  }
  Autocovariance result(std::max(reach_x, reach_y));
  const double frequencies = static_cast<double>(width) * height;
  for (int dy = -reach_y; dy <= reach_y; ++dy) {
    for (int dx = 0; dx <= reach_x; ++dx) {
      double sum = 0;
      for (int v = 0; v < height; ++v) {
        const auto turn =
            static_cast<std::size_t>((static_cast<std::int64_t>(v) * dy % height + height) % height);
        const std::size_t at = static_cast<std::size_t>(v) * columns + dx;
        sum += even[at] * down.cosines[turn] - odd[at] * down.sines[turn];
      }
      result.at(dx, dy) = result.at(-dx, -dy) = sum / frequencies;
    }
  }
  return result;
}

Autocovariance autocovariance_of_kernel(const std::vector<double>& kernel, int width, int height) {
  Autocovariance result(std::min(most_reach, std::max(width, height) - 1));
  for (int dy = 0; dy <= std::min(result.reach, height - 1); ++dy) {
    for (int dx = -std::min(result.reach, width - 1); dx <= std::min(result.reach, width - 1); ++dx) {
      double sum = 0;
      for (int y = 0; y + dy < height; ++y) {
        for (int x = std::max(0, -dx); x < width - std::max(0, dx); ++x)
          sum += kernel[y * width + x] * kernel[(y + dy) * width + x + dx];
      }
      result.at(dx, dy) = result.at(-dx, -dy) = sum;
    }
  }
  return result;
}

// The smallest square beyond which the correlation is negligible.
std::vector<double> correlation_of(const Autocovariance& covariance) {
  constexpr double counts = 1e-3;
  const double variance = covariance.at(0, 0);
  if (!(variance > 0)) return {1};
  int reach = 0;
  for (int dy = -covariance.reach; dy <= covariance.reach; ++dy) {
    for (int dx = -covariance.reach; dx <= covariance.reach; ++dx) {
      if (std::abs(covariance.at(dx, dy)) > counts * variance)
        reach = std::max({reach, std::abs(dx), std::abs(dy)});
    }
  }
  std::vector<double> correlation;
  for (int dy = -reach; dy <= reach; ++dy) {
    for (int dx = -reach; dx <= reach; ++dx)
      correlation.push_back(std::clamp(covariance.at(dx, dy) / variance, -1.0, 1.0));
  }
  return correlation;
}

NoiseModel::Channel channel_of(const Autocovariance& covariance) {
  NoiseModel::Channel channel;
  channel.levels = {0};
  channel.deviations = {std::sqrt(std::max(covariance.at(0, 0), 0.0))};
  channel.correlation = correlation_of(covariance);
  const PatchCovariances covariances(channel.correlation, 0);
  for (std::size_t n = 0; n < channel.spectrum.size(); ++n)
    channel.spectrum[n] = std::sqrt(std::max(covariances.at(0, 0)[n], 0.0));
  return channel;
}

// From autocovariances of the image's own channels, one for all or one for each, whose noise is independent.
NoiseModel model_of(const ImageSpec& spec, const std::vector<Autocovariance>& own) {
  NoiseModel model;
  for (int plane = 0; plane < spec.colour_channels(); ++plane) {
    if (own.size() == 1 || spec.colour != Colour::rgb) {
      model.channels.push_back(channel_of(own[own.size() == 1 ? 0 : static_cast<std::size_t>(plane)]));
      continue;
    }
    Autocovariance mixed(own[0].reach);
    for (int c = 0; c < 3; ++c) {
      const double share = opponent_matrix[plane][c] * opponent_matrix[plane][c];
      for (std::size_t n = 0; n < mixed.values.size(); ++n) mixed.values[n] += share * own[c].values[n];
    }
    model.channels.push_back(channel_of(mixed));
  }
  return model;
}

void check_channels(const ImageSpec& spec, const ConstImageView& given, const char* what) {
  validate(spec);
  validate(given.spec);
  if (given.data == nullptr || given.space.memory != Space::Memory::host)
    fail(fmt::format("{} must lie in the host's memory", what));
  if (given.spec.channels != 1 && given.spec.channels != spec.colour_channels()) {
    fail(fmt::format("{} has 1 channel or one for each of {}, got {}", what, spec.colour_channels(),
                     given.spec.channels));
  }
}

}  // namespace

NoiseModel noise_model_of_psd(const ImageSpec& spec, const ConstImageView& psd) {
  check_channels(spec, psd, "a power spectral density");
  std::vector<Autocovariance> own;
  for (int c = 0; c < psd.spec.channels; ++c) {
    const std::vector<double> samples = samples_of(psd, c);
    for (const double power : samples) {
      if (!std::isfinite(power) || power < 0)
        fail(fmt::format("a power spectral density is 0 or more, got {}", power));
    }
    own.push_back(autocovariance_of_psd(samples, psd.spec.width, psd.spec.height));
  }
  return model_of(spec, own);
}

NoiseModel noise_model_of_kernel(const ImageSpec& spec, const ConstImageView& kernel, double sigma) {
  check_channels(spec, kernel, "a noise kernel");
  constexpr int most_side = 255;
  if (kernel.spec.width > most_side || kernel.spec.height > most_side) {
    fail(fmt::format("a noise kernel has at most {0} x {0} pixels, got {1} x {2}", most_side,
                     kernel.spec.width, kernel.spec.height));
  }
  if (!std::isfinite(sigma) || sigma < 0) fail(fmt::format("sigma is 0 or more, got {}", sigma));
  std::vector<Autocovariance> own;
  for (int c = 0; c < kernel.spec.channels; ++c) {
    std::vector<double> samples = samples_of(kernel, c);
    if (std::any_of(samples.begin(), samples.end(), [](double tap) { return !std::isfinite(tap); }))
      fail("a noise kernel has only finite numbers");
    if (std::all_of(samples.begin(), samples.end(), [](double tap) { return tap == 0; }))
      fail("a noise kernel has a number that is not 0");
    for (double& tap : samples) tap *= sigma;
    own.push_back(autocovariance_of_kernel(samples, kernel.spec.width, kernel.spec.height));
  }
  return model_of(spec, own);
}

}  // namespace ungrain
