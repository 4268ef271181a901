// How much Rician noise a volume has. Blocks of 10 x 10 samples are counted in histograms with logarithmic
// steps, whole numbers only: any order of the slices gives the same bits, and no scale has to be known first.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <vector>

#include "core/portable_math.h"
#include "noise/rician.h"
#include "ungrain/error.h"

namespace ungrain {
namespace {

constexpr int block_side = 10;
constexpr int block_step = 5;
constexpr int block_area = block_side * block_side;
constexpr double ln_2 = 0.6931471805599453;

double log2_of(double value) { return portable::log(value) / ln_2; }
double exp2_of(double value) { return portable::exp(value * ln_2); }

// ---- histograms

// Blocks by their root mean square. A step is 1 / 256 octave: 0.27 %.
class LevelCounts {
 public:
  static constexpr int per_octave = 256;
  struct Bin {
    std::int64_t blocks = 0;
    // Sums in units of 1 / unit: of variance / mean square, and of the finest detail's variance / mean
    // square.
    std::int64_t spread = 0;
    std::int64_t detail = 0;
    void add(const Bin& other) {
      blocks += other.blocks;
      spread += other.spread;
      detail += other.detail;
    }
  };
  static constexpr double unit = 1 << 30;

  void add(double mean_square, double variance, double detail) {
    Bin& bin = bins_[static_cast<int>(std::floor(per_octave * log2_of(mean_square) / 2))];
    bin.add({1, static_cast<std::int64_t>(unit * variance / mean_square),
             static_cast<std::int64_t>(unit * detail / mean_square)});
  }
  void add(const LevelCounts& others) {
    for (const auto& [place, bin] : others.bins_) bins_[place].add(bin);
  }
  const std::map<int, Bin>& bins() const { return bins_; }
  static double mean_square(int bin) { return exp2_of(2 * (bin + 0.5) / per_octave); }

  Bin between(double first, double last) const {  // bin numbers
    Bin sum;
    const auto end = bins_.upper_bound(static_cast<int>(std::floor(last)));
    for (auto bin = bins_.lower_bound(static_cast<int>(std::ceil(first))); bin != end; ++bin) {
      sum.add(bin->second);
    }
    return sum;
  }

 private:
  std::map<int, Bin> bins_;
};

// Blocks by their mean and by the variance of their finest detail.
class DetailCounts {
 public:
  struct Cell {
    double mean;
    double variance;
    double blocks;
  };

  void add(double mean, double variance) {
    std::vector<std::uint32_t>& row = rows_[static_cast<int>(std::floor(means_per_octave * log2_of(mean)))];
    row.resize(columns);
    const double place = per_octave * (log2_of(variance / (mean * mean)) - lowest);
    ++row[static_cast<std::size_t>(std::clamp<double>(place, 0, columns - 1))];
  }
  void add(const DetailCounts& others) {
    for (const auto& [place, row] : others.rows_) {
      std::vector<std::uint32_t>& sum = rows_[place];
      sum.resize(columns);
      for (std::size_t i = 0; i < columns; ++i) sum[i] += row[i];
    }
  }
  std::vector<Cell> cells() const {
    std::vector<Cell> all;
    for (const auto& [place, row] : rows_) {
      const double mean = exp2_of((place + 0.5) / means_per_octave);
      for (std::size_t i = 0; i < columns; ++i) {
        if (row[i] == 0) continue;
        const double share = exp2_of((static_cast<double>(i) + 0.5) / per_octave + lowest);
        all.push_back({mean, mean * mean * share, static_cast<double>(row[i])});
      }
    }
    return all;
  }

