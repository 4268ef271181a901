#include "noise/measured_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "noise/block_coefficients.h"
#include "noise/drawn_blocks.h"
#include "noise/flat_blocks.h"
#include "noise/noise_model.h"
#include "noise/variance_line.h"

namespace ungrain {
namespace {

using Spectrum = NoiseModel::Spectrum;
constexpr int side = NoiseModel::side;
constexpr int coefficients = side * side;

// Constants were chosen on simulated cameras, see README.md; none is sharp.
constexpr double measured_share = 0.005;  // of the windows of a level
constexpr std::size_t fewest_blocks = 100;
constexpr double calm_spread = 0.44;             // see spread_of()
constexpr double calm_spread_of_colour = 0.65;   // if the colour differences confirm noise
constexpr double most_over_low_colour = 2.2;     // luminance over colour differences, in the low band
constexpr double texture_over_low_colour = 3.5;  // the same: more is texture at any spread
constexpr double drawn_skewness = 1;             // see is_drawn()
constexpr double drawn_kurtosis_least = 1.8;
constexpr double drawn_kurtosis_most = 5;
constexpr double drawn_novelty = 0.12;
constexpr double most_direction = 2.2;    // see direction()
constexpr double nothing = 0.6 / 255;     // of white: a deviation that is accepted without calm blocks
constexpr double white_ratio = 1.5;       // middle to high band: less is white noise
constexpr double level_ratio = 1.5;       // of the deviations at two levels: less is one deviation
constexpr double clipped_share = 0.25;    // of the samples at black or white: more says nothing of noise
constexpr double unclipped_share = 0.05;  // less leaves the deviation nearly as it was
constexpr double doubt =
    0.7;  // factor if no level is calm: too little denoising is better than removed texture
constexpr double most_over_neighbour = 2;      // from a level to the next
constexpr double texture_allowance = 1.5;      // if no block is calm: over the calm levels' estimate
constexpr double most_over_calm_colour = 1.4;  // the same, over the least of calm levels
constexpr double visible = 3.0 / 255;          // of white: less is hardly visible
constexpr double most_over_colour = 6;         // luminance over the first colour difference
constexpr double most_over_colour_drawn = 1;   // the same if all levels are drawings
constexpr double most_over_colour_busy = 2;    // the same if no level is calm

// ---- one level

struct BlockRef {
  BlockPool::Block block;
  int level = 0;          // of FlatWindows
  std::size_t index = 0;  // in the level's pool
  const float* samples = nullptr;
  friend bool operator<(const BlockRef& a, const BlockRef& b) { return a.block < b.block; }
};

struct LevelNoise {
  double level = 0;
  double skewness = 0;               // of the samples of a block of luminance, mean over blocks
  double kurtosis = 0;               // the same
  double spread = 0;                 // of the blocks' energies in luminance
  double limited = 0;                // share of the samples at black or white
  double colour = 0;                 // largest colour difference of a sample
  double most = 0;                   // the strongest noise that is consistent with its runs of equal samples
  double novelty = 1;                // drawn_blocks.h's
  std::vector<double> own_shares;    // per channel: share of its variance uncorrelated with luminance
  std::vector<Spectrum> deviations;  // root mean squares, per channel
  std::vector<std::int64_t> places;  // of the blocks' windows, as BlockPool has them
};

double mean_over_band(const Spectrum& powers, const FrequencyBand& band) {
  Spectrum roots{};
  for (int i = 0; i < coefficients; ++i) {
    const int frequency = i % side + i / side;
    if (frequency >= band.lowest && frequency <= band.highest) roots[i] = std::sqrt(powers[i]);
  }
  const double rms = band_rms(roots, band);
  return rms * rms;
}

// Standard deviation of the blocks' energies in the middle band over their mean. Of Gaussian noise 0.3, with
// JPEG or demosaicing up to 0.42. Of texture 0.5 and more, because some blocks have it and some do not.
double spread_of(const std::vector<double>& energies) {
  const auto count = static_cast<double>(energies.size());
  const double mean = std::accumulate(energies.begin(), energies.end(), 0.0) / count;
  double squares = 0;
  for (const double energy : energies) squares += (energy - mean) * (energy - mean);
  return mean > 0 ? std::sqrt(squares / count) / mean : 0;
}

struct Moments {
  double skewness = 0;
  double kurtosis = 0;
};

Moments moments_of(const Spectrum& block) {
  const double mean = std::accumulate(block.begin(), block.end(), 0.0) / coefficients;
  double second = 0;
  double third = 0;
  double fourth = 0;
  for (const double value : block) {
    const double from_mean = value - mean;
    second += from_mean * from_mean / coefficients;
    third += from_mean * from_mean * from_mean / coefficients;
    fourth += from_mean * from_mean * from_mean * from_mean / coefficients;
  }
  if (second == 0) return {};
  return {third / (second * std::sqrt(second)), fourth / (second * second)};
}

// The correlation of colour differences with luminance over blocks. Noise has hardly any; texture of one
// colour has much.
class ColourOfTexture {
 public:
  using Block = std::array<Spectrum, 3>;

