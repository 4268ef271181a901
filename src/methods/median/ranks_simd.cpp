// Counts below thresholds, a vector of thresholds at a time.
#include <algorithm>

#include "methods/median/ranks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "methods/median/ranks_simd.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h must come before what it includes again.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ungrain::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// A step function: zeros, then ones. A vector loaded at the right offset is what a rank adds to the counts of
// the thresholds.
struct StepFunction {
  static constexpr int reach = 512;
  std::uint8_t at[2 * reach];
  StepFunction() {
    for (int i = 0; i < 2 * reach; ++i) at[i] = i > reach ? 1 : 0;
  }
  // One where first + lane > rank.
  const std::uint8_t* of(int first, std::uint8_t rank) const { return at + reach + first - rank; }
};

// Adds the counts of a row to the tile's medians, and updates the fewest and the most.
void AddCounts(const std::uint16_t* counts, int width, std::uint16_t* median, int& fewest, int& most) {
  const hn::ScalableTag<std::uint16_t> d;
  const auto lanes = static_cast<int>(hn::Lanes(d));
  auto least = hn::Set(d, std::uint16_t{256});
  auto largest = hn::Zero(d);
  int x = 0;
  for (; x + lanes <= width; x += lanes) {
    const auto count = hn::LoadU(d, counts + x);
    hn::StoreU(hn::Add(hn::LoadU(d, median + x), count), d, median + x);
    least = hn::Min(least, count);
    largest = hn::Max(largest, count);
  }
  fewest = std::min<int>(fewest, hn::GetLane(hn::MinOfLanes(d, least)));
  most = std::max<int>(most, hn::GetLane(hn::MaxOfLanes(d, largest)));
  for (; x < width; ++x) {
    median[x] = static_cast<std::uint16_t>(median[x] + counts[x]);
    fewest = std::min<int>(fewest, counts[x]);
    most = std::max<int>(most, counts[x]);
  }
}

// Adds 8-bit changes to 16-bit sums; T says whether they are signed.
template <class T, class Wide, class V8>
HWY_INLINE void AddWide(Wide wide, V8 changes, hn::Vec<Wide>& low, hn::Vec<Wide>& high) {
  const hn::ScalableTag<T> d;
  const hn::Rebind<T, Wide> half;
  const auto both = hn::BitCast(d, changes);
  low = hn::Add(low, hn::PromoteTo(wide, hn::LowerHalf(half, both)));
#if HWY_TARGET == HWY_SCALAR  // a single lane has no halves
  (void)high;
#else
  high = hn::Add(high, hn::PromoteTo(wide, hn::UpperHalf(half, both)));
#endif
}

