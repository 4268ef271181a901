#include "noise/flat_blocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/portable_math.h"
#include "noise/clipped_gaussian.h"

namespace ungrain {
namespace {

// All constants of this file were chosen on photographs, see README.md; none is sharp.
constexpr double flattest_share = 0.01;  // of the blocks, to measure in
constexpr int middle_band = 2;
constexpr int highest_band = band_count - 1;

// ---- noise power of groups of blocks, from the flattest to the busiest

// What the cut at black and white left of one block's noise.
using Shape = ClippedGaussian::Shape;
constexpr Shape uncut{1, 0};

double divided(double a, double b) { return b > 0 ? a / b : 0; }

class FlatnessGroups {
 public:
  FlatnessGroups(const FlatBlocksQuestion& question, const std::vector<Shape>& shapes,
                 const std::vector<std::uint32_t>& candidates)
      : transform_(*question.transform), blocks_(*question.blocks), shapes_(shapes) {
    find_edges(candidates.size(), question.least_blocks);
    powers_.resize(edges_.size() - 1);
    for (int set = 0; set < set_count; ++set) add_set(set, candidates);
    for (BandPowers& group : powers_) {
      for (int band = 0; band < band_count; ++band) {
        group[band] = divided(group[band], transform_.coefficients(band));
      }
    }
  }

  const std::vector<BandPowers>& powers() const { return powers_; }
  const Neighbours& neighbours() const { return neighbours_; }  // of the flattest group

 private:
  // Where the groups begin among the candidates in order of flatness. The first is measured in; the others
  // tell how the bands rise with the detail.
  void find_edges(std::size_t candidates, int least_blocks) {
    const auto count = static_cast<double>(candidates);
    double last = std::min(1.0, std::max(flattest_share, least_blocks / count));
    edges_ = {0, position(last, count)};
    for (const double share : {2.5 * last, 0.1, 0.2, 0.4, 0.7}) {
      if (share <= 1.5 * last || share > 1) continue;
      edges_.push_back(position(share, count));
      last = share;
    }
  }
  static std::size_t position(double share, double count) {
    return static_cast<std::size_t>(std::ceil(share * count));
  }

  void add_set(int set, const std::vector<std::uint32_t>& candidates) {
    std::vector<std::pair<double, std::uint32_t>> by_busyness;
    by_busyness.reserve(candidates.size());
    for (const std::uint32_t block : candidates) {
      by_busyness.emplace_back(blocks_[block].busyness[set] / shapes_[block].variance_share, block);
    }
    std::sort(by_busyness.begin(), by_busyness.end());
    std::vector<std::uint32_t> order;
    order.reserve(candidates.size());
    for (const auto& [busyness, block] : by_busyness) order.push_back(block);
    for (std::size_t i = 0; i < edges_[1]; ++i) {
      neighbours_.add(blocks_[order[i]].neighbours, 1 / static_cast<double>(set_count * edges_[1]));
    }
    for (std::size_t group = 0; group + 1 < edges_.size(); ++group) {
      add_group(set, order.data() + edges_[group], edges_[group + 1] - edges_[group], powers_[group]);
    }
  }

  void add_group(int set, const std::uint32_t* members, std::size_t count, BandPowers& sums) const {
    BandEnergies energies{};
    double busyness = 0;
    double shares =
        0;  // of the noise's variance that the cut left: cut blocks count less, and are made up for
    double kurtosis = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const BlockSpectrum& block = blocks_[members[i]];
      for (int band = 0; band < band_count; ++band) energies[band] += block.energy[set][band];
      busyness += block.busyness[set];
      shares += shapes_[members[i]].variance_share;
      kurtosis += shapes_[members[i]].excess_kurtosis / static_cast<double>(count);
    }
    const double slope = dependence(set, kurtosis);
    const double selected = divided(busyness, shares * transform_.busyness_coefficients(set));
    for (int band = 0; band < band_count; ++band) {
      const int coefficients = transform_.coefficients(set, band);
      sums[band] += (divided(energies[band], shares) - slope * selected * coefficients) / (1 - slope);
    }
  }

  // Two coefficients of a block of Gaussian noise are independent. Of noise with another kurtosis their
  // squares are not: in the extreme, where all samples are black or white, what one lacks the others must
  // have, and blocks selected for being calm in one set are loud in the other. Given is the slope of a
  // coefficient's square over the mean of the squares that were selected by.
  double dependence(int set, double excess_kurtosis) const {
    const double selected_by = transform_.busyness_coefficients(set);
    if (selected_by == 0) return 0;
    return excess_kurtosis / (2 * transform_.samples() / selected_by + excess_kurtosis);
  }

