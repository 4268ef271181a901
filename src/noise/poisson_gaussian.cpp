#include "ungrain/stabilizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "core/convert.h"
#include "core/refuse_ycbcr.h"
#include "ungrain/error.h"

namespace ungrain {
namespace {

// ---- blocks

constexpr int block_side = 8;
constexpr int window_side = 16;  // around a block: measures flatness
constexpr int cell_side = 4;

// The finest diagonal detail: second differences along both axes, which are 0 for ramps. White noise of
// deviation 1 gives deviation 6.
constexpr std::array<double, 3> second_difference = {1, -2, 1};
constexpr double detail_gain = 36;  // variance

struct Block {
  double level = 0;
  double variance = 0;  // of the detail, as that of white noise
  double texture = 0;   // variance of the window's cells
};

// Rows [first, first + window_side) of one channel.
class BlockRow {
 public:
  BlockRow(const ConstImageView& image, int channel, int first) : width_(image.spec.width) {
    samples_.resize(static_cast<std::size_t>(width_) * window_side);
    for (int y = 0; y < window_side; ++y) {
      load_row(image, first + y, channel, samples_.data() + static_cast<std::size_t>(y) * width_);
    }
  }

  // Measures the window that begins in column x; false if it has clipped or non-finite samples.
  bool measure(int x, double black, double white, Block& block) const {
    std::array<double, static_cast<std::size_t>(window_side / cell_side) * (window_side / cell_side)> cells{};
    constexpr double cell_area = cell_side * cell_side;
    for (int y = 0; y < window_side; ++y) {
      const float* row = at(x, y);
      for (int i = 0; i < window_side; ++i) {
        if (!(row[i] > black && row[i] < white)) return false;  // NaN too
        cells[(y / cell_side) * (window_side / cell_side) + i / cell_side] += row[i] / cell_area;
      }
    }
    double sum = 0;
    double squares = 0;
    for (const double cell : cells) sum += cell;
    const double mean = sum / cells.size();
    for (const double cell : cells) squares += (cell - mean) * (cell - mean);
    block.texture = squares / (cells.size() - 1);
    constexpr int margin = (window_side - block_side) / 2;
    block.level = mean;
    block.variance = detail_variance(x + margin, margin);
    return true;
  }

 private:
  const float* at(int x, int y) const { return samples_.data() + static_cast<std::size_t>(y) * width_ + x; }

  double detail_variance(int x, int y) const {
    double squares = 0;
    constexpr int inner = block_side - 2;
    for (int dy = 0; dy < inner; ++dy) {
      for (int dx = 0; dx < inner; ++dx) {
        double detail = 0;
        for (int j = 0; j < 3; ++j) {
          const float* row = at(x + dx, y + dy + j);
          for (int i = 0; i < 3; ++i) detail += second_difference[j] * second_difference[i] * row[i];
        }
        squares += detail * detail;
      }
    }
    return squares / (inner * inner) / detail_gain;
  }