  // Each sum is in order; all of them at a time.
  void add(const Block& block) {
    std::array<double, 3> sums{};
    std::array<double, 3> products{};
    std::array<double, 3> squares{};
    for (int i = 0; i < coefficients; ++i) {
      for (std::size_t c = 0; c < 3; ++c) {
        sums[c] += block[c][i];
        products[c] += block[0][i] * block[c][i];
        squares[c] += block[c][i] * block[c][i];
      }
    }
    for (std::size_t c = 0; c < 3; ++c) {
      products_[c] += products[c] - sums[0] * sums[c] / coefficients;
      squares_[c] += squares[c] - sums[c] * sums[c] / coefficients;
    }
  }
  std::vector<double> own_shares() const {
    std::vector<double> shares(products_.size(), 1);
    for (std::size_t c = 1; c < shares.size(); ++c) {
      const double both = squares_[0] * squares_[c];
      if (both > 0) shares[c] = std::max(0.0, 1 - products_[c] * products_[c] / both);
    }
    return shares;
  }

 private:
  std::array<double, 3> products_{};
  std::array<double, 3> squares_{};
};

// What all levels of an image share.
struct LevelLimits {
  LevelLimits(const ImageSpec& spec, int channel_count)
      : channels(channel_count), width(spec.width), white(spec.white()) {
    if (!is_float(spec.type)) rounding = 1.0 / 12;
    floor = (spec.type == PixelType::u8 ? 0.15 / 255 : 1e-6) * white;
  }

  // A level without noise.
  LevelNoise none(double level) const {
    LevelNoise noise;
    noise.level = level;
    Spectrum least;
    least.fill(floor);
    noise.deviations.assign(static_cast<std::size_t>(channels), least);
    return noise;
  }

  int channels;
  int width;
  double white;
  double rounding = 0;  // variance
  double floor = 0;     // the least deviation
};

// Measures blocks in parts that may run on several threads at once. Sums are in the order of the blocks.
class LevelMeasure {
 public:
  LevelMeasure(const LevelLimits& limits, std::vector<BlockRef> blocks)
      : limits_(limits),
        blocks_(std::move(blocks)),
        powers_(static_cast<std::size_t>(limits.channels)),
        neighbours_(static_cast<std::size_t>(limits.channels) * blocks_.size()) {
    noise_.own_shares.assign(static_cast<std::size_t>(limits.channels), 1);
  }

  int parts() const { return 2 * limits_.channels + (limits_.channels > 1 ? 3 : 2); }
  void run(int part) {
    const int channels = limits_.channels;
    if (part < channels) return measure_channel(part);
    if (part < 2 * channels) return look_at_neighbours(part - channels);
    if (part == 2 * channels) return look_at_samples();
    if (part == 2 * channels + 1) return compare_blocks();
    measure_colour();
  }

  // After all parts.
  LevelNoise result() const {
    LevelNoise noise = noise_;
    const auto count = static_cast<double>(blocks_.size());
    const int channels = limits_.channels;
    for (const BlockRef& block : blocks_) noise.places.push_back(block.block.place);
    noise.colour = *std::max_element(largest_colours_.begin(), largest_colours_.end());
    Neighbours mean;
    for (const Neighbours& found : neighbours_) mean.add(found, 1 / (count * channels));
    noise.most = most_noise(mean, limits_.white);
    noise.deviations = powers_;
    for (Spectrum& power : noise.deviations) {
      for (double& value : power) {
        value = std::max(std::sqrt(std::max(value / count - limits_.rounding, 0.0)), limits_.floor);
      }
    }
    return noise;
  }

 private:
  void measure_channel(int c) {
    Spectrum powers{};
    std::vector<double> energies;
    Moments sums;
    double colour = 0;
    for (const BlockRef& block : blocks_) {
      const Spectrum values = channel_of(block.samples, limits_.channels, c);
      const Spectrum squares = squared_coefficients(values);
      for (int i = 0; i < coefficients; ++i) powers[i] += squares[i];
      if (c > 0) {
        colour = std::max(colour, largest(values));
        continue;
      }
      energies.push_back(mean_over_band(squares, middle_band));
      const Moments moments = moments_of(values);
      sums.skewness += moments.skewness;
      sums.kurtosis += moments.kurtosis;
    }
    powers_[static_cast<std::size_t>(c)] = powers;
    largest_colours_[static_cast<std::size_t>(c)] = colour;
    if (c > 0) return;
    const auto count = static_cast<double>(blocks_.size());
    noise_.skewness = sums.skewness / count;
    noise_.kurtosis = sums.kurtosis / count;
    noise_.spread = spread_of(energies);
  }

  void look_at_neighbours(int c) {
    for (std::size_t n = 0; n < blocks_.size(); ++n) {
      Spectrum values;
      std::copy_n(blocks_[n].samples + static_cast<std::ptrdiff_t>(c) * coefficients, coefficients,
                  values.begin());
      neighbours_[n * static_cast<std::size_t>(limits_.channels) + static_cast<std::size_t>(c)] =
          neighbours_of(values.data(), side, side, limits_.white);
    }
  }

  void look_at_samples() {
    double sum = 0;
    std::int64_t limited = 0;
    const int samples = limits_.channels * coefficients;
    for (const BlockRef& block : blocks_) {
      for (int i = 0; i < samples; ++i) {
        sum += block.samples[i];
        limited += block.samples[i] <= 0 || block.samples[i] >= limits_.white ? 1 : 0;
      }
    }
    const double count = static_cast<double>(blocks_.size()) * limits_.channels * coefficients;
    noise_.level = sum / count;
    noise_.limited = static_cast<double>(limited) / count;
  }

