#include "noise/cut_noise.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/convert.h"
#include "noise/clipped_gaussian.h"

namespace ungrain {
namespace {

constexpr double most_blocks = 40000;
constexpr int fewest_blocks = 12;
constexpr double least_share = 0.002;  // of all blocks
// Means of the examined blocks, in deviations: true levels from black to one deviation above it.
constexpr double lowest_mean = 0.3;
constexpr double highest_mean = 1;
// Bounds of the measured statistics over those of cut noise. On clipped Kodak pictures with noise of 3 to 50:
// at the limit 0.96 to 1.26, variance 0.92 to 1.41 (2 with only 19 blocks), changes 0.98 to 1.06. Their
// saturated areas without added noise: 1.41 and more, 1.61 and more, 0.86 and less.
struct Bounds {
  double least;
  double most;
  bool hold(double found, double expected) const {
    return found >= least * expected && found <= most * expected;
  }
};
constexpr Bounds at_limit_bounds{0.7, 1.3};
constexpr Bounds variance_bounds{0.6, 1.5};
constexpr Bounds changes_bounds{0.9, 1.3};
constexpr double least_factor = 0.85;

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

double normal_density(double x) { return std::exp(-0.5 * x * x) / std::sqrt(2 * M_PI); }

// Mean of Gaussian noise of deviation 1 around `level` after values below 0 became 0.
double mean_after_cut(double level) { return level * normal_cdf(level) + normal_density(level); }

// The share of samples at the limit, tabulated over the examined means; linear between entries.
class LimitShares {
 public:
  LimitShares() {
    for (int i = 0; i <= steps; ++i) {
      double low = -6;
      double high = 6;
      const double mean = lowest_mean + (highest_mean - lowest_mean) * i / steps;
      for (int halving = 0; halving < 40; ++halving) {
        const double level = (low + high) / 2;
        (mean_after_cut(level) < mean ? low : high) = level;
      }
      shares_[i] = normal_cdf(-low);
    }
  }
  double at(double mean) const {
    const double place = (mean - lowest_mean) / (highest_mean - lowest_mean) * steps;
    const int below = std::clamp(static_cast<int>(place), 0, steps - 1);
    return shares_[below] + (place - below) * (shares_[below + 1] - shares_[below]);
  }

