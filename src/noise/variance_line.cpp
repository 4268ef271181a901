#include "noise/variance_line.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "noise/block_coefficients.h"
#include "noise/clipped_gaussian.h"
#include "noise/noise_model.h"

namespace ungrain {
namespace {

// Constants were chosen on the pictures that scikit-image carries and on drawn ones, see README.md.
constexpr double measured_share = 0.02;  // of a range's windows
constexpr int fewest_blocks = 16;
constexpr int most_blocks = 96;
constexpr double many_windows = 100;  // a range with fewer has less weight
constexpr std::size_t fewest_levels = 4;
constexpr double cut_at_white = 0.05;  // share of the samples: above it the level has lost variance
constexpr double cut_at_black = 0.6;   // photon noise alone makes many samples black

// ---- what the levels show

// The minimum and maximum of samples, in eight partial results, which the compiler can vectorise.
struct Extremes {
  float least = 0;
  float most = 0;
};
Extremes extremes_of(const FlatWindows& windows, const BlockPool& pool) {
  const int samples = windows.channels() * measured_side * measured_side;
  constexpr int lanes = 8;  // blocks have 64 samples a channel
  std::array<float, lanes> least{};
  std::array<float, lanes> most{};
  for (const BlockPool::Block& block : pool.blocks()) {
    const float* from = windows.samples(pool, block);
    for (int i = 0; i < samples; i += lanes) {
      for (int n = 0; n < lanes; ++n) {
        least[n] = std::min(least[n], from[i + n]);
        most[n] = std::max(most[n], from[i + n]);
      }
    }
  }
  return {*std::min_element(least.begin(), least.end()), *std::max_element(most.begin(), most.end())};
}

// Whole numbers of the type's own range have no sample beyond it.
bool may_lie_beyond(const ImageSpec& spec) {
  return is_float(spec.type) || spec.white() < natural_range(spec.type);
}

double mean_over(const NoiseModel::Spectrum& powers, const FrequencyBand& band) {
  double sum = 0;
  int count = 0;
  for (int j = 0; j < NoiseModel::side; ++j) {
    for (int i = 0; i < NoiseModel::side; ++i) {
      if (i + j < band.lowest || i + j > band.highest) continue;
      sum += powers[j * NoiseModel::side + i];
      ++count;
    }
  }
  return sum / count;
}

// Whether a range has enough blocks to be measured.
bool is_measured(const LevelBlocks& range) {
  return range.constant <= range.windows && range.by_window.blocks().size() >= fewest_blocks;
}

std::size_t measured_count(const LevelBlocks& range) {
  const double wanted = std::ceil(measured_share * static_cast<double>(range.windows));
  const double count = std::clamp(wanted, double{fewest_blocks}, double{most_blocks});
  return std::min(static_cast<std::size_t>(count), range.by_window.blocks().size());
}

LevelVariance measure(const FlatWindows& windows, const LevelBlocks& range, int channel, double white) {
  std::vector<BlockPool::Block> blocks = range.by_window.blocks();
  const auto end = blocks.begin() + static_cast<std::ptrdiff_t>(measured_count(range));
  std::partial_sort(blocks.begin(), end, blocks.end());
  blocks.erase(end, blocks.end());
  const int channels = windows.channels();
  LevelVariance found;
  NoiseModel::Spectrum powers{};
  const int samples = channels * measured_side * measured_side;
  for (const BlockPool::Block& block : blocks) {
    const float* values = windows.samples(range.by_window, block);
    const NoiseModel::Spectrum squares = squared_coefficients(channel_of(values, channels, channel));
    for (std::size_t i = 0; i < powers.size(); ++i) powers[i] += squares[i];
    for (int i = 0; i < samples; ++i) {
      found.level += values[i];
      found.black_share += values[i] <= 0 ? 1 : 0;
      found.white_share += values[i] >= white ? 1 : 0;
    }
  }
  const auto measured = static_cast<double>(blocks.size());
  found.level /= measured * samples;
  found.black_share /= measured * samples;
  found.white_share /= measured * samples;
  found.high = mean_over(powers, high_band) / measured;
  found.middle = mean_over(powers, middle_band) / measured;
  found.blocks = static_cast<int>(blocks.size());
  found.weight = std::min(1.0, static_cast<double>(range.windows) / many_windows);
  return found;
}

std::vector<LevelVariance> level_variances(const FlatWindows& windows, const ImageSpec& spec, int channel,
                                           Workers& workers) {
  const double white = spec.white();
  const double rounding = is_float(spec.type) ? 0 : 1.0 / 12;
  const double least_deviation = (spec.type == PixelType::u8 ? 0.15 / 255 : 1e-6) * white;
  std::array<LevelVariance, FlatWindows::level_count> found;
  workers.for_each_quietly(FlatWindows::level_count, [&](std::int64_t n, int) {
    const LevelBlocks& range = windows.levels()[static_cast<std::size_t>(n)];
    if (is_measured(range)) found[static_cast<std::size_t>(n)] = measure(windows, range, channel, white);
  });
  std::vector<LevelVariance> levels;
  for (std::size_t n = 0; n < found.size(); ++n) {
    if (!is_measured(windows.levels()[n])) continue;
    LevelVariance& level = found[n];
    level.high = std::max(level.high - rounding, least_deviation * least_deviation);
    level.middle = std::max(level.middle - rounding, least_deviation * least_deviation);
    // Texture raises the middle band more than the high one: levels that show it have less weight.
    constexpr double no_texture = 1.5;
    const double flat = std::min(1.0, no_texture * level.high / level.middle);
    level.weight *= flat * flat;
    levels.push_back(level);
  }
  return levels;
}

// ---- fits

// The relative error that is to be expected of a level's variance.
double expected_error(const LevelVariance& level) {
  constexpr double tolerance = 0.1;
  constexpr double coefficients =
      21.0 / 3;  // of the high band; flat blocks overlap, which leaves about a third of them independent
  return std::sqrt(tolerance * tolerance + 2 / (coefficients * level.blocks));
}

// The cost of a prediction at a level. Variance above it is plausible (texture), variance below it is not.
double cost(const LevelVariance& level, double error, double predicted) {
  constexpr double most_below = 12;
  constexpr double most_above = 2.5;
  if (level.high < predicted) {
    const double below = (predicted / level.high - 1) / error;
    return std::min(below * below / 2, most_below);
  }
  const double above = (level.high / predicted - 1) / error;
  return above < 1 ? above * above / 2 : std::min(0.5 + 0.35 * (above - 1), most_above);
}

// The share of the variance left by a cut at black (or, mirrored, at white).
double share_after_cut(double mean, double sigma) {
  constexpr double far = 1e6;
  static const ClippedGaussian unit(1, far);
  constexpr double unfelt = 4;
  return mean > unfelt * sigma ? 1 : unit.at_mean(mean / sigma).variance_share;
}

class Fitter {
 public:
  Fitter(std::vector<LevelVariance> levels, const CutLimits& limits, double white)
      : levels_(std::move(levels)), limits_(limits), white_(white) {
    for (const LevelVariance& level : levels_) errors_.push_back(expected_error(level));
  }