  void compare_blocks() {
    constexpr std::size_t compared = 64;
    std::vector<PlacedBlock> first;
    for (std::size_t n = 0; n < std::min(compared, blocks_.size()); ++n) {
      const std::int64_t place = blocks_[n].block.place;
      first.push_back({blocks_[n].samples, static_cast<int>(place % limits_.width),
                       static_cast<int>(place / limits_.width)});
    }
    noise_.novelty = novelty(first, limits_.channels, coefficients);
  }

  void measure_colour() {
    ColourOfTexture colour_of_texture;
    ColourOfTexture::Block channels;
    for (const BlockRef& block : blocks_) {
      for (int c = 0; c < 3; ++c) channels[c] = channel_of(block.samples, 3, c);
      colour_of_texture.add(channels);
    }
    noise_.own_shares = colour_of_texture.own_shares();
  }

  static double largest(const Spectrum& values) {
    double most = 0;
    for (const double value : values) most = std::max(most, std::fabs(value));
    return most;
  }

  const LevelLimits& limits_;
  std::vector<BlockRef> blocks_;
  LevelNoise noise_;                    // each part has numbers of its own
  std::vector<Spectrum> powers_;        // sums, per channel
  std::vector<Neighbours> neighbours_;  // of each block's channels
  std::array<double, 3> largest_colours_{};
};

bool is_nothing(const LevelNoise& noise, double white) {
  return band_rms(noise.deviations[0], middle_band) < nothing * white;
}

// Noise is nearly Gaussian: skewness 0 (up to 0.85 where the tone curve is steep), kurtosis 2.5 to 4. Text,
// line art and patterns have few values: strokes on paper have a skewness of -1.2 and beyond, a chessboard a
// kurtosis of 1.3.
bool is_drawn(const LevelNoise& noise, double white) {
  return !is_nothing(noise, white) &&
         (std::fabs(noise.skewness) > drawn_skewness || noise.kurtosis < drawn_kurtosis_least ||
          noise.kurtosis > drawn_kurtosis_most || noise.novelty < drawn_novelty ||
          band_rms(noise.deviations.back(), {1, 14}) > noise.most);
}

// Whether blocks show texture of one strength everywhere, which has blocks of equal energy, as noise has.
bool is_texture(const LevelNoise& noise, bool gray) {
  constexpr FrequencyBand bands[band_count] = {{2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 14}};
  BandPowers powers{};
  for (int n = 0; n < band_count; ++n) {
    const double rms = band_rms(noise.deviations[0], bands[n]);
    powers[n] = rms * rms;
  }
  // Smoothed noise is nearly constant at the lowest frequencies: mostly 1.3 to 1.75 times here. Colour is the
  // better indicator.
  constexpr double steep = 2.1;
  const bool falls_at_once =
      gray && band_rms(noise.deviations[0], {1, 1}) > steep * band_rms(noise.deviations[0], {3, 3});
  return falls_at_once || falls_evenly(powers) > 0.5;
}

// Power along x over power along y, in the middle band of luminance. Of noise 0.6 to 1.5; walls, roofs and
// water have 3 to 50 times as much in one direction.
double direction(const LevelNoise& noise) {
  double along_x = 0;
  double along_y = 0;
  for (int n = middle_band.lowest; n <= middle_band.highest; ++n) {
    along_x += std::pow(noise.deviations[0][n], 2);
    along_y += std::pow(noise.deviations[0][n * side], 2);
  }
  return along_x / along_y;
}

bool has_direction(const LevelNoise& noise) {
  const double ratio = direction(noise);
  return ratio > most_direction || 1 / ratio > most_direction;
}

// The part of the colour differences that is uncorrelated with luminance: noise nearly as strong as
// luminance's. Texture is mostly in luminance. Measured in the low band, because compression leaves colour
// little else.
double colour_noise(const LevelNoise& noise) {
  double squares = 0;
  const std::size_t channels = noise.deviations.size();
  for (std::size_t c = 1; c < channels; ++c) {
    squares += noise.own_shares[c] * std::pow(band_rms(noise.deviations[c], low_band), 2);
  }
  return channels > 1 ? std::sqrt(squares / static_cast<double>(channels - 1)) : 0;
}

bool is_calm_by_colour(const LevelNoise& noise) {
  return noise.spread < calm_spread_of_colour &&
         band_rms(noise.deviations[0], low_band) < most_over_low_colour * colour_noise(noise);
}

// A camera's noise is at most 2.5 times as strong in luminance as in colour.
bool is_texture_by_colour(const LevelNoise& noise) {
  return band_rms(noise.deviations[0], low_band) > texture_over_low_colour * colour_noise(noise);
}

bool is_calm(const LevelNoise& noise, double white, bool gray) {
  if (is_nothing(noise, white)) return true;
  if (is_drawn(noise, white) || is_texture(noise, gray)) return false;
  if (gray) return noise.spread < calm_spread;
  return !is_texture_by_colour(noise) && (noise.spread < calm_spread || is_calm_by_colour(noise));
}

// ---- from ranges of levels to a few levels with enough blocks

struct LevelGroup {
  int first = 0;
  int end = 0;
  std::int64_t windows = 0;
  std::int64_t constant = 0;
};

// Groups of neighbouring ranges with about equal numbers of windows.
std::vector<LevelGroup> level_groups(const FlatWindows& windows, int most) {
  std::int64_t total = 0;
  for (const LevelBlocks& level : windows.levels()) total += level.windows + level.constant;
  std::vector<LevelGroup> groups;
  LevelGroup group;
  std::int64_t seen = 0;
  for (int n = 0; n < FlatWindows::level_count; ++n) {
    const LevelBlocks& level = windows.levels()[n];
    group.windows += level.windows;
    group.constant += level.constant;
    seen += level.windows + level.constant;
    const auto done = static_cast<std::int64_t>(groups.size()) + 1;
    if (seen * most < done * total && n + 1 < FlatWindows::level_count) continue;
    group.end = n + 1;
    if (group.windows + group.constant > 0) groups.push_back(group);
    group = {n + 1, n + 1, 0, 0};
  }
  return groups;
}

std::vector<BlockRef> flattest(const FlatWindows& windows, const LevelGroup& group,
                               BlockPool LevelBlocks::*pool) {
  std::vector<BlockRef> blocks;
  for (int n = group.first; n < group.end; ++n) {
    const BlockPool& from = windows.levels()[n].*pool;
    for (std::size_t index = 0; index < from.blocks().size(); ++index) {
      blocks.push_back({from.blocks()[index], n, index, nullptr});
    }
  }
  const auto share = static_cast<std::size_t>(std::ceil(measured_share * static_cast<double>(group.windows)));
  const std::size_t wanted = std::clamp<std::size_t>(share, fewest_blocks, BlockPool::most);
  if (blocks.size() > wanted) {
    std::nth_element(blocks.begin(), blocks.begin() + static_cast<std::ptrdiff_t>(wanted), blocks.end());
    blocks.resize(wanted);
  }
  std::sort(blocks.begin(), blocks.end());
  return blocks;
}

// The blocks that are measured of each group, without their samples. None: the group is not measured.
struct GroupBlocks {
  std::vector<BlockRef> by_window;
  std::vector<BlockRef> by_ring;
};
struct ChosenBlocks {
  std::vector<LevelGroup> groups;
  std::vector<GroupBlocks> blocks;
};

ChosenBlocks choose_blocks(const FlatWindows& windows, const ImageSpec& spec, Workers& workers) {
  constexpr std::int64_t many_pixels = 500000;
  const int most = static_cast<std::int64_t>(spec.width) * spec.height < many_pixels ? 6 : 8;
  ChosenBlocks chosen{level_groups(windows, most), {}};
  const auto count = static_cast<std::int64_t>(chosen.groups.size());
  chosen.blocks.resize(chosen.groups.size());
  workers.for_each_quietly(2 * count, [&](std::int64_t n, int) {
    const LevelGroup& group = chosen.groups[static_cast<std::size_t>(n / 2)];
    GroupBlocks& blocks = chosen.blocks[static_cast<std::size_t>(n / 2)];
    if (group.constant > group.windows || group.windows == 0) return;
    if (n % 2 == 0) blocks.by_window = flattest(windows, group, &LevelBlocks::by_window);
    if (n % 2 == 1) blocks.by_ring = flattest(windows, group, &LevelBlocks::by_ring);
  });
  return chosen;
}

void request(FlatWindows& windows, const ChosenBlocks& chosen) {
  for (const GroupBlocks& group : chosen.blocks) {
    for (const BlockRef& block : group.by_window) {
      windows.request(block.level, &LevelBlocks::by_window, block.index);
    }
    for (const BlockRef& block : group.by_ring) {
      windows.request(block.level, &LevelBlocks::by_ring, block.index);
    }
  }
}

std::vector<BlockRef> with_samples(const FlatWindows& windows, std::vector<BlockRef> blocks,
                                   BlockPool LevelBlocks::*pool) {
  for (BlockRef& block : blocks) {
    const BlockPool& from = windows.levels()[static_cast<std::size_t>(block.level)].*pool;
    block.samples = windows.samples(from, from.blocks()[block.index]);
  }
  return blocks;
}

struct GroupMeasures {
  std::optional<LevelMeasure> by_window;  // none: a group that is not measured
  std::optional<LevelMeasure> by_ring;
};

void run_parts(const std::vector<LevelMeasure*>& measures, Workers& workers) {
  if (measures.empty()) return;
  const int parts = measures.front()->parts();
  workers.for_each_quietly(static_cast<std::int64_t>(measures.size()) * parts, [&](std::int64_t n, int) {
    measures[static_cast<std::size_t>(n / parts)]->run(static_cast<int>(n % parts));
  });
}

// If no block has texture, blocks are selected by the ring around them, which does not favour blocks with
// little noise. Elsewhere the ring would miss a small object in the block.
void measure_rings(std::vector<GroupMeasures>& groups, std::vector<LevelNoise>& found, Workers& workers) {
  std::vector<LevelMeasure*> measures;
  for (std::size_t n = 0; n < groups.size(); ++n) {
    if (groups[n].by_window && found[n].spread < calm_spread) measures.push_back(&*groups[n].by_ring);
  }
  run_parts(measures, workers);
  for (std::size_t n = 0; n < groups.size(); ++n) {
    if (!groups[n].by_window || found[n].spread >= calm_spread) continue;
    LevelNoise by_ring = groups[n].by_ring->result();
    constexpr double the_same = 1.15;
    const bool agree = band_rms(by_ring.deviations[0], middle_band) <
                       the_same * band_rms(found[n].deviations[0], middle_band);
    if (agree && by_ring.spread < calm_spread) found[n] = std::move(by_ring);
  }
}

std::vector<LevelNoise> measure_groups(const FlatWindows& windows, const std::vector<GroupBlocks>& groups,
                                       const LevelLimits& limits, Workers& workers) {
  std::vector<GroupMeasures> of(groups.size());
  for (std::size_t n = 0; n < groups.size(); ++n) {
    if (groups[n].by_window.empty()) continue;
    of[n].by_window.emplace(limits, with_samples(windows, groups[n].by_window, &LevelBlocks::by_window));
    of[n].by_ring.emplace(limits, with_samples(windows, groups[n].by_ring, &LevelBlocks::by_ring));
  }
  std::vector<LevelMeasure*> measures;
  for (GroupMeasures& group : of) {
    if (group.by_window) measures.push_back(&*group.by_window);
  }
  run_parts(measures, workers);
  std::vector<LevelNoise> found(groups.size());
  for (std::size_t n = 0; n < groups.size(); ++n) {
    if (of[n].by_window) found[n] = of[n].by_window->result();
  }
  measure_rings(of, found, workers);
  return found;
}

std::vector<LevelNoise> measure_levels(const FlatWindows& windows, const ChosenBlocks& chosen,
                                       const ImageSpec& spec, Workers& workers) {
  const LevelLimits limits(spec, windows.channels());
  const std::vector<LevelGroup>& groups = chosen.groups;
  std::vector<LevelNoise> found = measure_groups(windows, chosen.blocks, limits, workers);
  std::vector<LevelNoise> levels;
  for (std::size_t n = 0; n < groups.size(); ++n) {
    const LevelGroup& group = groups[n];
    // Exactly constant blocks: a few are a frame around the picture, many are the picture.
    if (group.constant > group.windows) {
      const double place = (group.first + group.end) / (2.0 * FlatWindows::level_count);
      const double level = place * place * spec.white();
      constexpr double near_limit = 0.02;
      if (level < near_limit * spec.white() || level > (1 - near_limit) * spec.white()) continue;
      levels.push_back(limits.none(level));
    } else if (group.windows > 0) {
      LevelNoise& noise = found[n];
      if (noise.limited > clipped_share) continue;
      if (!levels.empty() && noise.level <= levels.back().level) continue;
      levels.push_back(std::move(noise));
    }
  }
  return levels;
}

// ---- all levels together

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

void median_of_three(std::vector<double>& values) {
  const std::vector<double> from = values;
  for (std::size_t i = 0; i + 2 < from.size(); ++i) {
    values[i + 1] =
        std::max(std::min(from[i], from[i + 1]), std::min(std::max(from[i], from[i + 1]), from[i + 2]));
  }
}

// The white level by which noise is judged visible. Much of a type's range may be unused: 16-bit files with
// the 12 bits of a sensor, images that are displayed brighter.
double white_seen(const std::vector<LevelNoise>& levels, double white) {
  return levels.empty() || levels.back().level <= 0 ? white : std::min(white, 2 * levels.back().level);
}

// A factor on luminance's deviation: hardly visible noise is not worth the fine texture that would be removed
// with it.
double gentleness(double deviation, double white, int channels) {
  constexpr double least = 0.5;
  const double least_visible = visible * white * (channels == 1 ? 1 : std::sqrt(3.0));
  return std::clamp(deviation / least_visible, least, 1.0);
}

class ModelBuilder {
 public:
  ModelBuilder(std::vector<LevelNoise> levels, const ImageSpec& spec, int channels,
               const MeasuredModelOptions& options)
      : levels_(std::move(levels)),
        white_(spec.white()),
        white_seen_(white_seen(levels_, white_)),
        channels_(channels),
        iso_(options.iso),
        jpeg_steps_(options.jpeg_steps),
        white_luminance_(options.white_luminance) {
    // Black and white photographs are stored as colour too.
    gray_ = channels_ == 1 || std::all_of(levels_.begin(), levels_.end(), [&](const LevelNoise& level) {
              return level.colour <= 1.5 * white_seen_ / 255;
            });
    measured_ = gray_ ? 1 : channels_;
    const bool same_direction = have_same_direction();
    for (LevelNoise& level : levels_) {
      calm_.push_back(is_calm(level, white_seen_, gray_) &&
                      (same_direction || is_nothing(level, white_seen_) || !has_direction(level)));
      if (!calm_.back()) leave_texture_out(level);
    }
    drawn_ = std::all_of(levels_.begin(), levels_.end(),
                         [&](const LevelNoise& level) { return is_drawn(level, white_seen_); });
  }