 private:
  static constexpr int means_per_octave = 16;
  static constexpr int per_octave = 64;  // of variance / mean²: a step is 0.5 % of the deviation
  static constexpr int lowest = -40;     // octave
  static constexpr std::size_t columns = 48 * per_octave;
  std::map<int, std::vector<std::uint32_t>> rows_;
};

struct Counts {
  LevelCounts levels;
  DetailCounts details;
  void add(const Counts& others) {
    levels.add(others.levels);
    details.add(others.details);
  }
};

// ---- blocks

// The finest diagonal detail: fourth differences along both axes. White noise of variance 1 gives 4900. Of a
// wave of 7 pixels along both axes they leave 2e-5, second differences 0.9 %.
constexpr double detail_gain = 4900;
template <class Number>
double fourth_difference(const Number* values, std::ptrdiff_t step) {
  const auto at = [&](int i) { return static_cast<double>(values[i * step]); };
  return at(0) + at(4) - 4 * (at(1) + at(3)) + 6 * at(2);
}

struct Block {
  double mean = 0;
  double mean_square = 0;
  double detail = 0;  // variance of the finest detail, as that of white noise
  int zeros = 0;
  bool usable = true;  // finite and not negative
};

Block block_at(const float* samples, std::ptrdiff_t stride) {
  Block block;
  float sum = 0;
  double squares = 0;
  double total = 0;
  for (int y = 0; y < block_side; ++y) {
    for (int x = 0; x < block_side; ++x) {
      const float value = samples[y * stride + x];
      if (!(value >= 0)) block.usable = false;
      sum += value;
      block.zeros += value == 0 ? 1 : 0;
      total += value;
      squares += static_cast<double>(value) * value;
    }
  }
  if (!std::isfinite(sum)) block.usable = false;
  if (!block.usable || block.zeros == block_area) return block;
  constexpr int inner = block_side - 4;
  double rows[block_side * inner];
  for (int y = 0; y < block_side; ++y) {
    for (int x = 0; x < inner; ++x) rows[y * inner + x] = fourth_difference(samples + y * stride + x, 1);
  }
  double details = 0;
  for (int i = 0; i < inner * inner; ++i) {
    const double detail = fourth_difference(rows + i, inner);
    details += detail * detail;
  }
  block.mean = total / block_area;
  block.mean_square = squares / block_area;
  block.detail = details / (inner * inner * detail_gain);
  return block;
}

// ---- sigma of the background

struct Found {
  double sigma = 0;
  std::int64_t blocks = 0;
  bool white = true;  // the finest detail shows the whole noise
};

// Blocks of noise alone have root mean squares around sigma sqrt(2 coils), with a known small spread, and a
// known ratio of variance to mean square. The lowest such cluster is the background.
class Background {
 public:
  // `widening` is 1 for white noise. Correlated noise varies more from block to block.
  Background(const LevelCounts& levels, int coils, double widening)
      : levels_(levels),
        coils_(coils),
        widening_(widening),
        deviation_(widening * LevelCounts::per_octave / ln_2 /
                   (2 * std::sqrt(static_cast<double>(block_area * coils)))) {}

  Found find(double rounding_variance) const {
    std::int64_t all = 0;
    for (const auto& [place, bin] : levels_.bins()) all += bin.blocks;
    const std::int64_t least = std::max<std::int64_t>(least_blocks, all / 100);
    for (const auto& [place, bin] : levels_.bins()) {
      if (around(place, reach).blocks < least || !is_peak(place)) continue;
      const double centre = refined(place);
      const double mean_square = exp2_of(2 * centre / LevelCounts::per_octave);
      const LevelCounts::Bin cluster = around(centre, reach);
      if (mean_square <= rounding_variance || !is_lowest(centre) || !is_dense(centre)) continue;
      if (!has_chi_spread(cluster, rounding_variance / mean_square)) continue;
      // Texture of the object looks like correlated noise too, but the finest detail shows most of the noise.
      const double detail_share = static_cast<double>(cluster.detail) / static_cast<double>(cluster.spread);
      if (widening_ > 1 && detail_share > 0.5) continue;
      return {.sigma = std::sqrt((mean_square - rounding_variance) / (2 * coils_)),
              .blocks = cluster.blocks,
              .white = detail_share > 0.7};
    }
    return {};
  }