  LevelFit operator()(Workers& workers) {
    LevelFit fit;
    for (const LevelVariance& level : levels_) {
      fit.weight += level.weight;
      least_ = std::min(least_, level.high);
      most_ = std::max(most_, level.high);
    }
    weight_ = fit.weight;
    fit_constant(fit, workers);
    fit_line(fit, workers);
    fit.white_spectrum = has_white_spectrum();
    return fit;
  }

 private:
  double after_cut(double level, double variance) const {
    const double sigma = std::sqrt(variance);
    double left = variance;
    if (limits_.black) left *= share_after_cut(level, sigma);
    if (limits_.white) left *= share_after_cut(white_ - level, sigma);
    return std::max(left, 1e-3 * variance);
  }

  template <class Predict>
  double mean_cost(const Predict& predict) const {
    double sum = 0;
    for (std::size_t n = 0; n < levels_.size(); ++n) {
      sum += levels_[n].weight * cost(levels_[n], errors_[n], predict(levels_[n].level));
    }
    return sum / weight_;
  }

  void fit_constant(LevelFit& fit, Workers& workers) const {
    constexpr double step = 1.04;
    std::vector<double> variances;
    for (double variance = 0.9 * least_; variance < 2 * most_; variance *= step)
      variances.push_back(variance);
    std::vector<double> costs(variances.size());
    workers.for_each_quietly(static_cast<std::int64_t>(costs.size()), [&](std::int64_t n, int) {
      const double variance = variances[static_cast<std::size_t>(n)];
      costs[static_cast<std::size_t>(n)] =
          mean_cost([&](double level) { return after_cut(level, variance); });
    });
    fit.variance_cost = std::numeric_limits<double>::infinity();
    for (std::size_t n = 0; n < costs.size(); ++n) {
      if (costs[n] >= fit.variance_cost) continue;
      fit.variance_cost = costs[n];
      fit.variance = variances[n];
    }
  }