  MeasuredModel build() {
    MeasuredModel result;
    result.levels = static_cast<int>(levels_.size());
    result.calm_levels = static_cast<int>(std::count(calm_.begin(), calm_.end(), true));
    if (levels_.empty()) return result;
    for (int c = 0; c < measured_; ++c) spectra_.push_back(spectrum(c));
    const bool refuted = is_refuted();
    if (has_white_spectrum() && (!refuted || enough_calm())) {
      if (!refuted && !changes_with_level()) {
        if (!gray_ && !enough_calm()) result.colour_deviation = least_colour_deviation();
        return result;
      }
      result.finding = NoiseFinding::by_level;
      for (int c = 0; c < channels_; ++c) {
        result.channels.push_back(white_channel(c));
        if (c >= measured_) continue;
        if (refuted) {
          keep_calm(result.channels.back());
        } else {
          limit_by_calm_levels(result.channels.back());
        }
      }
      be_gentle(result.channels[0]);
      return result;
    }
    if (gray_ && !refuted && (drawn_ || falls_slowly())) return result;
    if (gray_ && !drawn_ && !enough_calm()) {  // texture looks the same
      if (refuted && mostly_texture()) keep_high_band(result);
      return result;
    }
    result.finding = NoiseFinding::spectrum;
    for (int c = 0; c < measured_; ++c) result.channels.push_back(channel(c));
    if (!gray_) limit_by_colour(result);
    if (!gray_ && enough_calm()) limit_by_calm_colour(result.channels);
    if (gray_ && drawn_) result.channels[0] = silent_channel();
    if (result.channels[0].levels.size() > 1) limit_by_neighbours(result.channels[0].deviations);
    be_gentle(result.channels[0]);
    if (iso_) limit_by_iso(result);
    median_of_three(result.channels[0].deviations);
    if (!jpeg_steps_.empty()) add_rounding(result.channels[0]);
    for (int c = measured_; c < channels_; ++c) result.channels.push_back(silent_channel());
    return result;
  }

