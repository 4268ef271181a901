#include "noise/cut_noise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <type_traits>

#include "device/backends.h"
#include "noise/clipped_gaussian.h"
#include "noise/white_noise.h"

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

double normal_density(double x) { return std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi); }

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

namespace {

// Of a block's samples: distances from the limit, or the samples themselves.
template <class Value>
struct BlockSums {
  using Square = std::conditional_t<std::is_integral_v<Value>, std::int64_t, double>;
  Value sum = 0;
  Square squares = 0;
};

constexpr int block_side = 8;
constexpr int block_samples = block_side * block_side;

// Integers may be added in any order, many at a time; floats one after the other.
template <class Value>
BlockSums<Value> sums_of(const Value* values) {
  using Square = typename BlockSums<Value>::Square;
  BlockSums<Value> sums;
  for (int i = 0; i < block_samples; ++i) {
    sums.sum += values[i];
    sums.squares += Square{values[i]} * Square{values[i]};
  }
  return sums;
}

template <class Value>
int changes_of(const Value* distances) {
  int changes = 0;
  for (int y = 0; y < block_side; ++y) {
    const Value* row = distances + static_cast<std::ptrdiff_t>(y) * block_side;
    for (int x = 1; x < block_side; ++x) changes += (row[x] <= 0) != (row[x - 1] <= 0) ? 1 : 0;
  }
  return changes;
}

}  // namespace

CutDetector::CutDetector(const ImageSpec& spec, int threads)
    : spec_(spec), rows_(spec), workers_(estimate_workers(spec, threads)) {
  const double blocks = static_cast<double>(spec.width) * spec.height / (side * side);
  step_ = side * std::max(1, static_cast<int>(std::ceil(std::sqrt(blocks / most_blocks))));
  columns_ = spec.width < side ? 0 : (spec.width - side) / step_ + 1;
  block_count_ = static_cast<std::size_t>(columns_) * static_cast<std::size_t>(rows_before(spec.height));
  for (int c = 0; c < spec.colour_channels(); ++c) blocks_.emplace_back(new Block[block_count_]);
}

void CutDetector::add_rows(const ConstImageView& image) {
  rows_.add(image, [&](const LatestRows& latest, int first) {
    look_in_pieces(latest, first, workers_, [&](int from, int end, int /*worker*/) {
      for (int row = rows_before(from); row < rows_before(end); ++row) look_at_row(latest, row);
    });
  });
}

void CutDetector::add_image(const ConstImageView& image) {
  if (image.space.memory == Space::Memory::host) return add_rows(image);
  add_pass(*make_noise_pass(image));
}

void CutDetector::add_pass(NoisePass& pass) {
  const std::span<const CutBlock> found = pass.cut_blocks(lattice());
  for (std::size_t c = 0; c < blocks_.size(); ++c) {
    std::copy_n(found.data() + c * block_count_, block_count_, blocks_[c].get());
  }
}

CutLattice CutDetector::lattice() const {
  constexpr double most_white = 65535;
  const double white = spec_.white();
  return {.step = step_,
          .columns = columns_,
          .rows = rows_before(spec_.height),
          .channels = spec_.colour_channels(),
          .white = white,
          .whole_numbers = !is_float(spec_.type) && white <= most_white && white == std::floor(white)};
}

// `Value` is the type to compute in: int32_t, if samples and white are integers of up to 16 bits, or double.
template <class Value>
CutDetector::Block CutDetector::look_at_block(const float* samples) const {
  Block block{};
  const auto white = static_cast<Value>(spec_.white());
  std::array<Value, block_samples> values;
  for (int i = 0; i < block_samples; ++i) values[i] = static_cast<Value>(samples[i]);
  const auto sum = static_cast<double>(sums_of(values.data()).sum);
  if (!std::isfinite(sum)) return block;
  Value least = values[0];
  Value most = values[0];
  for (const Value value : values) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  if (least == most) return block;
  block.below_black = least < 0;
  block.above_white = most > white;
  const bool dark = sum / block_samples < spec_.white() / 2;
  block.limit = dark ? Limit::black : Limit::white;
  if (!dark) {
    for (Value& value : values) value = white - value;
  }
  const BlockSums<Value> distances = sums_of(values.data());
  const auto distance = static_cast<double>(distances.sum);
  block.mean = distance / block_samples;
  block.variance = (static_cast<double>(distances.squares) - distance * block.mean) / (block_samples - 1);
  if (dark ? least > 0 : most < white) return block;  // no sample is at the limit
  block.at_limit = static_cast<std::uint8_t>(
      std::count_if(values.begin(), values.end(), [](Value value) { return value <= 0; }));
  block.changes = static_cast<std::uint8_t>(changes_of(values.data()));
  return block;
}