  double on(const PoissonGaussian& line, double level) const {
    return std::max(line.a * level + line.b, 0.5 * least_);
  }
  void try_line(const PoissonGaussian& line, LevelFit& fit) const {
    take_better({line, mean_cost([&](double level) { return on(line, level); })}, fit);
  }
  struct LineCost {
    PoissonGaussian line;
    double cost = std::numeric_limits<double>::infinity();
  };
  static void take_better(const LineCost& found, LevelFit& fit) {
    if (found.cost >= fit.line_cost) return;
    fit.line_cost = found.cost;
    fit.line = found.line;
  }

  // Tries lines through every two levels, and from black through each; takes the mean of the levels that the
  // best line meets.
  void fit_line(LevelFit& fit, Workers& workers) const {
    std::vector<LineCost> found(levels_.size());
    workers.for_each_quietly(static_cast<std::int64_t>(found.size()), [&](std::int64_t n, int) {
      found[static_cast<std::size_t>(n)] = best_line_through(static_cast<std::size_t>(n));
    });
    fit.line_cost = std::numeric_limits<double>::infinity();
    for (const LineCost& best : found) take_better(best, fit);
    constexpr int rounds = 3;
    for (int round = 0; round < rounds; ++round) {
      const std::optional<PoissonGaussian> mean = mean_line(fit.line);
      if (mean) try_line(*mean, fit);
    }
    prefer_black(fit);
  }

  // Of the lines through a level and black, or one of the levels above it.
  LineCost best_line_through(std::size_t i) const {
    LevelFit best;
    best.line_cost = std::numeric_limits<double>::infinity();
    const LevelVariance& one = levels_[i];
    try_line({0, one.high}, best);
    if (one.level > 0) try_line({one.high / one.level, 0}, best);
    for (std::size_t k = i + 1; k < levels_.size(); ++k) {
      const LevelVariance& other = levels_[k];
      constexpr double too_near = 0.02;
      if (std::fabs(other.level - one.level) < too_near * white_) continue;
      const double a = (other.high - one.high) / (other.level - one.level);
      if (a >= 0) try_line({a, one.high - a * one.level}, best);
    }
    return {best.line, best.line_cost};
  }

  // Prefers photons alone if the fit is as good, because it extrapolates better to unseen levels.
  void prefer_black(LevelFit& fit) const {
    constexpr double as_good = 0.03;
    LevelFit from_black;
    from_black.line_cost = std::numeric_limits<double>::infinity();
    for (double factor = 0.8; factor < 1.2; factor += 0.01) {
      const double brightest = levels_.back().level;
      if (brightest > 0) try_line({factor * on(fit.line, brightest) / brightest, 0}, from_black);
    }
    if (from_black.line_cost > fit.line_cost + as_good) return;
    fit.line = from_black.line;
    fit.line_cost = from_black.line_cost;
  }

  // Least squares of the relative errors over the levels that `line` meets.
  std::optional<PoissonGaussian> mean_line(const PoissonGaussian& line) const {
    double n = 0;
    double x = 0;
    double y = 0;
    double xx = 0;
    double xy = 0;
    for (const LevelVariance& level : levels_) {
      const double predicted = on(line, level.level);
      constexpr double meets = 0.35;
      if (std::fabs(level.high / predicted - 1) > meets) continue;
      const double weight = level.weight * level.blocks / (predicted * predicted);
      n += weight;
      x += weight * level.level;
      y += weight * level.high;
      xx += weight * level.level * level.level;
      xy += weight * level.level * level.high;
    }
    const double spread = n * xx - x * x;
    if (!(spread > 0)) return {};
    const double a = (n * xy - x * y) / spread;
    if (a < 0) return {};
    return PoissonGaussian{a, (y - a * x) / n};
  }

  // Considers the lower levels, because texture raises the middle band of some.
  bool has_white_spectrum() const {
    constexpr double white_ratio = 1.5 * 1.5;  // of variances
    std::vector<double> ratios;
    for (const LevelVariance& level : levels_) ratios.push_back(level.middle / level.high);
    const auto lower = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 4);
    std::nth_element(ratios.begin(), lower, ratios.end());
    return *lower < white_ratio;
  }

  std::vector<LevelVariance> levels_;
  std::vector<double> errors_;  // expected_error() of each
  double weight_ = 0;           // of all
  CutLimits limits_;
  double white_;
  double least_ = std::numeric_limits<double>::infinity();
  double most_ = 0;
};

}  // namespace