 private:
  // Noise may have a direction, such as along rows: then all levels have it.
  bool have_same_direction() const {
    if (levels_.size() < 2) return false;
    double least = std::numeric_limits<double>::infinity();
    double most = 0;
    for (const LevelNoise& level : levels_) {
      least = std::min(least, direction(level));
      most = std::max(most, direction(level));
    }
    return most < most_direction * least;
  }
  double deviation(std::size_t level, int c, const FrequencyBand& band) const {
    return band_rms(levels_[level].deviations[c], band);
  }
  static void leave_texture_out(LevelNoise& level) {
    for (std::size_t c = 1; c < level.own_shares.size(); ++c) {
      for (double& value : level.deviations[c]) value *= std::sqrt(level.own_shares[c]);
    }
  }
  // One calm level among many may be chance. A gray image has no colour that limits how much texture is taken
  // for noise.
  bool enough_calm() const {
    const auto calm = static_cast<std::size_t>(std::count(calm_.begin(), calm_.end(), true));
    return (gray_ ? 2 : 3) * calm >= calm_.size();
  }

  // A low quantile of the levels' spectra at each frequency, because texture only raises a frequency; the
  // mean of both directions, because noise has no direction.
  Spectrum spectrum(int c) const {
    Spectrum lower;
    for (int i = 0; i < coefficients; ++i) {
      std::vector<double> values;
      for (std::size_t n = 0; n < levels_.size(); ++n) {
        if (enough_calm() && !calm_[n]) continue;
        values.push_back(levels_[n].deviations[c][i] / deviation(n, c, middle_band));
      }
      lower[i] = quantile(std::move(values), 0.25);
    }
    Spectrum both;
    for (int j = 0; j < side; ++j) {
      for (int i = 0; i < side; ++i) {
        const double a = lower[j * side + i];
        const double b = lower[i * side + j];
        both[j * side + i] = std::sqrt((a * a + b * b) / 2);
      }
    }
    // Without a calm level the low frequencies contain texture; real noise is 1.3 to 1.7 there. Compression
    // leaves colour nothing but low frequencies.
    const double most_in_texture = c == 0 ? 1.7 : 6;
    if (!enough_calm()) {
      for (double& value : both) value = std::min(value, most_in_texture);
    }
    both[0] = 1.15 * std::max(both[1], both[side]);  // the mean cannot be measured
    return both;
  }

