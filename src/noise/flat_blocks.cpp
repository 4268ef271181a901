#include "noise/flat_blocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
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
float value_of(Key key) {
  const auto bits = static_cast<std::uint32_t>(key >> 32U);
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Blocks are worked on in chunks, each a task of its own.
constexpr std::size_t chunk_blocks = 2560;
struct Chunk {
  std::size_t first = 0;
  std::size_t end = 0;
};
Chunk chunk_of(std::size_t blocks, int n) {
  const std::size_t first = static_cast<std::size_t>(n) * chunk_blocks;
  return {first, std::min(blocks, first + chunk_blocks)};
}
int chunks_of(std::size_t blocks) { return static_cast<int>((blocks + chunk_blocks - 1) / chunk_blocks); }

// Finds the keys of given ranks. A histogram of the leading bits selects the few keys to sort. Chunks are
// counted, then ranks chosen, then chunks gathered, and then the keys found.
class RankFinder {
 public:
  explicit RankFinder(int chunks) : chunks_(static_cast<std::size_t>(chunks)) {}

  void count(int chunk, const Key* first, const Key* end) {  // not no_key
    std::vector<std::uint32_t>& bins = chunks_[static_cast<std::size_t>(chunk)].bins;
    bins.assign(bin_count, 0);
    for (const Key* key = first; key != end; ++key) {
      if (*key != no_key) ++bins[*key >> bin_shift];
    }
  }

  void choose(std::vector<std::size_t> ranks) {  // from 0, ascending
    ranks_ = std::move(ranks);
    std::vector<std::uint32_t> bins(bin_count);
    for (const ChunkKeys& chunk : chunks_) {
      std::transform(bins.begin(), bins.end(), chunk.bins.begin(), bins.begin(), std::plus<>());
    }
    slots_.assign(bin_count, -1);
    before_.clear();
    std::size_t before = 0;  // keys in earlier bins
    for (std::size_t bin = 0, next = 0; bin < bin_count && next < ranks_.size(); before += bins[bin++]) {
      if (ranks_[next] >= before + bins[bin]) continue;
      slots_[bin] = static_cast<std::int8_t>(before_.size());
      before_.push_back(before);
      while (next < ranks_.size() && ranks_[next] < before + bins[bin]) ++next;
    }
  }

  void gather(int chunk, const Key* first, const Key* end) {
    ChunkKeys& to = chunks_[static_cast<std::size_t>(chunk)];
    to.gathered.resize(before_.size());
    for (std::vector<Key>& keys : to.gathered) keys.clear();
    for (const Key* key = first; key != end; ++key) {
      const std::int8_t slot = *key == no_key ? std::int8_t{-1} : slots_[*key >> bin_shift];
      if (slot >= 0) to.gathered[static_cast<std::size_t>(slot)].push_back(*key);
    }
  }

  std::vector<Key> find() const {
    std::vector<std::vector<Key>> slots(before_.size());
    for (const ChunkKeys& chunk : chunks_) {
      for (std::size_t n = 0; n < slots.size(); ++n) {
        slots[n].insert(slots[n].end(), chunk.gathered[n].begin(), chunk.gathered[n].end());
      }
    }
    std::vector<Key> found;
    std::size_t n = 0;
    for (const std::size_t rank : ranks_) {
      while (rank >= before_[n] + slots[n].size()) ++n;
      const auto at = slots[n].begin() + static_cast<std::ptrdiff_t>(rank - before_[n]);
      std::nth_element(slots[n].begin(), at, slots[n].end());
      found.push_back(*at);
    }
    return found;
  }

 private:
  static constexpr int bin_shift = 32 + 20;            // exponent and 3 bits of the number
  static constexpr std::size_t bin_count = 1U << 11U;  // no number has a sign

  struct ChunkKeys {
    std::vector<std::uint32_t> bins;
    std::vector<std::vector<Key>> gathered;  // of each slot
  };
  std::vector<ChunkKeys> chunks_;
  std::vector<std::size_t> ranks_;
  std::vector<std::int8_t> slots_;   // of each bin: the wanted bins count from 0, others have -1
  std::vector<std::size_t> before_;  // of each slot: keys in earlier bins
};

float value_of_rank(std::vector<float> values, std::size_t rank) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// ---- noise power of groups of blocks, from the flattest to the busiest

// The effect of the cut at black and white on the blocks' noise. Empty if nothing was cut.
struct CutEffects {
  std::unique_ptr<float[]> variance_shares = {};
  std::unique_ptr<float[]> kurtoses = {};  // excess
  float least_share = 0;                   // blocks with less are left out

  bool uncut() const { return !variance_shares; }
};

double divided(double a, double b) { return b > 0 ? a / b : 0; }

// A group's blocks are too far from each other for the processor to see what comes next.
void prefetch([[maybe_unused]] const void* memory) {
#if defined(__GNUC__)
  __builtin_prefetch(memory);
#endif
}

class FlatnessGroups {
 public:
  static constexpr std::size_t most_groups = 6;  // find_edges()

  // The powers are available after the steps below, each for both sets and all of its tasks.
  FlatnessGroups(const FlatBlocksQuestion& question, const CutEffects& cut_effects)
      : transform_(*question.transform),
        blocks_(*question.blocks),
        least_blocks_(question.least_blocks),
        cut_effects_(cut_effects),
        sets_{SetGroups(blocks_.size()), SetGroups(blocks_.size())} {}

  void find_keys(int set, int chunk) {
    SetGroups& to = sets_[set];
    const auto [first, end] = chunk_of(blocks_.size(), chunk);
    const float* busyness = blocks_.busyness(set);
    for (std::size_t i = first; i < end; ++i) {
      if (cut_effects_.uncut()) {
        to.keys[i] = key_of(busyness[i], i);
      } else {
        const float share = cut_effects_.variance_shares[i];
        to.keys[i] = share < cut_effects_.least_share ? no_key : key_of(busyness[i] / share, i);
      }
    }
    to.ranks.count(chunk, to.keys.get() + first, to.keys.get() + end);
    to.chunks[static_cast<std::size_t>(chunk)].candidates =
        end - first -
        static_cast<std::size_t>(std::count(to.keys.get() + first, to.keys.get() + end, no_key));
  }
  void choose_ranks(int set) {
    SetGroups& to = sets_[set];
    std::size_t candidates = 0;
    for (const SetChunk& chunk : to.chunks) candidates += chunk.candidates;
    to.edges = find_edges(candidates, least_blocks_);
    to.sums.assign(to.edges.size(), {});
    to.neighbours = {};
    std::vector<std::size_t> last_ranks;
    for (const std::size_t edge : to.edges) last_ranks.push_back(edge - 1);
    to.ranks.choose(std::move(last_ranks));
  }
  void gather_keys(int set, int chunk) {
    const auto [first, end] = chunk_of(blocks_.size(), chunk);
    sets_[set].ranks.gather(chunk, sets_[set].keys.get() + first, sets_[set].keys.get() + end);
  }
  void find_ends(int set) {
    const std::vector<Key> last_keys = sets_[set].ranks.find();
    sets_[set].ends.fill(no_key);
    std::copy(last_keys.begin(), last_keys.end(), sets_[set].ends.begin());
    sets_[set].last = last_keys.back();
  }
  void find_groups(int set, int chunk) {
    const SetGroups& of = sets_[set];
    const auto [first, end] = chunk_of(blocks_.size(), chunk);
    std::array<std::uint8_t, chunk_blocks> groups;
    std::array<std::uint32_t, most_groups + 1> counts{};  // the last: blocks beyond all groups
    for (std::size_t i = first; i < end; ++i) {
      std::size_t group = 0;
      for (const Key last : of.ends) group += of.keys[i] > last ? 1 : 0;
      groups[i - first] = static_cast<std::uint8_t>(of.keys[i] > of.last ? most_groups : group);
      ++counts[groups[i - first]];
    }
    SetChunk& to = sets_[set].chunks[static_cast<std::size_t>(chunk)];
    std::partial_sum(counts.begin(), counts.end() - 1, to.ends.begin());
    std::array<std::uint32_t, most_groups + 1> next{};
    std::copy(to.ends.begin(), to.ends.end(), next.begin() + 1);
    to.blocks.resize(chunk_blocks);
    for (std::size_t i = first; i < end; ++i) {
      to.blocks[next[groups[i - first]]++] = static_cast<std::uint32_t>(i);
    }
  }
  // Adds in the order of the image.
  void add_group(int set, std::size_t group) {
    SetGroups& to = sets_[set];
    if (group >= to.sums.size()) return;
    Sums sums;
    for (const SetChunk& chunk : to.chunks) {
      const std::span<const std::uint32_t> blocks = chunk.of_group(group);
      for (std::size_t n = 0; n < blocks.size(); ++n) {
        constexpr std::size_t ahead = 16;
        if (n + ahead < blocks.size()) prefetch(blocks_.energies(set) + blocks[n + ahead]);
        add_block(set, blocks[n], sums);
        if (group == 0) add_neighbours(set, blocks[n], to.neighbours);
      }
    }
    to.sums[group] = sums;
  }

  std::vector<BandPowers> powers() const {
    std::vector<BandPowers> powers(sets_[0].sums.size());
    for (std::size_t group = 0; group < powers.size(); ++group) {
      for (int set = 0; set < set_count; ++set) add_powers(set, sets_[set].sums[group], powers[group]);
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

 private:
  struct Sums {
    BandEnergies energies{};
    double busyness = 0;
    double shares =
        0;  // share of the noise's variance left by the cut: cut blocks count less, and are corrected
    double kurtosis = 0;
    std::size_t blocks = 0;
  };
  struct SetChunk {
    std::size_t candidates = 0;
    std::vector<std::uint32_t> blocks;  // those of each group in order, one group after the other
    std::array<std::uint32_t, most_groups> ends{};

    std::span<const std::uint32_t> of_group(std::size_t group) const {
      const std::size_t first = group == 0 ? 0 : ends[group - 1];
      return {blocks.data() + first, ends[group] - first};
    }
  };
  struct SetGroups {
    explicit SetGroups(std::size_t blocks)
        : keys(new Key[blocks]),
          ranks(chunks_of(blocks)),
          chunks(static_cast<std::size_t>(chunks_of(blocks))) {}
    std::unique_ptr<Key[]> keys;
    RankFinder ranks;
    std::vector<SetChunk> chunks;
    std::vector<std::size_t> edges;       // one past each group
    std::array<Key, most_groups> ends{};  // the groups' last keys; a fixed number is compared faster
    Key last = 0;
    std::vector<Sums> sums;
    Neighbours neighbours;
  };

  // Finds the ends of the groups among the candidates in order of flatness. The first group is measured; the
  // others show how the bands rise with the detail.
  static std::vector<std::size_t> find_edges(std::size_t candidates, int least_blocks) {
    const auto count = static_cast<double>(candidates);
    double last = std::min(1.0, std::max(flattest_share, least_blocks / count));
    std::vector<std::size_t> edges = {position(last, count)};
    for (const double share : {2.5 * last, 0.1, 0.2, 0.4, 0.7}) {
      if (share <= 1.5 * last || share > 1) continue;
      edges.push_back(position(share, count));
      last = share;
    }
    return edges;
  }
  static std::size_t position(double share, double count) {
    return static_cast<std::size_t>(std::ceil(share * count));
  }

  void add_block(int set, std::size_t block, Sums& sums) const {
    const SpectrumTable::Energies& energies = blocks_.energies(set)[block];
    for (int band = 0; band < band_count; ++band) sums.energies[band] += double{energies[band]};
    sums.busyness += double{blocks_.busyness(set)[block]};
    sums.shares += cut_effects_.uncut() ? 1 : double{cut_effects_.variance_shares[block]};
    sums.kurtosis += cut_effects_.uncut() ? 0 : double{cut_effects_.kurtoses[block]};
    ++sums.blocks;
  }

  void add_neighbours(int set, std::size_t block, Neighbours& mean) const {
    const Neighbours found{blocks_.equal()[block], blocks_.difference()[block], blocks_.step()[block]};
    mean.add(found, 1 / static_cast<double>(set_count * sets_[set].edges.front()));
  }

  void add_powers(int set, const Sums& found, BandPowers& sums) const {
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
  int least_blocks_;
  const CutEffects& cut_effects_;
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

// The median of the variances that blocks have in all bands, without shading.
class MedianVariance {
 public:
  explicit MedianVariance(const FlatBlocksQuestion& question)
      : blocks_(*question.blocks), keys_(new Key[blocks_.size()]), ranks_(chunks_of(blocks_.size())) {
    for (int band = 0; band < band_count; ++band) coefficients_ += question.transform->coefficients(band);
  }

  void find_keys(int chunk) {
    const auto [first, end] = chunk_of(blocks_.size(), chunk);
    for (std::size_t i = first; i < end; ++i) {
      float sum = 0;
      for (int set = 0; set < set_count; ++set) {
        for (const float energy : blocks_.energies(set)[i]) sum += energy;
      }
      keys_[i] = key_of(sum, i);
    }
    ranks_.count(chunk, keys_.get() + first, keys_.get() + end);
  }
  void choose_rank() { ranks_.choose({blocks_.size() / 2}); }
  void gather_keys(int chunk) {
    const auto [first, end] = chunk_of(blocks_.size(), chunk);
    ranks_.gather(chunk, keys_.get() + first, keys_.get() + end);
  }
  double find() const { return divided(value_of(ranks_.find().front()), coefficients_); }

 private:
  const SpectrumTable& blocks_;
  int coefficients_ = 0;
  std::unique_ptr<Key[]> keys_;
  RankFinder ranks_;
};

// The effects on all blocks of a cut of noise of one variance.
class CutShapes {
 public:
  explicit CutShapes(const FlatBlocksQuestion& question)
      : question_(question), typical_(static_cast<std::size_t>(chunks_of(question.blocks->size()))) {
    if (question.white <= 0) return;
    effects_.variance_shares.reset(new float[question.blocks->size()]);
    effects_.kurtoses.reset(new float[question.blocks->size()]);
  }

  const CutEffects& effects() const { return effects_; }

  void set_variance(double variance) {
    noise_.emplace(std::sqrt(variance), question_.white);
    typical_share_ = share_of(noise_->at_mean(question_.white / 2));
  }
  void find_shapes(int chunk) {
    const auto [first, end] = chunk_of(question_.blocks->size(), chunk);
    const float* mean = question_.blocks->mean();
    Typical typical;
    for (std::size_t i = first; i < end; ++i) {
      const ClippedGaussian::Shape shape = noise_->at_mean(mean[i]);
      const float share = share_of(shape);
      effects_.variance_shares[i] = share;
      effects_.kurtoses[i] = static_cast<float>(shape.excess_kurtosis);
      typical.less += share < typical_share_ ? 1 : 0;
      typical.not_more += share <= typical_share_ ? 1 : 0;
    }
    typical_[static_cast<std::size_t>(chunk)] = typical;
  }
  // Leaves out blocks that the cut affected much more than others.
  void leave_out_most_cut() {
    const float* shares = effects_.variance_shares.get();
    const std::size_t count = question_.blocks->size();
    const std::size_t rank = (count - 1) * 9 / 10;
    Typical all;
    for (const Typical& chunk : typical_) {
      all.less += chunk.less;
      all.not_more += chunk.not_more;
    }
    const bool is_typical = all.less <= rank && rank < all.not_more;
    effects_.least_share =
        0.7F * (is_typical ? typical_share_ : value_of_rank({shares, shares + count}, rank));
  }

 private:
  // Blocks with less of their variance than those of middle gray, which are mostly the most frequent.
  struct Typical {
    std::size_t less = 0;
    std::size_t not_more = 0;
  };

  static float share_of(const ClippedGaussian::Shape& shape) {
    constexpr float least_share = 0.02F;  // far outside nothing is left to divide by
    return std::max(static_cast<float>(shape.variance_share), least_share);
  }

  FlatBlocksQuestion question_;
  std::optional<ClippedGaussian> noise_;
  float typical_share_ = 0;
  std::vector<Typical> typical_;  // of each chunk
  CutEffects effects_;
};

// The steps of a round. The first four are those of the first round, the next three those of noise that may
// have been cut off.
enum class Step {
  median_keys,
  median_rank,
  median_gather,
  median,
  cut_noise,
  cut_shapes,
  cut_limit,
  keys,
  ranks,
  gather,
  ends,
  groups,
  sums
};

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
  explicit Round(const FlatBlocksQuestion& question)
      : chunks(chunks_of(question.blocks->size())), shapes(question), groups(question, shapes.effects()) {
    if (question.white > 0) median.emplace(question);
  }
  int chunks;
  std::optional<MedianVariance> median;  // before the first round
  CutShapes shapes;
  FlatnessGroups groups;
};

VarianceSearch::VarianceSearch() = default;
VarianceSearch::~VarianceSearch() = default;
VarianceSearch::VarianceSearch(VarianceSearch&&) noexcept = default;
VarianceSearch& VarianceSearch::operator=(VarianceSearch&&) noexcept = default;

void VarianceSearch::start(const FlatBlocksQuestion& question) {
  question_ = question;
  done_ = question.blocks->size() == 0;
  if (!done_) round_ = std::make_unique<Round>(question_);
}

int VarianceSearch::steps() { return static_cast<int>(Step::sums) + 1; }

int VarianceSearch::tasks(int step) const {
  const bool first_of_cut = round_->median.has_value();
  const bool nothing_found = is_cut() && !first_of_cut && !(answer_.variance > 0);
  const int cut_tasks = is_cut() && !nothing_found ? 1 : 0;
  const int sets = nothing_found ? 0 : set_count;
  switch (static_cast<Step>(step)) {
    case Step::median_keys:
    case Step::median_gather:
      return first_of_cut ? round_->chunks : 0;
    case Step::median_rank:
    case Step::median:
      return first_of_cut ? 1 : 0;
    case Step::cut_noise:
    case Step::cut_limit:
      return cut_tasks;
    case Step::cut_shapes:
      return cut_tasks * round_->chunks;
    case Step::keys:
    case Step::gather:
    case Step::groups:
      return sets * round_->chunks;
    case Step::ranks:
    case Step::ends:
      return sets;
    case Step::sums:
      return sets * static_cast<int>(FlatnessGroups::most_groups);
  }
  return 0;
}

void VarianceSearch::run(int step, int task) {
  Round& round = *round_;
  const int set = task % set_count;
  const int of_set = task / set_count;
  switch (static_cast<Step>(step)) {
    case Step::median_keys:
      return round.median->find_keys(task);
    case Step::median_rank:
      return round.median->choose_rank();
    case Step::median_gather:
      return round.median->gather_keys(task);
    case Step::median:
      answer_.variance = round.median->find();
      return round.median.reset();
    case Step::cut_noise:
      return round.shapes.set_variance(answer_.variance);
    case Step::cut_shapes:
      return round.shapes.find_shapes(task);
    case Step::cut_limit:
      return round.shapes.leave_out_most_cut();
    case Step::keys:
      return round.groups.find_keys(set, of_set);
    case Step::ranks:
      return round.groups.choose_ranks(set);
    case Step::gather:
      return round.groups.gather_keys(set, of_set);
    case Step::ends:
      return round.groups.find_ends(set);
    case Step::groups:
      return round.groups.find_groups(set, of_set);
    case Step::sums:
      return round.groups.add_group(set, static_cast<std::size_t>(of_set));
  }
}

// The strength gives the cut's effect on each block, and that the strength. The iteration starts from above:
// too low a strength would take black areas, whose noise is cut in half, for calm ones and stay there.
void VarianceSearch::end_round() {
  constexpr int most_rounds = 16;
  constexpr double settled = 1e-3;
  done_ = is_cut() && !(answer_.variance > 0);
  if (done_) return;
  const FlatBlocksAnswer next = combined(round_->groups, *question_.transform);
  const bool is_settled = std::fabs(next.variance - answer_.variance) <= settled * answer_.variance;
  answer_ = next;
  done_ = !is_cut() || is_settled || ++rounds_ == most_rounds || !(answer_.variance > 0);
}

}  // namespace ungrain