void CutDetector::look_at_row(const LatestRows& rows, int row) {
  const bool whole_numbers = lattice().whole_numbers;
  const int channels = spec_.colour_channels();
  std::vector<float> samples(static_cast<std::size_t>(channels) * block_samples);
  for (int column = 0; column < columns_; ++column) {
    copy_blocks(rows, 0, channels, column * step_, row * step_, samples.data());
    const std::size_t at = static_cast<std::size_t>(row) * static_cast<std::size_t>(columns_) + column;
    for (int c = 0; c < channels; ++c) {
      const float* of_channel = samples.data() + static_cast<std::ptrdiff_t>(c) * block_samples;
      blocks_[static_cast<std::size_t>(c)][at] =
          whole_numbers ? look_at_block<std::int32_t>(of_channel) : look_at_block<double>(of_channel);
    }
  }
}

CutDetector::Side CutDetector::side_of(int channel, Limit limit, double sigma) const {
  Side seen;
  const Block* blocks = blocks_[static_cast<std::size_t>(channel)].get();
  for (std::size_t n = 0; n < block_count_; ++n) {
    const Block& block = blocks[n];
    seen.beyond = seen.beyond || (limit == Limit::black ? block.below_black : block.above_white);
    if (block.limit != limit) continue;
    ++seen.blocks;
    if (block.mean / sigma <= highest_mean) seen.near.push_back(block);
  }
  return seen;
}

CutDetector::Evidence CutDetector::evidence(const Side& seen, double sigma) const {
  const ClippedGaussian noise(sigma, spec_.white());
  constexpr double samples = block_samples;
  constexpr double pairs = samples - side;
  Evidence sum;
  for (const Block& block : seen.near) {
    const double mean = block.mean / sigma;
    if (mean < lowest_mean || mean > highest_mean) continue;
    const double at_limit = block.at_limit / samples;
    ++sum.blocks;
    sum.found.at_limit += at_limit;
    sum.expected.at_limit += share_at_limit(mean);
    sum.found.variance += block.variance;
    sum.expected.variance += noise.at_mean(block.mean).variance_share * sigma * sigma;
    sum.found.changes += block.changes / pairs;
    sum.expected.changes += 2 * at_limit * (1 - at_limit);
  }
  return sum;
}

CutDetector::SideCut CutDetector::side_cut(int channel, Limit limit, double sigma) const {
  // Rounding alone makes samples equal to the limit.
  const double least_sigma = is_float(spec_.type) ? 0 : 1.5;
  if (!(sigma > least_sigma)) return {};
  const Side seen = side_of(channel, limit, sigma);
  const double wanted = std::max<double>(fewest_blocks, least_share * static_cast<double>(seen.blocks));
  if (seen.beyond || static_cast<double>(seen.near.size()) < wanted) return {};
  Evidence sum = evidence(seen, sigma);
  if (sum.blocks < wanted || !at_limit_bounds.hold(sum.found.at_limit, sum.expected.at_limit) ||
      !variance_bounds.hold(sum.found.variance, sum.expected.variance) ||
      !changes_bounds.hold(sum.found.changes, sum.expected.changes)) {
    return {};
  }
  SideCut cut{true, sum.blocks, least_factor};
  constexpr double step = 0.01;
  for (double factor = 1; factor > least_factor; factor -= step) {
    if (factor < 1) sum = evidence(seen, factor * sigma);
    if (sum.found.variance < sum.expected.variance) continue;
    cut.deviation_factor = factor;
    break;
  }
  return cut;
}

Cut CutDetector::finish(const std::vector<ChannelDeviation>& deviations) {
  constexpr std::array limits = {Limit::black, Limit::white};
  std::vector<SideCut> found(limits.size() * deviations.size());
  workers_.for_each_quietly(static_cast<std::int64_t>(found.size()), [&](std::int64_t n, int) {
    const auto channel = static_cast<std::size_t>(n) / limits.size();
    const Limit limit = limits[static_cast<std::size_t>(n) % limits.size()];
    const double sigma = deviations[channel].at(limit == Limit::black ? 0 : spec_.white());
    found[static_cast<std::size_t>(n)] = side_cut(static_cast<int>(channel), limit, sigma);
  });
  Cut cut;
  double factors = 0;
  double weights = 0;
  for (std::size_t n = 0; n < found.size(); ++n) {
    if (!found[n].is_cut) continue;
    (limits[n % limits.size()] == Limit::black ? cut.at_black : cut.at_white) = true;
    factors += found[n].blocks * found[n].deviation_factor;
    weights += found[n].blocks;
  }
  if (weights > 0) cut.deviation_factor = factors / weights;
  return cut;
}

}  // namespace ungrain