  // Colour has little texture and decides. A gray image's texture may look like noise without high
  // frequencies.
  bool has_white_spectrum() const {
    double least = std::numeric_limits<double>::infinity();
    for (int c = gray_ ? 0 : 1; c < measured_; ++c) {
      least = std::min(least, band_rms(spectra_[c], middle_band) / band_rms(spectra_[c], high_band));
    }
    return least < white_ratio;
  }

  // Considers calm levels without clipping; others may be low or high for other reasons.
  bool changes_with_level() const {
    std::vector<double> found;
    for (std::size_t n = 0; n < levels_.size(); ++n) {
      if (!calm_[n] || levels_[n].limited > unclipped_share) continue;
      found.push_back(deviation(n, measured_ - 1, upper_band));
    }
    if (found.size() < 2) return false;
    const auto [least, most] = std::minmax_element(found.begin(), found.end());
    return *most > level_ratio * *least && *most > nothing * white_seen_;
  }

  // White noise shows in the high frequencies of every block. If these have much less, the white estimate
  // took a clean picture's pattern for noise.
  bool is_refuted() const {
    return std::any_of(levels_.begin(), levels_.end(), [&](const LevelNoise& level) {
      const double shown = std::max(band_rms(level.deviations[0], high_band), nothing * white_seen_);
      const double clipping = level.limited > unclipped_share ? 1.4 : 1;  // what it may have taken
      return 1.5 * clipping * shown < white_luminance_;
    });
  }

  double least_colour_deviation() const {
    std::vector<double> squares;
    for (std::size_t n = 0; n < levels_.size(); ++n) {
      const double one = deviation(n, 1, upper_band);
      const double other = deviation(n, 2, upper_band);
      squares.push_back((one * one + other * other) / 2);
    }
    return std::sqrt(quantile(std::move(squares), 0.25));
  }

  // Strong noise without high frequencies has 3 to 5 times as much in the middle ones. Grass and gravel seen
  // from afar have twice as much, at all levels; without colour nothing else distinguishes them from noise.
  bool falls_slowly() const {
    constexpr double fast = 2.6;
    constexpr double strong = 12.0 / 255;
    std::vector<double> found;
    for (std::size_t n = 0; n < levels_.size(); ++n) found.push_back(deviation(n, 0, middle_band));
    return quantile(std::move(found), 0.25) > strong * white_seen_ &&
           band_rms(spectra_[0], middle_band) < fast * band_rms(spectra_[0], high_band);
  }

