#include "ungrain/noise_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/opponent.h"
#include "noise/correlation.h"
#include "noise/noise_model.h"
#include "ungrain/error.h"

namespace ungrain {
namespace {

[[noreturn]] void fail(const std::string& what) { throw Error(ErrorCode::invalid_argument, what); }

bool is_deviation(double value) { return std::isfinite(value) && value >= 0; }

NoiseModel::Spectrum flat_spectrum() {
  NoiseModel::Spectrum spectrum;
  spectrum.fill(1);
  return spectrum;
}

// The variance of an opponent channel's noise, from the image's channels' deviations.
double opponent_variance(int plane, const std::vector<double>& sigma, double correlation) {
  double variance = 0;
  for (int a = 0; a < 3; ++a) {
    for (int b = 0; b < 3; ++b) {
      variance += opponent_matrix[plane][a] * sigma[a] * opponent_matrix[plane][b] * sigma[b] *
                  (a == b ? 1 : correlation);
    }
  }
  return std::max(variance, 0.0);
}

}  // namespace

double NoiseModel::deviation(int channel, double level) const {
  const Channel& of = channels[static_cast<std::size_t>(channel)];
  const auto above = std::upper_bound(of.levels.begin(), of.levels.end(), level);
  if (above == of.levels.begin()) return of.deviations.front();
  if (above == of.levels.end()) return of.deviations.back();
  const auto i = static_cast<std::size_t>(above - of.levels.begin());
  const double share = (level - of.levels[i - 1]) / (of.levels[i] - of.levels[i - 1]);
  const double below = of.deviations[i - 1] * of.deviations[i - 1];
  return std::sqrt(below + share * (of.deviations[i] * of.deviations[i] - below));
}

double NoiseModel::deviation(int channel, double level, int i, int j) const {
  return deviation(channel, level) * channels[static_cast<std::size_t>(channel)].spectrum[j * side + i];
}

void validate(const NoiseModel& model) {
  if (model.channels.empty() || model.channels.size() > max_channels) {
    fail(fmt::format("a noise model has 1 to {} channels, got {}", max_channels, model.channels.size()));
  }
  for (const NoiseModel::Channel& channel : model.channels) {
    if (channel.levels.empty() || channel.levels.size() != channel.deviations.size()) {
      fail(fmt::format("a noise model has one deviation for each level and at least one, got {} and {}",
                       channel.deviations.size(), channel.levels.size()));
    }
    for (std::size_t i = 0; i < channel.levels.size(); ++i) {
      if (!std::isfinite(channel.levels[i]) || (i > 0 && channel.levels[i] <= channel.levels[i - 1])) {
        fail(fmt::format("the levels of a noise model are finite and ascending, got {}", channel.levels[i]));
      }
      if (!is_deviation(channel.deviations[i])) {
        fail(fmt::format("the deviations of a noise model are 0 or more, got {}", channel.deviations[i]));
      }
    }
    for (const double value : channel.spectrum) {
      if (!is_deviation(value)) fail(fmt::format("a noise model's spectrum is 0 or more, got {}", value));
    }
    // Channels mostly share a correlation.
    const bool known =
        &channel != model.channels.data() && channel.correlation == (&channel - 1)->correlation;
    if (channel.correlation.empty() || known) continue;
    const std::string fault = fault_of_correlation(channel.correlation);
    if (!fault.empty()) fail(fault);
  }
}

NoiseModel white_noise_model(const ImageSpec& spec, const std::vector<double>& sigma, double correlation) {
  validate(spec);
  const auto count = static_cast<std::size_t>(spec.colour_channels());
  if (sigma.size() != 1 && sigma.size() != count) {
    fail(fmt::format("sigma takes one number or one for each of {} channels, got {}", count, sigma.size()));
  }
  const std::vector<double> each = sigma.size() == count ? sigma : std::vector(count, sigma[0]);
  NoiseModel model;
  for (std::size_t c = 0; c < count; ++c) {
    const double deviation = spec.colour == Colour::rgb
                                 ? std::sqrt(opponent_variance(static_cast<int>(c), each, correlation))
                                 : each[c];
    model.channels.push_back({{0}, {deviation}, flat_spectrum()});
  }
  if (!std::all_of(each.begin(), each.end(), is_deviation)) {
    fail("sigma is 0 or more for every channel");
  }
  return model;
}

NoiseModel poisson_gaussian_model(const ImageSpec& spec, double a, double b) {
  validate(spec);
  if (!is_deviation(a) || !is_deviation(b)) {
    fail(fmt::format("the noise's variance is a level + b with a and b of 0 or more, got {} and {}", a, b));
  }
  NoiseModel model;
  for (int c = 0; c < spec.colour_channels(); ++c) {
    model.channels.push_back(
        {{0, spec.white()}, {std::sqrt(b), std::sqrt(a * spec.white() + b)}, flat_spectrum()});
  }
  return model;
}

NoiseModel poisson_gaussian_model(const ImageSpec& spec, const std::vector<PoissonGaussian>& channels) {
  const auto count = static_cast<std::size_t>(spec.colour_channels());
  if (channels.size() != count) {
    fail(fmt::format("a line is needed for each of {} channels, got {}", count, channels.size()));
  }
  if (spec.colour == Colour::rgb) {
    PoissonGaussian mean;
    for (const PoissonGaussian& line : channels) {
      mean.a += line.a / 3;
      mean.b += line.b / 3;
    }
    return poisson_gaussian_model(spec, mean.a, mean.b);
  }
  NoiseModel model;
  for (const PoissonGaussian& line : channels) {
    ImageSpec one = spec;
    one.channels = 1;
    one.alpha = false;
    one.colour = Colour::gray;
    model.channels.push_back(poisson_gaussian_model(one, line.a, line.b).channels[0]);
  }
  return model;
}

NoiseModel scaled(NoiseModel model, double strength) {
  if (!is_deviation(strength)) fail(fmt::format("a noise model's strength is 0 or more, got {}", strength));
  for (NoiseModel::Channel& channel : model.channels) {
    for (double& deviation : channel.deviations) deviation *= strength;
  }
  return model;
}

double band_rms(const NoiseModel::Spectrum& values, const FrequencyBand& band) {
  double squares = 0;
  int count = 0;
  for (int j = 0; j < NoiseModel::side; ++j) {
    for (int i = 0; i < NoiseModel::side; ++i) {
      if (i + j < band.lowest || i + j > band.highest) continue;
      const double value = values[j * NoiseModel::side + i];
      squares += value * value;
      ++count;
    }
  }
  return std::sqrt(squares / count);
}

double mean_deviation(const NoiseModel& model, int channel) {
  const NoiseModel::Channel& of = model.channels[static_cast<std::size_t>(channel)];
  double squares = 0;
  for (const double deviation : of.deviations) squares += deviation * deviation;
  const double level_mean = std::sqrt(squares / static_cast<double>(of.deviations.size()));
  return level_mean * band_rms(of.spectrum, {0, 2 * (NoiseModel::side - 1)});
}

std::vector<double> channel_deviations(const std::vector<double>& opponent_variances) {
  std::vector<double> deviations;
  for (int c = 0; c < 3; ++c) {
    // The opponent space is orthonormal: the transposed matrix is its inverse.
    double variance = 0;
    for (int plane = 0; plane < 3; ++plane) {
      variance +=
          std::pow(opponent_matrix[plane][c], 2) * opponent_variances[static_cast<std::size_t>(plane)];
    }
    deviations.push_back(std::sqrt(variance));
  }
  return deviations;
}

std::vector<double> image_deviations(const NoiseModel& model, const ImageSpec& spec) {
  std::vector<double> deviations;
  for (int c = 0; c < static_cast<int>(model.channels.size()); ++c) {
    deviations.push_back(mean_deviation(model, c));
  }
  if (spec.colour != Colour::rgb) return deviations;
  for (double& each : deviations) each *= each;
  return channel_deviations(deviations);
}

NoiseBands noise_bands(const NoiseModel& model, int channel, double level) {
  const double deviation = model.deviation(channel, level);
  const NoiseModel::Spectrum& spectrum = model.channels[static_cast<std::size_t>(channel)].spectrum;
  return {deviation * band_rms(spectrum, low_band), deviation * band_rms(spectrum, middle_band),
          deviation * band_rms(spectrum, high_band)};
}

std::string to_text(const NoiseModel& model, const ImageSpec& spec) {
  const double scale = 255 / spec.white();
  std::string text;
  for (std::size_t c = 0; c < model.channels.size(); ++c) {
    const std::vector<double>& levels = model.channels[c].levels;
    text += fmt::format("channel {}, deviation in low / middle / high frequencies:", c);
    std::vector<double> shown{levels.front(), levels[levels.size() / 2], levels.back()};
    shown.erase(std::unique(shown.begin(), shown.end()), shown.end());
    for (const double level : shown) {
      const NoiseBands bands = noise_bands(model, static_cast<int>(c), level);
      text += fmt::format(" {:.1f} / {:.1f} / {:.1f}", bands.low * scale, bands.middle * scale,
                          bands.high * scale);
      if (shown.size() > 1)
        text += fmt::format(" at level {:.0f}{}", level * scale, level == shown.back() ? "" : ",");
    }
    text += '\n';
  }
  return text;
}

std::string_view name(NoiseFinding finding) {
  switch (finding) {
    case NoiseFinding::white:
      return "white";
    case NoiseFinding::by_level:
      return "by level";
    case NoiseFinding::spectrum:
      return "spectrum";
  }
  return "?";
}

}  // namespace ungrain