  const BlockTransform& transform_;
  const std::vector<BlockSpectrum>& blocks_;
  const std::vector<Shape>& shapes_;
  std::vector<std::size_t> edges_;
  std::vector<BandPowers> powers_;
  Neighbours neighbours_;
};

// ---- one variance from the bands

double mean_over(const BandPowers& powers, const BlockTransform& transform) {
  double sum = 0;
  double count = 0;
  for (int band = 0; band < band_count; ++band) {
    sum += powers[band] * transform.coefficients(band);
    count += transform.coefficients(band);
  }
  return divided(sum, count);
}

// For noise of any spectrum, in blocks without detail.
double variance_of_all_bands(BandPowers powers, const BlockTransform& transform) {
  powers[0] = std::min(powers[0], powers[1]);  // what shading is left shows here first
  // Where a compressor erased a band's noise it erased the image's detail too, and the error is about as
  // large as the noise would be. Measured: jpeg(noisy) - clean at quality 75, sigma 5.
  constexpr double erased_below = 1.0 / 3;
  const double level = powers[0];
  for (double& power : powers) power += level * std::max(0.0, 1 - divided(power, level * erased_below));
  return mean_over(powers, transform);
}

// The slope of the highest band's power over the middle band's, as both rise from group to group.
double rise_of_highest_band(const std::vector<BandPowers>& groups) {
  const auto count = static_cast<double>(groups.size());
  double middle_mean = 0;
  double highest_mean = 0;
  for (const BandPowers& group : groups) {
    middle_mean += group[middle_band] / count;
    highest_mean += group[highest_band] / count;
  }
  double products = 0;
  double squares = 0;
  for (const BandPowers& group : groups) {
    const double rise = group[middle_band] - middle_mean;
    products += rise * (group[highest_band] - highest_mean);
    squares += rise * rise;
  }
  return std::clamp(divided(products, squares), 0.0, 0.6);
}

// For white noise, which shows in the highest band where detail is least. What detail is left there is judged
// by the middle band: over the groups both rise along a line, and where the line says that they are equal
// there is only noise. The line starts between the two flattest groups: one alone is too uncertain to be
// drawn out from.
double variance_of_highest_band(const std::vector<BandPowers>& groups) {
  constexpr double followed = 0.9;  // the line is bent, and followed to its end it would overshoot
  const double slope = followed * rise_of_highest_band(groups);
  const BandPowers& flattest = groups.front();
  const BandPowers& next = groups[groups.size() > 1 ? 1 : 0];
  const double middle = (flattest[middle_band] + next[middle_band]) / 2;
  const double highest = (flattest[highest_band] + next[highest_band]) / 2;
  constexpr double least_share = 0.06;
  return std::clamp((highest - slope * middle) / (1 - slope), least_share * flattest[highest_band],
                    flattest[highest_band]);
}

// Texture's power falls with frequency k as k^-g, noise's is level: of n + c k^-g at three frequencies, each
// as many times the one before, n follows. What falls all the way is texture alone.
double level_part(const BandPowers& powers) {
  const double low = powers[0];                                      // at 2.5
  const double middle = powers[1] + 0.41 * (powers[2] - powers[1]);  // 5.3, between 4.5 and 6.5
  const double high = powers[highest_band];                          // 11.3
  const double bend = low + high - 2 * middle;
  return bend > 0 ? std::max(0.0, (low * high - middle * middle) / bend) : high;
}

bool all_bands_there(const BlockTransform& transform) {
  for (int band = 0; band < band_count; ++band) {
    if (transform.coefficients(band) == 0) return false;
  }
  return true;
}

// From 0 at `low` to 1 at `high` and above.
double ramp(double value, double low, double high) {
  return std::clamp((value - low) / (high - low), 0.0, 1.0);
}

double ratio_of(double a, double b) { return b > 0 ? a / b : a > 0 ? 1e9 : 1.0; }

// Whether busier blocks have more of the low frequencies, 0 to 1: detail is not the same everywhere.
double busier_elsewhere(const std::vector<BandPowers>& groups) {
  if (groups.size() == 1) return 1;
  const BandPowers& flattest = groups.front();
  const BandPowers& busier = groups[groups.size() > 3 ? groups.size() - 3 : groups.size() - 1];
  return ramp(ratio_of(busier[0] + busier[1], flattest[0] + flattest[1]), 1.08, 1.25);
}

// How surely even the flattest blocks show detail, 0 to 1. Its power falls steadily with frequency from the
// lowest on, while noise that lost its high frequencies is still level at the low ones: both of the first two
// steps must be steep. And there is more of it in other blocks.
double detail_seen(const std::vector<BandPowers>& groups) {
  const BandPowers& flattest = groups.front();
  const double steepness =
      ramp(ratio_of(flattest[0], flattest[1]), 1.2, 1.5) * ramp(ratio_of(flattest[1], flattest[2]), 1.1, 1.3);
  return std::max(steepness * busier_elsewhere(groups), falls_evenly(flattest));
}

// How far the line through the groups can be trusted, 0 to 1: not where nearly all of the highest band turned
// out to be detail; nor where the groups do not rise together although power falls with frequency, which is
// texture of one strength all over the image.
double trust(const std::vector<BandPowers>& groups, double variance) {
  const BandPowers& flattest = groups.front();
  const double left = ramp(divided(variance, flattest[highest_band]), 0.15, 0.42);
  const double falls = ramp(divided(flattest[middle_band], flattest[highest_band]), 1.3, 1.6);
  return left * busier_elsewhere(groups) * (1 - falls * (1 - ramp(rise_of_highest_band(groups), 0.05, 0.15)));
}

FlatBlocksAnswer combined(const FlatnessGroups& found, const BlockTransform& transform) {
  const std::vector<BandPowers>& groups = found.powers();
  if (!all_bands_there(transform)) return {mean_over(groups.front(), transform), 0, found.neighbours()};
  const double detail = detail_seen(groups);
  const double by_groups = variance_of_highest_band(groups);
  const double by_frequencies = std::min(level_part(groups.front()), by_groups);
  const double of_highest = by_frequencies + trust(groups, by_groups) * (by_groups - by_frequencies);
  return {(1 - detail) * variance_of_all_bands(groups.front(), transform) + detail * of_highest, detail,
          found.neighbours()};
}

// ---- noise that was cut off

double median_variance(const std::vector<BlockSpectrum>& blocks, const BlockTransform& transform) {
  std::vector<double> variances;
  for (const BlockSpectrum& block : blocks) {
    BandPowers powers{};
    for (int band = 0; band < band_count; ++band) {
      powers[band] = divided(block.energy[0][band] + block.energy[1][band], transform.coefficients(band));
    }
    variances.push_back(mean_over(powers, transform));
  }
  const auto middle = variances.begin() + static_cast<std::ptrdiff_t>(variances.size() / 2);
  std::nth_element(variances.begin(), middle, variances.end());
  return *middle;
}

std::vector<Shape> shapes_for(double variance, const FlatBlocksQuestion& question) {
  const ClippedGaussian noise(std::sqrt(variance), question.white);
  constexpr double least_share = 0.02;  // far outside nothing is left to divide by
  std::vector<Shape> shapes;
  for (const BlockSpectrum& block : *question.blocks) {
    Shape shape = noise.at_mean(block.mean);
    shape.variance_share = std::max(shape.variance_share, least_share);
    shapes.push_back(shape);
  }
  return shapes;
}

// Blocks that the cut hurt much more than others are left out.
std::vector<std::uint32_t> least_cut(const std::vector<Shape>& shapes) {
  std::vector<double> shares;
  for (const Shape& shape : shapes) shares.push_back(shape.variance_share);
  const auto high = shares.begin() + static_cast<std::ptrdiff_t>((shares.size() - 1) * 9 / 10);
  std::nth_element(shares.begin(), high, shares.end());
  const double least = 0.7 * *high;
  std::vector<std::uint32_t> blocks;
  for (std::uint32_t i = 0; i < shapes.size(); ++i) {
    if (shapes[i].variance_share >= least) blocks.push_back(i);
  }
  return blocks;
}

// The strength says how much the cut took from each block, and that the strength. From above: a strength that
// is too low would take black areas, whose noise is cut in half, for calm ones and stay there.
FlatBlocksAnswer variance_before_cut(const FlatBlocksQuestion& question) {
  constexpr int most_rounds = 16;
  constexpr double settled = 1e-3;
  FlatBlocksAnswer answer{median_variance(*question.blocks, *question.transform), 0, {}};
  for (int round = 0; round < most_rounds && answer.variance > 0; ++round) {
    const std::vector<Shape> shapes = shapes_for(answer.variance, question);
    const FlatnessGroups groups(question, shapes, least_cut(shapes));
    const FlatBlocksAnswer next = combined(groups, *question.transform);
    const bool done = std::fabs(next.variance - answer.variance) <= settled * answer.variance;
    answer = next;
    if (done) break;
  }
  return answer;
}

FlatBlocksAnswer variance_uncut(const FlatBlocksQuestion& question) {
  const std::vector<Shape> shapes(question.blocks->size(), uncut);
  std::vector<std::uint32_t> all(shapes.size());
  for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = i;
  return combined(FlatnessGroups(question, shapes, all), *question.transform);
}

}  // namespace

double falls_evenly(const BandPowers& powers) {
  if (!(powers[1] > 0 && powers[middle_band] > 0 && powers[highest_band] > 0)) return 0;
  const double low = portable::log(powers[0] / powers[1]) / portable::log(4.5 / 2.5);
  const double high = portable::log(powers[middle_band] / powers[highest_band]) / portable::log(11.3 / 6.5);
  return ramp(low, 1, 1.4) * (1 - ramp(ratio_of(high, low), 1.3, 1.8));
}

FlatBlocksAnswer noise_variance(const FlatBlocksQuestion& question) {
  if (question.blocks->empty()) return {};
  return question.white > 0 ? variance_before_cut(question) : variance_uncut(question);
}

}  // namespace ungrain