  bool mostly_texture() const {
    const auto count = std::count_if(levels_.begin(), levels_.end(),
                                     [&](const LevelNoise& level) { return is_texture(level, gray_); });
    return 2 * static_cast<std::size_t>(count) >= levels_.size();
  }
  // The least high-band noise of any level is an upper bound of the noise: the only certain statement.
  void keep_high_band(MeasuredModel& result) const {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t n = 0; n < levels_.size(); ++n) least = std::min(least, deviation(n, 0, high_band));
    result.finding = NoiseFinding::by_level;
    result.channels.push_back(silent_channel());
    result.channels[0].deviations[0] = least;
    for (int c = 1; c < channels_; ++c) result.channels.push_back(silent_channel());
  }

  void keep_calm(NoiseModel::Channel& channel) const {
    const NoiseModel::Channel calm = calm_levels(channel);
    channel.levels = calm.levels;
    channel.deviations = calm.deviations;
  }

  // Limits levels with texture to the noise that photon statistics predict from the calm levels.
  void limit_by_calm_levels(NoiseModel::Channel& channel) const {
    const NoiseModel calm{{calm_levels(channel)}};
    const double brightest = calm.channels[0].levels.back();
    for (std::size_t n = 0; n < calm_.size(); ++n) {
      if (calm_[n]) continue;
      const double level = channel.levels[n];
      const double more = level > brightest && brightest > 0 ? std::sqrt(level / brightest) : 1;
      channel.deviations[n] = std::min(channel.deviations[n], more * calm.deviation(0, level));
    }
  }

  NoiseModel::Channel white_channel(int c) const {
    if (c >= measured_) return silent_channel();
    NoiseModel::Channel channel = at_levels(c, upper_band);
    channel.spectrum.fill(1);
    median_of_three(channel.deviations);
    return channel;
  }

  NoiseModel::Channel at_levels(int c, const FrequencyBand& band) const {
    NoiseModel::Channel channel;
    for (std::size_t n = 0; n < levels_.size(); ++n) {
      channel.levels.push_back(levels_[n].level);
      channel.deviations.push_back(deviation(n, c, band));
    }
    return channel;
  }

  NoiseModel::Channel channel(int c) const {
    NoiseModel::Channel channel = at_levels(c, middle_band);
    channel.spectrum = spectra_[c];
    std::vector<double>& deviations = channel.deviations;
    if (!enough_calm()) {
      const double most = texture_allowance * *std::min_element(deviations.begin(), deviations.end());
      for (double& value : deviations) value = doubt * std::min(value, most);
    } else {
      const NoiseModel calm{{calm_levels(channel)}};
      for (std::size_t n = 0; n < deviations.size(); ++n) {
        if (!calm_[n]) {
          deviations[n] = std::min(deviations[n], texture_allowance * calm.deviation(0, channel.levels[n]));
        }
      }
    }
    if (c > 0) median_of_three(deviations);
    return channel;
  }

  NoiseModel::Channel calm_levels(const NoiseModel::Channel& all) const {
    NoiseModel::Channel calm;
    for (std::size_t n = 0; n < calm_.size(); ++n) {
      if (!calm_[n]) continue;
      calm.levels.push_back(all.levels[n]);
      calm.deviations.push_back(all.deviations[n]);
    }
    return calm;
  }

  double limit_by_low_band(const MeasuredModel& model, std::size_t n) const {
    double squares = 0;
    for (int c = 1; c < measured_; ++c) {
      squares += std::pow(model.channels[c].deviations[n] * band_rms(spectra_[c], low_band), 2);
    }
    return most_over_low_colour * std::sqrt(squares / (measured_ - 1)) / band_rms(spectra_[0], low_band);
  }

  void limit_by_colour(MeasuredModel& model) const {
    const double most = drawn_          ? most_over_colour_drawn
                        : enough_calm() ? most_over_colour
                                        : most_over_colour_busy;
    for (std::size_t n = 0; n < levels_.size(); ++n) {
      double& luminance = model.channels[0].deviations[n];
      double limit = most * model.channels[1].deviations[n];
      if (!drawn_) limit = std::max(limit, limit_by_low_band(model, n));
      model.limited_by_colour = model.limited_by_colour || luminance > limit;
      luminance = std::min(luminance, limit);
    }
  }

  // Noise of luminance and of colour differences change alike with the level. If luminance's changes more, it
  // contains texture.
  void limit_by_calm_colour(std::vector<NoiseModel::Channel>& channels) const {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t n = 0; n < calm_.size(); ++n) {
      if (!calm_[n] || levels_[n].limited > unclipped_share || is_nothing(levels_[n], white_seen_)) continue;
      least = std::min(least, channels[0].deviations[n] / channels[1].deviations[n]);
    }
    for (std::size_t n = 0; n < calm_.size(); ++n) {
      channels[0].deviations[n] =
          std::min(channels[0].deviations[n], most_over_calm_colour * least * channels[1].deviations[n]);
    }
  }

  void be_gentle(NoiseModel::Channel& luminance) const {
    for (double& value : luminance.deviations) value *= gentleness(value, white_seen_, channels_);
  }

  // A camera's noise changes slowly with the level. At a jump the higher deviation contains texture; a low
  // one that was clipped does not limit its neighbours.
  void limit_by_neighbours(std::vector<double>& deviations) const {
    const auto limit = [&](std::size_t n, std::size_t by) {
      if (levels_[by].limited > unclipped_share) return;
      deviations[n] = std::min(deviations[n], most_over_neighbour * deviations[by]);
    };
    for (std::size_t n = 1; n < deviations.size(); ++n) limit(n, n - 1);
    for (std::size_t n = deviations.size(); n-- > 1;) limit(n - 1, n);
  }