  int width_;
  std::vector<float> samples_;
};

// The smallest sample if many are exactly equal to it: black was cut off. Else a value below all samples.
double lower_clip(const ConstImageView& image, int channel) {
  constexpr double share_of_clipped = 0.001;
  double smallest = std::numeric_limits<double>::infinity();
  std::int64_t count = 0;
  std::vector<float> row(static_cast<std::size_t>(image.spec.width));
  for (int y = 0; y < image.spec.height; ++y) {
    load_row(image, y, channel, row.data());
    for (const float value : row) {
      if (value < smallest) {
        smallest = value;
        count = 0;
      }
      if (value == smallest) ++count;
    }
  }
  const double pixels = static_cast<double>(image.spec.width) * image.spec.height;
  return static_cast<double>(count) > share_of_clipped * pixels ? smallest
                                                                : -std::numeric_limits<double>::infinity();
}

std::vector<Block> blocks_of(const ConstImageView& image, int channel) {
  constexpr double few_pixels = 1 << 20;
  const int step =
      static_cast<double>(image.spec.width) * image.spec.height < few_pixels ? block_side / 2 : block_side;
  constexpr double near_white = 0.99;
  const double white = near_white * image.spec.white();
  const double black = lower_clip(image, channel);
  std::vector<Block> blocks;
  for (int y = 0; y + window_side <= image.spec.height; y += step) {
    const BlockRow rows(image, channel, y);
    for (int x = 0; x + window_side <= image.spec.width; x += step) {
      Block block;
      if (rows.measure(x, black, white, block)) blocks.push_back(block);
    }
  }
  return blocks;
}

// ---- points of the line

struct Point {
  double level = 0;
  double variance = 0;
  double blocks = 0;
};

// A point from blocks of about one level; the flattest count.
Point point_of(std::vector<Block>::iterator first, std::vector<Block>::iterator last) {
  constexpr std::ptrdiff_t least_blocks = 80;
  constexpr double share_of_flat = 0.2;
  const auto share_of = [](double share, std::ptrdiff_t count) {
    return static_cast<std::ptrdiff_t>(share * static_cast<double>(count));
  };
  const std::ptrdiff_t all = last - first;
  const std::ptrdiff_t flat = std::min(all, std::max(least_blocks, share_of(share_of_flat, all)));
  std::nth_element(first, first + (flat - 1), last,
                   [](const Block& a, const Block& b) { return a.texture < b.texture; });
  last = first + flat;
  Point point{.blocks = static_cast<double>(flat)};
  for (auto block = first; block != last; ++block) point.level += block->level / point.blocks;
  // Most of the blocks may still have texture, which only adds variance: the tenth with the least variance
  // shows the noise's. For Gaussian noise this quantile is so much of its variance (2e6 blocks drawn).
  constexpr double quantile = 0.1;
  constexpr double quantile_over_mean = 0.5355;
  const auto tenth = first + share_of(quantile, flat);
  std::nth_element(first, tenth, last,
                   [](const Block& a, const Block& b) { return a.variance < b.variance; });
  point.variance = tenth->variance / quantile_over_mean;
  return point;
}

std::vector<Point> points_of(std::vector<Block> blocks) {
  constexpr std::size_t most_levels = 24;
  constexpr std::size_t blocks_a_level = 250;
  std::sort(blocks.begin(), blocks.end(), [](const Block& a, const Block& b) { return a.level < b.level; });
  const std::size_t levels = std::clamp<std::size_t>(blocks.size() / blocks_a_level, 1, most_levels);
  std::vector<Point> points;
  for (std::size_t i = 0; i < levels && !blocks.empty(); ++i) {
    const auto bound = [&](std::size_t n) {
      return blocks.begin() + static_cast<std::ptrdiff_t>(n * blocks.size() / levels);
    };
    points.push_back(point_of(bound(i), bound(i + 1)));
  }
  return points;
}

// ---- the line

struct Line {
  double slope = 0;
  double start = 0;
  double at(double level) const { return slope * level + start; }
};

// Least squares with slope and intercept of at least 0.
Line fit(const std::vector<Point>& points, const std::vector<double>& weights) {
  double sum = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto& [level, variance, blocks] = points[i];
    sum += weights[i];
    x += weights[i] * level;
    y += weights[i] * variance;
    xx += weights[i] * level * level;
    xy += weights[i] * level * variance;
  }
  const double spread = sum * xx - x * x;
  const Line flat{0, y / sum};
  if (spread <= 1e-12 * sum * xx) return flat;
  const double slope = (sum * xy - x * y) / spread;
  if (slope <= 0) return flat;
  const double start = (y - slope * x) / sum;
  if (start < 0 && xy > 0) return {xy / xx, 0};
  return {slope, start};
}

// Texture only adds variance: points above the line are weighted less and less.
Line robust_fit(const std::vector<Point>& points) {
  constexpr int rounds = 20;
  constexpr double tolerated = 0.15;  // of the variance
  std::vector<double> weights;
  for (const Point& point : points) {
    weights.push_back(point.blocks / std::max(point.variance * point.variance, 1e-300));
  }
  Line line = fit(points, weights);
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < points.size(); ++i) {
      const double expected = std::max(line.at(points[i].level), 1e-150);
      const double excess = std::max(0.0, points[i].variance / expected - 1) / tolerated;
      weights[i] = points[i].blocks / (expected * expected) / (1 + excess * excess);
    }
    line = fit(points, weights);
  }
  return line;
}

}  // namespace