// A column counts its 2 radius + 1 ranks, at most 129, which fit 8 bits; up to 127 (radius 63) their
// differences fit too. Column counts slide down the tile; the window's 16-bit counts slide along the row over
// the columns.
template <bool WithBelow, bool DifferencesFit>
ReachedThresholds CountChunk(const RankTile& tile, int first) {
  const hn::ScalableTag<std::uint8_t> d;
  const hn::ScalableTag<std::int16_t> wide;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  const std::ptrdiff_t upper = lanes / 2;
  constexpr bool has_upper = HWY_TARGET != HWY_SCALAR;  // more than one lane
  const int side = 2 * tile.radius + 1;
  const int columns = tile.width + side - 1;
  static const StepFunction steps;

  // Lanes whose threshold is not from 1 to 255 are never reached.
  HWY_ALIGN std::int16_t limits[256];
  HWY_ALIGN std::int16_t sums[256] = {};
  HWY_ALIGN std::uint16_t counts[rank_tile_width];
  for (int lane = 0; lane < lanes; ++lane) {
    const bool valid = first + lane >= 1 && first + lane <= 255;
    limits[lane] = valid ? static_cast<std::int16_t>(side * side / 2 + 1) : std::int16_t{0};
  }
  const auto limits_low = hn::LoadU(wide, limits);
  const auto limits_high = hn::LoadU(wide, limits + upper);
  const int valid_lanes = std::min(255, first + static_cast<int>(lanes) - 1) - std::max(1, first) + 1;

  std::uint8_t* const column_counts = tile.room;
  for (int x = 0; x < columns; ++x) {
    auto count = hn::Zero(d);
    for (int y = 0; y < side - 1; ++y) {
      count = hn::Add(count, hn::LoadU(d, steps.of(first, tile.ranks[y * tile.ranks_stride + x])));
    }
    hn::StoreU(count, d, column_counts + x * lanes);
  }
  int fewest = 256;
  int most = 0;
  for (int y = 0; y < tile.height; ++y) {
    const std::uint8_t* entering = tile.ranks + (y + side - 1) * tile.ranks_stride;
    const std::uint8_t* leaving = tile.ranks + (y - 1) * tile.ranks_stride;
    for (int x = 0; x < columns; ++x) {
      std::uint8_t* at = column_counts + x * lanes;
      auto count = hn::Add(hn::LoadU(d, at), hn::LoadU(d, steps.of(first, entering[x])));
      if (y > 0) count = hn::Sub(count, hn::LoadU(d, steps.of(first, leaving[x])));
      hn::StoreU(count, d, at);
    }
    auto low = hn::Zero(wide);
    auto high = hn::Zero(wide);
    for (int x = 0; x < side - 1; ++x)
      AddWide<std::uint8_t>(wide, hn::LoadU(d, column_counts + x * lanes), low, high);
    for (int x = 0; x < tile.width; ++x) {
      const auto joining = hn::LoadU(d, column_counts + (x + side - 1) * lanes);
      if (x == 0) {
        AddWide<std::uint8_t>(wide, joining, low, high);
      } else if constexpr (DifferencesFit) {
        AddWide<std::int8_t>(wide, hn::Sub(joining, hn::LoadU(d, column_counts + (x - 1) * lanes)), low,
                             high);
      } else {
        auto gone_low = hn::Zero(wide);
        auto gone_high = gone_low;
        AddWide<std::uint8_t>(wide, joining, low, high);
        AddWide<std::uint8_t>(wide, hn::LoadU(d, column_counts + (x - 1) * lanes), gone_low, gone_high);
        low = hn::Sub(low, gone_low);
        high = hn::Sub(high, gone_high);
      }
      auto count = hn::CountTrue(wide, hn::Lt(low, limits_low));
      if constexpr (has_upper) count += hn::CountTrue(wide, hn::Lt(high, limits_high));
      counts[x] = static_cast<std::uint16_t>(count);
      if (WithBelow && count > 0) {
        if constexpr (has_upper) hn::StoreU(high, wide, sums + upper);
        hn::StoreU(low, wide, sums);
        std::uint16_t& below = tile.below[y * rank_tile_width + x];
        const int last = std::max(0, 1 - first) + static_cast<int>(count) - 1;
        below = std::max(below, static_cast<std::uint16_t>(sums[last]));
      }
    }
    AddCounts(counts, tile.width, tile.median + y * rank_tile_width, fewest, most);
  }
  return {.none = fewest == 0, .all = most == valid_lanes};
}

ReachedThresholds Count(const RankTile& tile, int first) {
  if (tile.radius <= 63) {
    return tile.below != nullptr ? CountChunk<true, true>(tile, first) : CountChunk<false, true>(tile, first);
  }
  return tile.below != nullptr ? CountChunk<true, false>(tile, first) : CountChunk<false, false>(tile, first);
}

int Thresholds() { return static_cast<int>(hn::Lanes(hn::ScalableTag<std::uint8_t>())); }

}  // namespace
}  // namespace ungrain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace ungrain {
namespace {

HWY_EXPORT(Count);
HWY_EXPORT(Thresholds);

}  // namespace

std::size_t RankTile::room_bytes(int radius) {
  return static_cast<std::size_t>(rank_tile_width + 2 * radius) * 256 + median_slack;
}

int thresholds_at_once() { return HWY_DYNAMIC_DISPATCH(Thresholds)(); }

ReachedThresholds count_thresholds(const RankTile& tile, int first) {
  return HWY_DYNAMIC_DISPATCH(Count)(tile, first);
}

}  // namespace ungrain

#endif
