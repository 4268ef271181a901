#include "noise/stabilize.h"

#include <algorithm>
#include <cmath>

#include "core/opponent.h"
#include "core/portable_math.h"
#include "noise/noise_model.h"
#include "ungrain/stabilizer.h"

namespace ungrain {
namespace {

constexpr FrequencyBand all_frequencies{0, 2 * (NoiseModel::side - 1)};

bool about_equal(double a, double b, double scale) { return std::abs(a - b) <= 1e-9 * scale; }

bool is_white(const NoiseModel::Spectrum& spectrum) {
  return std::all_of(spectrum.begin(), spectrum.end(), [](double value) { return about_equal(value, 1, 1); });
}

// Lower bound of a measured curve, as a share of its maximum: at 0 the transform would be infinitely steep.
constexpr double least_share = 0.02;
constexpr int curve_steps = 4096;

// F(level) = integral of 1 / deviation from 0, at curve_steps + 1 levels from 0 to white.
std::vector<double> integrated(const ChannelDeviation& deviation, double white) {
  std::vector<double> curve(curve_steps + 1);
  for (int i = 0; i <= curve_steps; ++i) curve[i] = deviation.at(white * i / curve_steps);
  const double least = least_share * *std::max_element(curve.begin(), curve.end());
  double sum = 0;
  double before = 0;
  for (int i = 0; i <= curve_steps; ++i) {
    const double slope = 1 / std::max(curve[i], least);
    if (i > 0) sum += (before + slope) / 2 * white / curve_steps;
    curve[i] = sum;
    before = slope;
  }
  return curve;
}

double rms(const std::vector<double>& values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares / static_cast<double>(values.size()));
}

}  // namespace

std::optional<PoissonGaussian> as_poisson_gaussian(const NoiseModel& model, int channel) {
  const NoiseModel::Channel& of = model.channels[static_cast<std::size_t>(channel)];
  if (of.levels.size() < 2 || !is_white(of.spectrum)) return std::nullopt;
  const auto variance = [&](std::size_t i) { return of.deviations[i] * of.deviations[i]; };
  const std::size_t last = of.levels.size() - 1;
  const double a = (variance(last) - variance(0)) / (of.levels[last] - of.levels[0]);
  const double b = variance(0) - a * of.levels[0];
  const double largest = variance(last);
  if (!(a > 0) || b < -1e-9 * largest) return std::nullopt;
  for (std::size_t i = 0; i <= last; ++i) {
    if (!about_equal(variance(i), a * of.levels[i] + b, largest)) return std::nullopt;
  }
  return PoissonGaussian{a, std::max(b, 0.0)};
}

ChannelDeviation::ChannelDeviation(const NoiseModel& model, const ImageSpec& spec, int channel)
    : model_(&model) {
  const bool rgb = spec.colour == Colour::rgb;
  for (int p = rgb ? 0 : channel; p < (rgb ? 3 : channel + 1); ++p) {
    const double share = band_rms(model.channels[static_cast<std::size_t>(p)].spectrum, all_frequencies);
    const double part = rgb ? opponent_matrix[p][channel] : 1;
    parts_.push_back({p, part * part * share * share});
  }
}

ChannelDeviation ChannelDeviation::divided_by(double factor) const {
  ChannelDeviation less = *this;
  less.factor_ /= factor;
  return less;
}

double ChannelDeviation::at(double level) const {
  if (model_ == nullptr) return factor_ * sigma_;
  double variance = 0;
  for (const Part& part : parts_) {
    variance += part.weight * std::pow(model_->deviation(part.channel, level), 2);
  }
  return factor_ * std::sqrt(variance);
}

double ChannelDeviation::mean() const {
  if (model_ == nullptr) return factor_ * sigma_;
  double variance = 0;
  for (const Part& part : parts_) {
    variance +=
        part.weight * std::pow(rms(model_->channels[static_cast<std::size_t>(part.channel)].deviations), 2);
  }
  return factor_ * std::sqrt(variance);
}

std::optional<PoissonGaussian> ChannelDeviation::poisson_gaussian() const {
  PoissonGaussian sum;
  for (const Part& part : parts_) {
    const std::optional<PoissonGaussian> one = as_poisson_gaussian(*model_, part.channel);
    if (!one) return std::nullopt;
    sum.a += factor_ * factor_ * part.weight * one->a;
    sum.b += factor_ * factor_ * part.weight * one->b;
  }
  return parts_.empty() ? std::nullopt : std::optional(sum);
}

double channel_deviation(const NoiseModel& model, const ImageSpec& spec, int channel, double level) {
  return ChannelDeviation(model, spec, channel).at(level);
}

std::vector<double> stabilized_deviations(const NoiseModel& model, const ImageSpec& spec) {
  const double white = spec.white();
  std::vector<double> deviations;
  for (int c = 0; c < spec.colour_channels(); ++c) {
    const ChannelDeviation deviation(model, spec, c);
    if (deviation.mean() == 0) {
      deviations.push_back(0);
    } else if (const std::optional<PoissonGaussian> noise = deviation.poisson_gaussian()) {
      deviations.push_back(white / Stabilizer(*noise).forward(white));
    } else {
      deviations.push_back(white / integrated(deviation, white).back());
    }
  }
  return deviations;
}

