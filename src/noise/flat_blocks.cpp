#include "noise/flat_blocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/portable_math.h"
#include "noise/clipped_gaussian.h"

namespace ungrain {
namespace {

// All constants of this file were chosen on photographs, see README.md; none is sharp.
constexpr double flattest_share = 0.01;  // of the blocks, for the measurement
constexpr int middle_band = 2;
constexpr int highest_band = band_count - 1;

// ---- the blocks of given ranks

// A non-negative number and its index: ordered by the numbers, ties by the index.
using Key = std::uint64_t;
constexpr Key no_key = ~Key{0};  // of an excluded block

std::uint32_t bits_of(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
Key key_of(float value, std::size_t place) { return Key{bits_of(value)} << 32U | place; }

// The keys of the given ranks (from 0, ascending). A histogram of the leading bits selects the few keys to
// sort.
std::vector<Key> keys_of_ranks(const std::vector<Key>& keys, const std::vector<std::size_t>& ranks) {
  constexpr int bin_shift = 32 + 20;  // sign, exponent and 3 bits of the number
  std::vector<std::uint32_t> bins(std::size_t{1} << (64 - bin_shift));
  for (const Key key : keys) ++bins[key >> bin_shift];
  struct Bin {
    std::size_t bin = 0;
    std::size_t before = 0;  // keys in earlier bins
    std::vector<Key> keys;
  };
  std::vector<Bin> wanted;
  std::size_t before = 0;
  for (std::size_t bin = 0, next = 0; bin < bins.size() && next < ranks.size(); before += bins[bin++]) {
    if (ranks[next] >= before + bins[bin]) continue;
    wanted.push_back({bin, before, {}});
    wanted.back().keys.reserve(bins[bin]);
    while (next < ranks.size() && ranks[next] < before + bins[bin]) ++next;
  }
  std::vector<std::int8_t> slots(bins.size(), -1);
  for (std::size_t n = 0; n < wanted.size(); ++n) slots[wanted[n].bin] = static_cast<std::int8_t>(n);
  for (const Key key : keys) {
    const std::int8_t slot = slots[key >> bin_shift];
    if (slot >= 0) wanted[static_cast<std::size_t>(slot)].keys.push_back(key);
  }
  std::vector<Key> found;
  std::size_t n = 0;
  for (const std::size_t rank : ranks) {
    while (rank >= wanted[n].before + wanted[n].keys.size()) ++n;
    const auto at = wanted[n].keys.begin() + static_cast<std::ptrdiff_t>(rank - wanted[n].before);
    std::nth_element(wanted[n].keys.begin(), at, wanted[n].keys.end());
    found.push_back(*at);
  }
  return found;
}

float value_of_rank(std::vector<float> values, std::size_t rank) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// ---- noise power of groups of blocks, from the flattest to the busiest

// The effect of the cut at black and white on the blocks' noise. Empty if nothing was cut.
struct CutEffects {
  std::vector<float> variance_shares = {};
  std::vector<float> kurtoses = {};  // excess
  float least_share = 0;             // blocks with less are left out
  std::size_t candidates = 0;        // number of blocks that are not

  bool uncut() const { return variance_shares.empty(); }
};

double divided(double a, double b) { return b > 0 ? a / b : 0; }

class FlatnessGroups {
 public:
  // The powers are available after each set was added, on any thread.
  FlatnessGroups(const FlatBlocksQuestion& question, const CutEffects& cut_effects)
      : transform_(*question.transform), blocks_(*question.blocks), cut_effects_(cut_effects) {
    find_edges(cut_effects.candidates, question.least_blocks);
    for (SetGroups& set : sets_) set.sums.resize(edges_.size());
  }

  std::vector<BandPowers> powers() const {
    std::vector<BandPowers> powers(edges_.size());
    for (std::size_t group = 0; group < powers.size(); ++group) {
      for (int set = 0; set < set_count; ++set) add_group(set, sets_[set].sums[group], powers[group]);
      for (int band = 0; band < band_count; ++band) {
        powers[group][band] = divided(powers[group][band], transform_.coefficients(band));
      }
    }
    return powers;
  }
  Neighbours neighbours() const {  // of the flattest group
    Neighbours mean;
    for (const SetGroups& set : sets_) mean.add(set.neighbours, 1);
    return mean;
  }

  void add_set(int set) {
    SetGroups& to = sets_[set];
    const std::vector<Key> keys = keys_of(set);
    std::vector<std::size_t> last_ranks;
    for (const std::size_t edge : edges_) last_ranks.push_back(edge - 1);
    const std::vector<Key> last_keys = keys_of_ranks(keys, last_ranks);
    std::array<Key, most_groups> ends;  // a fixed number is compared faster
    ends.fill(no_key);
    std::copy(last_keys.begin(), last_keys.end(), ends.begin());
    for (std::size_t i = 0; i < keys.size(); ++i) {  // in the order of the image
      if (keys[i] > last_keys.back()) continue;
      std::size_t group = 0;
      for (const Key last : ends) group += keys[i] > last ? 1 : 0;
      add_block(set, i, to.sums[group]);
      if (group == 0) add_neighbours(i, to.neighbours);
    }
  }

 private:
  static constexpr std::size_t most_groups = 6;  // find_edges()

  struct Sums {
    BandEnergies energies{};
    double busyness = 0;
    double shares =
        0;  // share of the noise's variance left by the cut: cut blocks count less, and are corrected
    double kurtosis = 0;
    std::size_t blocks = 0;
  };
  struct SetGroups {
    std::vector<Sums> sums;
    Neighbours neighbours;
  };

  // Finds the ends of the groups among the candidates in order of flatness. The first group is measured; the
  // others show how the bands rise with the detail.
  void find_edges(std::size_t candidates, int least_blocks) {
    const auto count = static_cast<double>(candidates);
    double last = std::min(1.0, std::max(flattest_share, least_blocks / count));
    edges_ = {position(last, count)};
    for (const double share : {2.5 * last, 0.1, 0.2, 0.4, 0.7}) {
      if (share <= 1.5 * last || share > 1) continue;
      edges_.push_back(position(share, count));
      last = share;
    }
  }
  static std::size_t position(double share, double count) {
    return static_cast<std::size_t>(std::ceil(share * count));
  }

  std::vector<Key> keys_of(int set) const {
    std::vector<Key> keys(blocks_.size());
    const float* busyness = blocks_.busyness(set);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (cut_effects_.uncut()) {
        keys[i] = key_of(busyness[i], i);
      } else {
        const float share = cut_effects_.variance_shares[i];
        keys[i] = share < cut_effects_.least_share ? no_key : key_of(busyness[i] / share, i);
      }
    }
    return keys;
  }

  void add_block(int set, std::size_t block, Sums& sums) const {
    const SpectrumTable::Energies& energies = blocks_.energies(set)[block];
    for (int band = 0; band < band_count; ++band) sums.energies[band] += double{energies[band]};
    sums.busyness += double{blocks_.busyness(set)[block]};
    sums.shares += cut_effects_.uncut() ? 1 : double{cut_effects_.variance_shares[block]};
    sums.kurtosis += cut_effects_.uncut() ? 0 : double{cut_effects_.kurtoses[block]};
    ++sums.blocks;
  }

  void add_neighbours(std::size_t block, Neighbours& mean) const {
    const Neighbours found{blocks_.equal()[block], blocks_.difference()[block], blocks_.step()[block]};
    mean.add(found, 1 / static_cast<double>(set_count * edges_.front()));
  }

  void add_group(int set, const Sums& found, BandPowers& sums) const {
    const double slope = dependence(set, divided(found.kurtosis, static_cast<double>(found.blocks)));
    const double selected = divided(found.busyness, found.shares * transform_.busyness_coefficients(set));
    for (int band = 0; band < band_count; ++band) {
      const int coefficients = transform_.coefficients(set, band);
      sums[band] +=
          (divided(found.energies[band], found.shares) - slope * selected * coefficients) / (1 - slope);
    }
  }

  // Two coefficients of a block of Gaussian noise are independent. With another kurtosis their squares are
  // not: in the extreme, if all samples are black or white, the energy that one lacks is in the others, and
  // blocks selected as calm in one set are loud in the other. Returns the slope of a coefficient's square
  // over the mean of the squares used for the selection.
  double dependence(int set, double excess_kurtosis) const {
    const double selected_by = transform_.busyness_coefficients(set);
    if (selected_by == 0) return 0;
    return excess_kurtosis / (2 * transform_.samples() / selected_by + excess_kurtosis);
  }

  const BlockTransform& transform_;
  const SpectrumTable& blocks_;
  const CutEffects& cut_effects_;
  std::vector<std::size_t> edges_;  // one past each group
  std::array<SetGroups, set_count> sets_;
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
  powers[0] = std::min(powers[0], powers[1]);  // remaining shading shows here first
  // A compressor that erased a band's noise also erased the image's detail, and the error is about as large
  // as the noise would be. Measured: jpeg(noisy) - clean at quality 75, sigma 5.
  constexpr double erased_below = 1.0 / 3;
  const double level = powers[0];
  for (double& power : powers) power += level * std::max(0.0, 1 - divided(power, level * erased_below));
  return mean_over(powers, transform);
}

// The slope of the highest band's power over the middle band's across the groups.
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

// For white noise, measured in the highest band, which has the least detail. The middle band estimates the
// detail left there: over the groups both rise along a line, and where the line says that they are equal
// there is only noise. The line starts between the two flattest groups: one alone is too uncertain to
// extrapolate from.
double variance_of_highest_band(const std::vector<BandPowers>& groups) {
  constexpr double followed = 0.9;  // the relation is curved, and extrapolating to its end would overshoot
  const double slope = followed * rise_of_highest_band(groups);
  const BandPowers& flattest = groups.front();
  const BandPowers& next = groups[groups.size() > 1 ? 1 : 0];
  const double middle = (flattest[middle_band] + next[middle_band]) / 2;
  const double highest = (flattest[highest_band] + next[highest_band]) / 2;
  constexpr double least_share = 0.06;
  return std::clamp((highest - slope * middle) / (1 - slope), least_share * flattest[highest_band],
                    flattest[highest_band]);
}

// The constant part n of n + c k^-g. Texture's power falls with frequency k as k^-g, noise's is constant.
// Three frequencies in a geometric series determine n. A power that falls all the way is texture alone.
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

// Whether busier blocks have more of the low frequencies, 0 to 1: detail varies over the image.
double busier_elsewhere(const std::vector<BandPowers>& groups) {
  if (groups.size() == 1) return 1;
  const BandPowers& flattest = groups.front();
  const BandPowers& busier = groups[groups.size() > 3 ? groups.size() - 3 : groups.size() - 1];
  return ramp(ratio_of(busier[0] + busier[1], flattest[0] + flattest[1]), 1.08, 1.25);
}

// Confidence that even the flattest blocks show detail, 0 to 1. The power of detail falls steadily with
// frequency from the lowest on, while noise without high frequencies is constant at the low ones: both of the
// first two steps must be steep. And other blocks must have more of it.
double detail_seen(const std::vector<BandPowers>& groups) {
  const BandPowers& flattest = groups.front();
  const double steepness =
      ramp(ratio_of(flattest[0], flattest[1]), 1.2, 1.5) * ramp(ratio_of(flattest[1], flattest[2]), 1.1, 1.3);
  return std::max(steepness * busier_elsewhere(groups), falls_evenly(flattest));
}

// Confidence in the line through the groups, 0 to 1. Low if nearly all of the highest band turned out to be
// detail, or if the groups do not rise together although power falls with frequency, which is texture of one
// strength all over the image.
double trust(const std::vector<BandPowers>& groups, double variance) {
  const BandPowers& flattest = groups.front();
  const double left = ramp(divided(variance, flattest[highest_band]), 0.15, 0.42);
  const double falls = ramp(divided(flattest[middle_band], flattest[highest_band]), 1.3, 1.6);
  return left * busier_elsewhere(groups) * (1 - falls * (1 - ramp(rise_of_highest_band(groups), 0.05, 0.15)));
}

FlatBlocksAnswer combined(const FlatnessGroups& found, const BlockTransform& transform) {
  const std::vector<BandPowers> groups = found.powers();
  if (!all_bands_there(transform)) return {mean_over(groups.front(), transform), 0, found.neighbours()};
  const double detail = detail_seen(groups);
  const double by_groups = variance_of_highest_band(groups);
  const double by_frequencies = std::min(level_part(groups.front()), by_groups);
  const double of_highest = by_frequencies + trust(groups, by_groups) * (by_groups - by_frequencies);
  return {(1 - detail) * variance_of_all_bands(groups.front(), transform) + detail * of_highest, detail,
          found.neighbours()};
}

// ---- noise that was cut off

// Of the bands' energies, without shading.
double median_variance(const SpectrumTable& blocks, const BlockTransform& transform) {
  std::vector<float> energies(blocks.size());
  int coefficients = 0;
  for (int band = 0; band < band_count; ++band) coefficients += transform.coefficients(band);
  for (int set = 0; set < set_count; ++set) {
    for (std::size_t i = 0; i < energies.size(); ++i) {
      for (const float energy : blocks.energies(set)[i]) energies[i] += energy;
    }
  }
  return divided(value_of_rank(energies, energies.size() / 2), coefficients);
}

// Leaves out blocks that the cut affected much more than others.
void leave_out_most_cut(CutEffects& cut_effects) {
  const std::vector<float>& shares = cut_effects.variance_shares;
  cut_effects.least_share = 0.7F * value_of_rank(shares, (shares.size() - 1) * 9 / 10);
  cut_effects.candidates = static_cast<std::size_t>(std::count_if(
      shares.begin(), shares.end(), [&](float share) { return share >= cut_effects.least_share; }));
}

CutEffects shapes_for(double variance, const FlatBlocksQuestion& question) {
  const ClippedGaussian noise(std::sqrt(variance), question.white);
  constexpr float least_share = 0.02F;  // far outside nothing is left to divide by
  const std::size_t count = question.blocks->size();
  CutEffects cut_effects{std::vector<float>(count), std::vector<float>(count)};
  for (std::size_t i = 0; i < count; ++i) {
    const ClippedGaussian::Shape shape = noise.at_mean(question.blocks->mean()[i]);
    cut_effects.variance_shares[i] = std::max(static_cast<float>(shape.variance_share), least_share);
    cut_effects.kurtoses[i] = static_cast<float>(shape.excess_kurtosis);
  }
  leave_out_most_cut(cut_effects);
  return cut_effects;
}

}  // namespace

double falls_evenly(const BandPowers& powers) {
  if (!(powers[1] > 0 && powers[middle_band] > 0 && powers[highest_band] > 0)) return 0;
  const double low = portable::log(powers[0] / powers[1]) / portable::log(4.5 / 2.5);
  const double high = portable::log(powers[middle_band] / powers[highest_band]) / portable::log(11.3 / 6.5);
  return ramp(low, 1, 1.4) * (1 - ramp(ratio_of(high, low), 1.3, 1.8));
}

void SpectrumTable::set(std::size_t block, const BlockSpectrum& spectrum) {
  mean()[block] = static_cast<float>(spectrum.mean);
  equal()[block] = static_cast<float>(spectrum.neighbours.equal);
  difference()[block] = static_cast<float>(spectrum.neighbours.difference);
  step()[block] = static_cast<float>(spectrum.neighbours.step);
  for (int n = 0; n < set_count; ++n) {
    busyness(n)[block] = static_cast<float>(spectrum.busyness[n]);
    for (int band = 0; band < band_count; ++band) {
      energies(n)[block][band] = static_cast<float>(spectrum.energy[n][band]);
    }
  }
}

void SpectrumTable::keep(const std::vector<std::uint32_t>& blocks) {
  size_ = blocks.size();
  const auto move_up = [&](auto* numbers) {
    for (std::size_t i = 0; i < blocks.size(); ++i) numbers[i] = numbers[blocks[i]];
  };
  for (std::size_t n = 0; n < columns; ++n) move_up(column(n));
  for (int n = 0; n < set_count; ++n) move_up(energies(n));
}

struct VarianceSearch::Round {
  Round(const FlatBlocksQuestion& question, CutEffects found)
      : cut_effects(std::move(found)), groups(question, cut_effects) {}
  CutEffects cut_effects;
  FlatnessGroups groups;
};

VarianceSearch::VarianceSearch() = default;
VarianceSearch::~VarianceSearch() = default;
VarianceSearch::VarianceSearch(VarianceSearch&&) noexcept = default;
VarianceSearch& VarianceSearch::operator=(VarianceSearch&&) noexcept = default;

void VarianceSearch::start(const FlatBlocksQuestion& question) {
  question_ = question;
  done_ = question.blocks->size() == 0;
  if (done_ || !is_cut()) return;
  answer_.variance = median_variance(*question.blocks, *question.transform);
  done_ = !(answer_.variance > 0);
}

void VarianceSearch::begin_round() {
  if (is_cut()) {
    round_ = std::make_unique<Round>(question_, shapes_for(answer_.variance, question_));
  } else {
    round_ = std::make_unique<Round>(question_, CutEffects{.candidates = question_.blocks->size()});
  }
}

void VarianceSearch::add_set(int set) { round_->groups.add_set(set); }

// The strength gives the cut's effect on each block, and that the strength. The iteration starts from above:
// too low a strength would take black areas, whose noise is cut in half, for calm ones and stay there.
void VarianceSearch::end_round() {
  constexpr int most_rounds = 16;
  constexpr double settled = 1e-3;
  const FlatBlocksAnswer next = combined(round_->groups, *question_.transform);
  const bool is_settled = std::fabs(next.variance - answer_.variance) <= settled * answer_.variance;
  answer_ = next;
  done_ = !is_cut() || is_settled || ++rounds_ == most_rounds || !(answer_.variance > 0);
}

}  // namespace ungrain