bool LevelFit::is_line() const {
  constexpr double good = 0.9;     // mean cost: 0.1 to 0.6 of photon noise, 1.8 and more of clean pictures
  constexpr double better = 0.12;  // than one variance for all levels
  constexpr double much_better = 0.4;   // the same, as a share of that one's cost
  constexpr double surely = 2.5;        // the same, over all levels
  constexpr double least_change = 1.2;  // of the deviation, over the levels
  if (!white_spectrum || line.b > line.a * levels[levels.size() / 2].level)
    return false;  // photons make most
  const double gain = variance_cost - line_cost;
  const double darkest = std::max(line.a * levels.front().level + line.b, 0.0);
  const double at_brightest = line.a * levels.back().level + line.b;
  return line_cost < good && gain > better && gain > much_better * variance_cost && gain * weight > surely &&
         at_brightest > least_change * least_change * darkest;
}

void request_blocks_for_lines(FlatWindows& windows, const ImageSpec& spec) {
  for (int n = 0; n < FlatWindows::level_count; ++n) {
    const LevelBlocks& range = windows.levels()[static_cast<std::size_t>(n)];
    const std::size_t all = range.by_window.blocks().size();
    const std::size_t measured = is_measured(range) ? measured_count(range) : 0;
    const std::size_t count = may_lie_beyond(spec) ? all : measured;  // cut_limits() asks all of them
    for (std::size_t index = 0; index < count; ++index) windows.request(n, &LevelBlocks::by_window, index);
  }
}

CutLimits cut_limits(const FlatWindows& windows, const ImageSpec& spec, Workers& workers) {
  CutLimits limits;
  if (!may_lie_beyond(spec)) return limits;
  std::array<Extremes, FlatWindows::level_count> found;
  workers.for_each_quietly(FlatWindows::level_count, [&](std::int64_t n, int) {
    found[static_cast<std::size_t>(n)] =
        extremes_of(windows, windows.levels()[static_cast<std::size_t>(n)].by_window);
  });
  for (const Extremes& of_level : found) {
    limits.black = limits.black && of_level.least >= 0;
    limits.white = limits.white && double{of_level.most} <= spec.white();
  }
  return limits;
}

std::optional<LevelFit> fit_levels(const FlatWindows& windows, const ImageSpec& spec, const CutLimits& limits,
                                   int channel, Workers& workers) {
  std::vector<LevelVariance> levels = level_variances(windows, spec, channel, workers);
  std::vector<LevelVariance> uncut;
  std::vector<LevelVariance> cut;
  for (const LevelVariance& level : levels) {
    if (limits.black && level.black_share > cut_at_black) continue;
    (limits.white && level.white_share > cut_at_white ? cut : uncut).push_back(level);
  }
  if (uncut.size() < fewest_levels) return {};
  LevelFit fit = Fitter(uncut, limits, spec.white())(workers);
  for (int n = 0; n < FlatWindows::level_count; ++n) {
    if (windows.levels()[static_cast<std::size_t>(n)].windows > 0) fit.brightest = windows.level_of(n);
  }
  fit.levels = std::move(uncut);
  fit.cut_levels = std::move(cut);
  return fit;
}

NoiseModel::Channel line_channel(const LevelFit& fit, const ImageSpec& spec) {
  const auto variance = [&](double level) { return std::max(fit.line.a * level + fit.line.b, 0.0); };
  NoiseModel::Channel channel{{}, {}, {}};
  channel.spectrum.fill(1);
  const auto add = [&](double level, double value) {
    if (!channel.levels.empty() && level <= channel.levels.back()) return;
    channel.levels.push_back(level);
    channel.deviations.push_back(std::sqrt(value));
  };
  // If black is not 0, the line falls to 0 above it; levels darker than all measured ones get a little noise.
  const double darkest = std::max(fit.levels.front().level, 0.0);
  constexpr double a_little = 0.25;
  add(0, fit.line.b < 0 ? a_little * variance(darkest) : fit.line.b);
  if (fit.line.b < 0) add(darkest, variance(darkest));
  for (const LevelVariance& level : fit.cut_levels) {
    add(fit.levels.back().level, variance(fit.levels.back().level));
    add(level.level, std::min(variance(level.level), level.high));
  }
  // Continues beyond white: photon noise reaches there, and small objects are brighter than their windows.
  const double beyond = std::min(2 * spec.white(), 4 * fit.brightest);
  if (fit.cut_levels.empty()) add(beyond, variance(beyond));
  return channel;
}

}  // namespace ungrain