PointCurve table_curve(double first, double last, const std::vector<double>& values) {
  PointCurve curve;
  curve.shape.first = static_cast<float>(first);
  curve.shape.per_value = static_cast<float>(static_cast<double>(values.size() - 1) / (last - first));
  curve.shape.entries = static_cast<int>(values.size());
  curve.table.assign(values.begin(), values.end());
  return curve;
}

namespace {

// The generalised Anscombe transform, as a root and a constant.
PointCurve anscombe_curve(const PoissonGaussian& noise, double white) {
  const double scale = white / Stabilizer(noise).forward(white);
  const double shift = 0.375 * noise.a + noise.b / noise.a;
  const double factor = scale * 2 / std::sqrt(noise.a);
  PointCurve curve = table_curve(0, white, {-factor * std::sqrt(shift), -factor * std::sqrt(shift)});
  curve.shape.base = CurveBase::root;
  curve.shape.factor = static_cast<float>(factor);
  curve.shape.shift = static_cast<float>(shift);
  return curve;
}

// The curve's base is its square; the table holds the rest and begins where noise around black ends.
PointCurve unbiased_anscombe_inverse(const PoissonGaussian& noise, double white) {
  constexpr double lowest = 5;  // deviations
  const Stabilizer stabilizer(noise);
  const double scale = white / stabilizer.forward(white);
  const double shift = 2 * std::sqrt(0.375 + noise.b / (noise.a * noise.a)) * scale;
  const double factor = noise.a / (4 * scale * scale);
  const double first = -lowest * scale;
  std::vector<double> rest(curve_steps + 1);
  for (int i = 0; i <= curve_steps; ++i) {
    const double value = first + (white - first) * i / curve_steps;
    const double above = std::max(value + shift, 0.0);
    rest[i] = stabilizer.inverse(value / scale) - factor * above * above;
  }
  rest[curve_steps] = rest[curve_steps - 1];  // beyond the end it hardly changes
  PointCurve curve = table_curve(first, white, rest);
  curve.shape.base = CurveBase::square;
  curve.shape.factor = static_cast<float>(factor);
  curve.shape.shift = static_cast<float>(shift);
  return curve;
}

// The mean of a curve over Gaussian noise.
class GaussianMean {
 public:
  GaussianMean() {
    double sum = 0;
    for (int i = 0; i < nodes; ++i) sum += weights_[i] = portable::exp(-0.5 * position(i) * position(i));
    for (double& weight : weights_) weight /= sum;
  }
  static double position(int i) { return reach * (2.0 * i / (nodes - 1) - 1); }

  template <class Curve>
  double of(Curve curve, double centre, double deviation) const {
    double mean = 0;
    for (int i = 0; i < nodes; ++i) mean += weights_[i] * curve(centre + deviation * position(i));
    return mean;
  }
  static constexpr double reach = 5;  // deviations

 private:
  static constexpr int nodes = 161;
  double weights_[nodes] = {};
};

}  // namespace

PointCurve stabilizing_curve(const ChannelDeviation& deviation, double white) {
  if (const std::optional<PoissonGaussian> noise = deviation.poisson_gaussian()) {
    return anscombe_curve(*noise, white);
  }
  std::vector<double> values = integrated(deviation, white);
  const double scale = white / values.back();
  for (double& value : values) value *= scale;
  return table_curve(0, white, values);
}

PointCurve restoring_curve(const ChannelDeviation& deviation, double white) {
  if (const auto noise = deviation.poisson_gaussian()) return unbiased_anscombe_inverse(*noise, white);
  static const GaussianMean gaussian;
  const PointCurve forward = stabilizing_curve(deviation, white);
  const auto seen = [&](double value) {
    return static_cast<double>(curve_at(forward.shape, forward.table.data(), static_cast<float>(value)));
  };
  // The possible means, and the mean of f(z) of each. Noise extends beyond black and white.
  const double lowest = -GaussianMean::reach * deviation.at(0);
  const double highest = white + GaussianMean::reach * deviation.at(white);
  constexpr int levels = 2048;
  std::vector<double> means(levels + 1);
  for (int i = 0; i <= levels; ++i) {
    const double level = lowest + (highest - lowest) * i / levels;
    means[i] = gaussian.of(seen, level, deviation.at(level));
    if (i > 0) means[i] = std::max(means[i], means[i - 1] + 1e-9 * white);
  }
  std::vector<double> restored(curve_steps + 1);
  int at = 0;
  for (int i = 0; i <= curve_steps; ++i) {
    const double mean = means.front() + (means.back() - means.front()) * i / curve_steps;
    while (at + 2 <= levels && means[at + 1] < mean) ++at;
    const double share = (mean - means[at]) / (means[at + 1] - means[at]);
    restored[i] = lowest + (highest - lowest) * (at + share) / levels;
  }
  return table_curve(means.front(), means.back(), restored);
}

double stabilized_sigma(const NoiseModel& model, const ImageSpec& spec) {
  return rms(stabilized_deviations(model, spec));
}

bool is_zero(const NoiseModel& model) {
  return std::all_of(model.channels.begin(), model.channels.end(), [](const NoiseModel::Channel& channel) {
    return rms(channel.deviations) * band_rms(channel.spectrum, all_frequencies) == 0;
  });
}

}  // namespace ungrain