std::vector<PoissonGaussian> fit_poisson_gaussian(const ConstImageView& image) {
  validate(image.spec);
  refuse_ycbcr(image.spec, "fits of photon noise");
  if (image.space.memory != Space::Memory::host) {
    throw Error(ErrorCode::unsupported, "noise is measured on images in host memory");
  }
  std::vector<PoissonGaussian> channels;
  for (int c = 0; c < image.spec.colour_channels(); ++c) {
    const std::vector<Point> points = points_of(blocks_of(image, c));
    if (points.empty()) {
      channels.emplace_back();
      continue;
    }
    const Line line = robust_fit(points);
    channels.push_back({.a = line.slope, .b = line.start});
  }
  return channels;
}

// ---- the transform

namespace {

// The unbiased inverse's correction of D² / 4 - 1 / 8 - b / a².
double correction(double d) {
  static const double root = std::sqrt(1.5);
  return root / (4 * d) - 11 / (8 * d * d) + 5 * root / (8 * d * d * d);
}

// The mean over normal noise of this deviation around `count`, before photons are drawn.
template <class Function>
double mean_over_read_noise(double count, double deviation, Function f) {
  if (deviation == 0) return f(count);
  constexpr int steps = 96;
  constexpr double reach = 6;  // deviations
  double sum = 0;
  double weights = 0;
  for (int i = -steps; i <= steps; ++i) {
    const double at = reach * i / steps;
    const double weight = std::exp(-at * at / 2);
    sum += weight * f(count + deviation * at);
    weights += weight;
  }
  return sum / weights;
}

}  // namespace

Stabilizer::Stabilizer(const PoissonGaussian& noise) : a_(noise.a), deviation_(std::sqrt(noise.b)) {
  if (!(noise.a >= 0 && noise.b >= 0 && noise.a + noise.b > 0)) {
    throw Error(ErrorCode::invalid_argument, "noise that is made even has a variance above 0");
  }
  if (a_ == 0) return;
  offset_ = 0.375 + noise.b / (a_ * a_);
  start_ = 2 * std::sqrt(offset_);
  fill_means();
}

// Poisson probabilities of each level times the means of the transform at each count.
void Stabilizer::fill_means() {
  constexpr int intervals = 256;
  constexpr double last_level = 32;  // counts: above it the closed form's error is less than 0.1 %
  constexpr int most_counts = 96;    // hardly ever reached from a mean of 32
  std::array<double, most_counts> transformed{};
  for (int count = 0; count < most_counts; ++count) {
    transformed[count] = mean_over_read_noise(count, deviation_ / a_, [&](double at) { return root_of(at); });
  }
  for (int i = 0; i <= intervals; ++i) {
    const double level = last_level * i * i / (intervals * intervals);  // denser in the dark
    double probability = std::exp(-level);
    double mean = 0;
    for (int count = 0; count < most_counts; ++count) {
      mean += probability * transformed[count];
      probability *= level / (count + 1);
    }
    levels_.push_back(level);
    means_.push_back(mean);
  }
}

// 2 sqrt(counts + offset) - 2 sqrt(offset) without cancellation.
double Stabilizer::root_of(double counts) const {
  const double root = std::sqrt(std::max(counts + offset_, 0.0));
  return root == 0 ? -start_ : 2 * counts / (root + start_ / 2);
}

double Stabilizer::forward(double sample) const {
  return a_ == 0 ? sample / deviation_ : root_of(sample / a_);
}

double Stabilizer::inverse(double stabilized) const {
  if (a_ == 0) return stabilized * deviation_;
  if (stabilized >= means_.back()) {
    return a_ *
           (stabilized * stabilized / 4 + stabilized * start_ / 2 + 0.25 + correction(stabilized + start_));
  }
  const auto above = std::upper_bound(means_.begin() + 1, means_.end() - 1, stabilized);
  const auto i = static_cast<std::size_t>(above - means_.begin());
  const double share = (stabilized - means_[i - 1]) / (means_[i] - means_[i - 1]);
  return a_ * (levels_[i - 1] + share * (levels_[i] - levels_[i - 1]));
}

}  // namespace ungrain