 private:
  static constexpr int steps = 64;
  double shares_[steps + 1] = {};
};

// The share of samples at the limit for the mean after the cut, both in deviations.
double share_at_limit(double mean) {
  static const LimitShares shares;
  return shares.at(mean);
}

double normal_quantile(double share) {
  double low = -10;
  double high = 10;
  for (int halving = 0; halving < 40; ++halving) {
    const double middle = (low + high) / 2;
    (normal_cdf(middle) < share ? low : high) = middle;
  }
  return low;
}

// A table with entries at equal distances, from `values` at ascending `places`.
PointCurve by_even_steps(const std::vector<double>& places, const std::vector<double>& values) {
  const std::size_t last = places.size() - 1;
  std::vector<double> even(places.size());
  std::size_t at = 0;
  for (std::size_t i = 0; i <= last; ++i) {
    const double place = places.front() + (places.back() - places.front()) * static_cast<double>(i) /
                                              static_cast<double>(last);
    while (at + 2 <= last && places[at + 1] < place) ++at;
    const double share = (place - places[at]) / (places[at + 1] - places[at]);
    even[i] = values[at] + share * (values[at + 1] - values[at]);
  }
  return table_curve(places.front(), places.back(), even);
}

}  // namespace

FillCurves filling_curves(const ChannelDeviation& deviation, const ImageSpec& spec, bool at_white) {
  // Levels from a little beyond the limit to where hardly a sample is cut. 80 samples give a level to 0.13
  // deviations: without levels beyond the limit, those at it would be estimated too far inside.
  constexpr int levels = 256;
  constexpr double farthest = 4;  // deviations
  constexpr double nearest = -0.25;
  const double white = spec.white();
  // Rounding moves samples less than half a step inside the limit onto it.
  const double cut = is_float(spec.type) ? 0 : 0.5;
  const double at_limit = deviation.at(at_white ? white : 0);
  const double first = nearest * at_limit;
  const double last = std::min(white, farthest * at_limit);
  std::vector<double> seen(levels + 1);
  std::array<std::vector<double>, fill_draws> drawn;
  for (int i = 0; i <= levels; ++i) {
    const double level = first + (last - first) * i / levels;
    const double sigma = deviation.at(at_white ? white - level : level);
    const double inside = sigma > 0 ? (level - cut) / sigma : farthest;
    const double mean = level * normal_cdf(inside) + sigma * normal_density(inside);
    seen[i] = i > 0 ? std::max(mean, seen[i - 1] + 1e-9 * white) : mean;
    // The part of a Gaussian beyond the cut, in parts of equal weight.
    const double part = normal_cdf(-inside) / fill_draws;
    double density = 0;
    for (int draw = 0; draw < fill_draws; ++draw) {
      const double end = draw + 1 < fill_draws ? normal_quantile((draw + 1) * part) : -inside;
      drawn[draw].push_back(level + sigma * (density - normal_density(end)) / part);
      density = normal_density(end);
    }
  }
  FillCurves curves;
  curves.shape = {true, at_white ? static_cast<float>(white) : 0.0F, at_white ? -1.0F : 1.0F, {}};
  for (const std::vector<double>& values : drawn) {
    const PointCurve curve = by_even_steps(seen, values);
    curves.shape.by_mean = curve.shape;
    curves.draws.insert(curves.draws.end(), curve.table.begin(), curve.table.end());
  }
  return curves;
}

CutDetector::CutDetector(const ImageSpec& spec) : spec_(spec) {
  const double blocks = static_cast<double>(spec.width) * spec.height / (side * side);
  step_ = side * std::max(1, static_cast<int>(std::ceil(std::sqrt(blocks / most_blocks))));
  const auto channels = static_cast<std::size_t>(spec.colour_channels());
  rows_.assign(channels, std::vector<float>(static_cast<std::size_t>(spec.width) * side));
  black_.resize(channels);
  white_.resize(channels);
}

void CutDetector::add_rows(const ConstImageView& image) {
  for (int y = 0; y < image.spec.height; ++y, ++row_) {
    const int line = row_ % step_;
    if (line >= side) continue;
    for (int c = 0; c < spec_.colour_channels(); ++c) {
      float* to = rows_[static_cast<std::size_t>(c)].data();
      load_row(image, y, c, to + static_cast<std::ptrdiff_t>(line) * spec_.width);
      if (line < side - 1) continue;
      for (int x = 0; x + side <= spec_.width; x += step_) measure(c, x);
    }
  }
}

void CutDetector::measure(int channel, int x) {
  const float* block = rows_[static_cast<std::size_t>(channel)].data() + x;
  double sum = 0;
  float least = block[0];
  float most = block[0];
  for (int j = 0; j < side; ++j) {
    for (int i = 0; i < side; ++i) {
      const float value = block[static_cast<std::ptrdiff_t>(j) * spec_.width + i];
      sum += value;
      least = std::min(least, value);
      most = std::max(most, value);
    }
  }
  if (!std::isfinite(sum) || least == most) return;
  Side& black = black_[static_cast<std::size_t>(channel)];
  Side& white = white_[static_cast<std::size_t>(channel)];
  black.beyond = black.beyond || least < 0;
  white.beyond = white.beyond || most > spec_.white();
  const bool dark = sum / (side * side) < spec_.white() / 2;
  add(dark ? black : white, block, spec_.width, dark ? 0 : spec_.white(), dark ? 1 : -1);
}

void CutDetector::add(Side& to, const float* block, int stride, double limit, double sign) const {
  double sum = 0;
  double squares = 0;
  int there = 0;
  int changes = 0;
  for (int j = 0; j < side; ++j) {
    for (int i = 0; i < side; ++i) {
      const float* sample = block + static_cast<std::ptrdiff_t>(j) * stride + i;
      const double distance = sign * (*sample - limit);
      sum += distance;
      squares += distance * distance;
      there += distance <= 0 ? 1 : 0;
      if (i > 0) changes += (distance <= 0) != (sign * (sample[-1] - limit) <= 0) ? 1 : 0;
    }
  }
  constexpr double samples = side * side;
  const double mean = sum / samples;
  to.blocks.push_back(
      {mean, (squares - sum * mean) / (samples - 1), there / samples, changes / (samples - side)});
}

CutDetector::Evidence CutDetector::evidence(const Side& seen, double sigma) const {
  const ClippedGaussian noise(sigma, spec_.white());
  Evidence sum;
  for (const Block& block : seen.blocks) {
    const double mean = block.mean / sigma;
    if (mean < lowest_mean || mean > highest_mean) continue;
    ++sum.blocks;
    sum.found.at_limit += block.at_limit;
    sum.expected.at_limit += share_at_limit(mean);
    sum.found.variance += block.variance;
    sum.expected.variance += noise.at_mean(block.mean).variance_share * sigma * sigma;
    sum.found.changes += block.changes;
    sum.expected.changes += 2 * block.at_limit * (1 - block.at_limit);
  }
  return sum;
}

bool CutDetector::was_cut(const Side& seen, double sigma) const {
  // Rounding alone makes samples equal to the limit.
  const double least_sigma = is_float(spec_.type) ? 0 : 1.5;
  if (seen.beyond || !(sigma > least_sigma)) return false;
  const Evidence sum = evidence(seen, sigma);
  return sum.blocks >=
             std::max<double>(fewest_blocks, least_share * static_cast<double>(seen.blocks.size())) &&
         at_limit_bounds.hold(sum.found.at_limit, sum.expected.at_limit) &&
         variance_bounds.hold(sum.found.variance, sum.expected.variance) &&
         changes_bounds.hold(sum.found.changes, sum.expected.changes);
}

double CutDetector::deviation_factor(const Side& seen, double sigma) const {
  constexpr double step = 0.01;
  for (double factor = 1; factor > least_factor; factor -= step) {
    const Evidence sum = evidence(seen, factor * sigma);
    if (sum.found.variance >= sum.expected.variance) return factor;
  }
  return least_factor;
}

Cut CutDetector::finish(const std::vector<ChannelDeviation>& deviations) const {
  Cut cut;
  double factors = 0;
  double weights = 0;
  const auto look = [&](const Side& seen, double sigma, bool& at) {
    if (!was_cut(seen, sigma)) return;
    at = true;
    const int weight = evidence(seen, sigma).blocks;
    factors += weight * deviation_factor(seen, sigma);
    weights += weight;
  };
  for (std::size_t c = 0; c < deviations.size(); ++c) {
    look(black_[c], deviations[c].at(0), cut.at_black);
    look(white_[c], deviations[c].at(spec_.white()), cut.at_white);
  }
  if (weights > 0) cut.deviation_factor = factors / weights;
  return cut;
}

}  // namespace ungrain