 private:
  static constexpr std::int64_t least_blocks = 48;
  static constexpr double reach = 3;  // deviations of a block's root mean square

  LevelCounts::Bin around(double centre, double deviations) const {
    return levels_.between(centre - deviations * deviation_ - 0.5, centre + deviations * deviation_ - 0.5);
  }
  bool is_peak(int place) const {
    const std::int64_t own = around(place + 0.5, 1).blocks;
    const auto end = levels_.bins().upper_bound(place + static_cast<int>(reach * deviation_));
    auto bin = levels_.bins().lower_bound(place - static_cast<int>(reach * deviation_));
    for (; bin != end; ++bin) {
      if (around(bin->first + 0.5, 1).blocks > own) return false;
    }
    return true;
  }
  // The mean of the mean squares around the peak, as a place between bins.
  double refined(int peak) const {
    double centre = peak + 0.5;
    for (int round = 0; round < 30; ++round) {
      double sum = 0;
      std::int64_t blocks = 0;
      const double half = 2.5 * deviation_;
      for (auto bin = levels_.bins().lower_bound(static_cast<int>(std::ceil(centre - half - 0.5)));
           bin != levels_.bins().end() && bin->first + 0.5 <= centre + half; ++bin) {
        sum += static_cast<double>(bin->second.blocks) * LevelCounts::mean_square(bin->first);
        blocks += bin->second.blocks;
      }
      if (blocks == 0) break;
      const double next = LevelCounts::per_octave * log2_of(sum / static_cast<double>(blocks)) / 2;
      if (std::abs(next - centre) < 1e-3) break;
      centre = next;
    }
    return centre;
  }
  // Nothing is darker than no signal.
  bool is_lowest(double centre) const {
    const LevelCounts::Bin darker = levels_.between(levels_.bins().begin()->first, centre - 4 * deviation_);
    return static_cast<double>(darker.blocks) < 0.1 * static_cast<double>(around(centre, reach).blocks);
  }
  // Of noise 0.68 lie within one deviation, of evenly spread levels 0.33.
  bool is_dense(double centre) const {
    return static_cast<double>(around(centre, 1).blocks) >
           0.5 * static_cast<double>(around(centre, reach).blocks);
  }
  bool has_chi_spread(const LevelCounts::Bin& cluster, double rounding_share) const {
    constexpr double tolerated = 0.15;  // correlated noise varies less within a block
    const double ratio =
        static_cast<double>(cluster.spread) / LevelCounts::unit / static_cast<double>(cluster.blocks);
    const double noise = rician_variance(0, 1, coils_) / (2 * coils_);
    const double expected = noise + (1 - noise) * rounding_share;
    return std::abs(ratio / expected - 1) < tolerated;
  }

  const LevelCounts& levels_;
  int coils_;
  double widening_;
  double deviation_;  // of a block's root mean square, in bins
};

// ---- sigma of the object

// The variance of magnitudes, given their mean; sigma = 1.
class VarianceByMean {
 public:
  explicit VarianceByMean(int coils) : coils_(coils) {
    const double last = 20 + 2 * std::sqrt(static_cast<double>(coils));
    for (double nu = 0; nu < last; nu += 0.1) {
      means_.push_back(rician_mean(nu, 1, coils));
      variances_.push_back(rician_variance(nu, 1, coils));
    }
  }
  double at(double mean) const {
    if (mean <= means_.front()) return variances_.front();
    if (mean >= means_.back()) {
      const double nu_square = mean * mean - 2 * coils_ + 1;
      return 1 - (coils_ - 0.5) / nu_square;
    }
    const auto above = std::upper_bound(means_.begin() + 1, means_.end() - 1, mean);
    const auto i = static_cast<std::size_t>(above - means_.begin());
    const double share = (mean - means_[i - 1]) / (means_[i] - means_[i - 1]);
    return variances_[i - 1] + share * (variances_[i] - variances_[i - 1]);
  }