  void limit_by_iso(MeasuredModel& model) const {
    NoiseModel::Channel& luminance = model.channels[0];
    const double limit = 3 * std::sqrt(*iso_ / 100) * white_ / 255 / band_rms(luminance.spectrum, low_band);
    for (double& value : luminance.deviations) {
      model.limited_by_iso = model.limited_by_iso || value > limit;
      value = std::min(value, limit);
    }
  }

  // JPEG rounds the noise of flat areas away. Beside edges and in texture it stays, and rounding adds up to
  // steps² / 12. Only where noise is visible, because a clean picture must stay unchanged.
  void add_rounding(NoiseModel::Channel& luminance) const {
    constexpr double share = 0.1;
    constexpr double least_seen = 0.05;  // of gentleness()'s visible deviation
    constexpr double well_seen = 0.25;
    const double rms = std::sqrt(std::inner_product(luminance.deviations.begin(), luminance.deviations.end(),
                                                    luminance.deviations.begin(), 0.0) /
                                 static_cast<double>(luminance.deviations.size()));
    if (rms == 0) return;
    const double scale = (channels_ == 1 ? 1 : std::sqrt(3.0));  // of the sum of three channels
    const double seen = rms / (visible * white_seen_ * scale);
    const double factor = std::clamp((seen - least_seen) / (well_seen - least_seen), 0.0, 1.0);
    const double unit = scale * white_ / 255 / rms;
    for (int j = 0; j < side; ++j) {
      for (int i = 0; i < side; ++i) {
        const double one = jpeg_steps_[j * side + i] * unit;
        const double other = jpeg_steps_[i * side + j] * unit;
        double& value = luminance.spectrum[j * side + i];
        value = std::sqrt(value * value + factor * share * (one * one + other * other) / 2 / 12);
      }
    }
  }

  NoiseModel::Channel silent_channel() const {
    NoiseModel::Channel channel{{levels_.front().level}, {0}, {}};
    channel.spectrum.fill(1);
    return channel;
  }

  std::vector<LevelNoise> levels_;
  double white_;
  double white_seen_;  // see white_seen()
  int channels_;
  int measured_ = 0;
  std::optional<double> iso_;
  std::vector<int> jpeg_steps_;
  double white_luminance_;
  bool gray_ = false;
  bool drawn_ = false;  // a drawing without a flat area
  std::vector<bool> calm_;
  std::vector<Spectrum> spectra_;
};

// Photon noise: white at each level, its variance along a line. Colour has less texture and decides.
std::optional<MeasuredModel> photon_model(const FlatWindows& windows, const ImageSpec& spec,
                                          Workers& workers) {
  const int channels = windows.channels();
  const CutLimits limits = cut_limits(windows, spec, workers);
  std::vector<LevelFit> fits;
  for (int c = channels - 1; c >= 0; --c) {
    std::optional<LevelFit> fit = fit_levels(windows, spec, limits, c, workers);
    if (!fit || (fits.empty() && !fit->is_line())) return {};
    fits.insert(fits.begin(), std::move(*fit));
  }
  MeasuredModel result;
  result.finding = NoiseFinding::by_level;
  for (const LevelFit& fit : fits) {
    result.channels.push_back(line_channel(fit, spec));
    result.lines.push_back(fit.line);
  }
  const double brightest = std::min(fits[0].brightest, spec.white());
  const double factor = gentleness(NoiseModel{result.channels}.deviation(0, brightest),
                                   std::min(spec.white(), 2 * brightest), channels);
  for (double& value : result.channels[0].deviations) value *= factor;
  result.levels = static_cast<int>(fits.back().levels.size());
  result.calm_levels = result.levels;
  return result;
}

// The blocks to show: of those that the line was fitted to.
std::vector<NoiseBlock> flattest_of_each_level(const FlatWindows& windows) {
  constexpr std::size_t shown = 32;
  std::vector<NoiseBlock> result;
  for (const LevelBlocks& level : windows.levels()) {
    std::vector<BlockPool::Block> blocks = level.by_window.blocks();
    std::sort(blocks.begin(), blocks.end());
    for (std::size_t n = 0; n < std::min(shown, blocks.size()); ++n) {
      result.push_back(windows.block_at(blocks[n].place));
    }
  }
  return result;
}

}  // namespace

MeasuredModel measured_model(FlatWindows& windows, const ImageSpec& spec,
                             const MeasuredModelOptions& options) {
  const ChosenBlocks chosen = choose_blocks(windows, spec, *options.workers);
  if (options.source != nullptr) {
    request_blocks_for_lines(windows, spec);
    request(windows, chosen);
    windows.fetch(*options.source, *options.workers);
  }
  if (std::optional<MeasuredModel> photons = photon_model(windows, spec, *options.workers)) {
    photons->blocks = flattest_of_each_level(windows);
    return *photons;
  }
  std::vector<LevelNoise> levels = measure_levels(windows, chosen, spec, *options.workers);
  std::vector<NoiseBlock> blocks;
  for (const LevelNoise& level : levels) {
    for (const std::int64_t place : level.places) blocks.push_back(windows.block_at(place));
  }
  MeasuredModel model = ModelBuilder(std::move(levels), spec, windows.channels(), options).build();
  model.blocks = std::move(blocks);
  return model;
}

}  // namespace ungrain