 private:
  double coils_;
  std::vector<double> means_;
  std::vector<double> variances_;
};

// The variance around which most blocks lie, within half an octave; cells by rising variance.
double densest_variance(const std::vector<DetailCounts::Cell>& cells) {
  double most = 0;
  double found = 0;
  double blocks = 0;
  std::size_t first = 0;
  for (std::size_t last = 0; last < cells.size(); ++last) {
    blocks += cells[last].blocks;
    for (; cells[first].variance < cells[last].variance / 2; ++first) blocks -= cells[first].blocks;
    if (blocks > most) {
      most = blocks;
      found = std::sqrt(cells[first].variance * cells[last].variance);
    }
  }
  return found;
}

// Koay's correction as a fixed point over all blocks together: sigma says which variance each block's mean
// goes with, and the blocks' variances over these say sigma. Texture and edges only add variance: blocks with
// more than `highest` times the expected variance do not count, and the density of blocks beyond says how
// many of those below have a little texture. Blocks with a mean below `signal` do not count either.
Found object_noise(const DetailCounts& details, double signal, int coils, double rounding_variance) {
  constexpr double highest = 1.6;
  // Of blocks of Gaussian noise; 1e6 drawn.
  constexpr double mean_below = 0.8471;   // of the variance over the expected one, below `highest`
  constexpr double share_below = 0.8753;  // of all blocks
  constexpr double share_beyond = 0.047;
  constexpr double beyond_first = 2;
  constexpr double beyond_last = 3;
  // Blocks with a little texture are taken to be evenly spread from here on.
  constexpr double texture_first = 0.8;
  constexpr double most_textured = 0.04;  // of the blocks: more makes the fixed point unstable
  constexpr double least_blocks = 100;
  constexpr double least_share = 0.05;  // of blocks without texture
  std::vector<DetailCounts::Cell> cells = details.cells();
  std::erase_if(cells, [&](const DetailCounts::Cell& cell) { return cell.mean < signal; });
  std::sort(cells.begin(), cells.end(),
            [](const DetailCounts::Cell& a, const DetailCounts::Cell& b) { return a.variance < b.variance; });
  double all = 0;
  for (const DetailCounts::Cell& cell : cells) all += cell.blocks;
  if (all < least_blocks) return {};
  double sigma = std::sqrt(densest_variance(cells));
  const VarianceByMean unit(coils);
  double below = 0;
  for (int round = 0; round < 300; ++round) {
    double sum = 0;
    double beyond = 0;
    below = 0;
    for (const DetailCounts::Cell& cell : cells) {
      const double expected = sigma * sigma * unit.at(cell.mean / sigma) + rounding_variance;
      const double ratio = cell.variance / expected;
      if (ratio < highest) {
        sum += cell.blocks * ratio;
        below += cell.blocks;
      } else if (ratio >= beyond_first && ratio < beyond_last) {
        beyond += cell.blocks;
      }
    }
    constexpr double growth = 1.1;  // while there is too little to average
    const bool few = below < least_share * share_below * all;
    double factor = growth;
    if (!few) {
      const double density =
          std::max(0.0, beyond - share_beyond / share_below * below) / (beyond_last - beyond_first);
      const double textured = std::min(most_textured * below, density * (highest - texture_first));
      const double mean = (sum - textured * (highest + texture_first) / 2) / (below - textured);
      factor = std::sqrt(mean / mean_below);
    }
    sigma *= factor;
    if (!few && std::abs(factor - 1) < 1e-5) break;
  }
  return {.sigma = sigma, .blocks = static_cast<std::int64_t>(below)};
}

}  // namespace

// ---- the estimator

struct RicianEstimator::Impl {
  int coils = 1;
  Counts blocks = {};             // without zeros
  Counts blocks_with_zeros = {};  // a few, as whole numbers have them where noise is weak
  bool whole_numbers = true;      // all samples so far
};

std::string_view name(RicianEstimate::Source source) {
  switch (source) {
    case RicianEstimate::Source::none:
      return "none";
    case RicianEstimate::Source::background:
      return "background";
    case RicianEstimate::Source::object:
      return "object";
  }
  return "?";
}

RicianEstimator::RicianEstimator(int coils) : impl_(std::make_unique<Impl>(Impl{.coils = coils})) {
  validate(Rician{1, coils});
}
RicianEstimator::~RicianEstimator() = default;
RicianEstimator::RicianEstimator(RicianEstimator&&) noexcept = default;
RicianEstimator& RicianEstimator::operator=(RicianEstimator&&) noexcept = default;

void RicianEstimator::add_slice(const float* samples, int width, int height, std::ptrdiff_t stride) {
  constexpr int most_zeros = block_area / 8;
  for (int y = 0; y < height && impl_->whole_numbers; ++y) {
    const float* row = samples + y * stride;
    impl_->whole_numbers = std::all_of(
        row, row + width, [](float value) { return !std::isfinite(value) || value == std::floor(value); });
  }
  for (int y = 0; y + block_side <= height; y += block_step) {
    for (int x = 0; x + block_side <= width; x += block_step) {
      const Block block = block_at(samples + y * stride + x, stride);
      if (!block.usable || block.zeros > most_zeros || !(block.detail > 0)) continue;
      Counts& counts = block.zeros == 0 ? impl_->blocks : impl_->blocks_with_zeros;
      constexpr double unbiased = static_cast<double>(block_area) / (block_area - 1);
      const double variance = unbiased * std::max(0.0, block.mean_square - block.mean * block.mean);
      counts.levels.add(block.mean_square, variance, block.detail);
      counts.details.add(block.mean, block.detail);
    }
  }
}

RicianEstimate RicianEstimator::finish() const {
  Counts counts = impl_->blocks;
  if (impl_->whole_numbers) counts.add(impl_->blocks_with_zeros);
  const double rounding_variance = impl_->whole_numbers ? 1. / 12 : 0;
  const int coils = impl_->coils;
  Found background = Background(counts.levels, coils, 1).find(rounding_variance);
  if (background.blocks == 0) background = Background(counts.levels, coils, 2.5).find(rounding_variance);
  // Mean magnitude above which there is signal.
  const double signal = background.sigma > 0 ? rician_mean(3 * background.sigma, background.sigma, coils) : 0;
  const Found object = object_noise(counts.details, signal, coils, rounding_variance);
  RicianEstimate estimate{.background_sigma = background.sigma,
                          .object_sigma = object.sigma,
                          .background_blocks = background.blocks,
                          .object_blocks = object.blocks};
  // A background that is much weaker than the object's noise was processed. One that is stronger is a dark
  // part of the object, unless noise is correlated: that lacks the finest detail, by which the object is
  // measured.
  constexpr double most_texture = 2;
  constexpr double least_object = 0.95;
  const bool processed = object.sigma > most_texture * background.sigma;
  const bool dark = background.white && object.sigma > 0 && object.sigma < least_object * background.sigma;
  if (background.sigma > 0 && !processed && !dark) {
    estimate.source = RicianEstimate::Source::background;
    estimate.sigma = background.sigma;
  } else if (object.sigma > 0) {
    estimate.source = RicianEstimate::Source::object;
    estimate.sigma = object.sigma;
  }
  return estimate;
}

RicianEstimate estimate_rician(const float* volume, int width, int height, int depth, int coils) {
  RicianEstimator estimator(coils);
  for (int z = 0; z < depth; ++z) {
    estimator.add_slice(volume + static_cast<std::ptrdiff_t>(z) * width * height, width, height, width);
  }
  return estimator.finish();
}

}  // namespace ungrain
