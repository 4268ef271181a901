// Counting below thresholds, a vector of thresholds at a time.
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

// One where the rank is below the lane's threshold.
template <class D>
hn::Vec<D> Below(D d, hn::Vec<D> thresholds, std::uint8_t rank) {
  return hn::Min(hn::SaturatedSub(thresholds, hn::Set(d, rank)), hn::Set(d, std::uint8_t{1}));
}

// A column's counts are those of its 2 radius + 1 ranks, at most 129: 8 bits hold them. They slide down the
// tile; the window's counts, in 16 bits, slide along the row over the columns'.
ReachedThresholds Count(const RankTile& tile, int first) {
  const hn::ScalableTag<std::uint8_t> d;
  const hn::ScalableTag<std::int16_t> wide;
  const hn::Rebind<std::uint8_t, decltype(wide)> half;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  const std::ptrdiff_t upper = lanes / 2;
  constexpr bool has_upper = HWY_TARGET != HWY_SCALAR;  // more than one lane
  const int side = 2 * tile.radius + 1;
  const int columns = tile.width + side - 1;
  const auto thresholds = hn::Iota(d, static_cast<std::uint8_t>(first));

  // Lanes whose threshold is not from 1 to 255 are never reached.
  HWY_ALIGN std::int16_t limits[256];
  HWY_ALIGN std::int16_t counts[256] = {};
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
      count = hn::Add(count, Below(d, thresholds, tile.ranks[y * tile.ranks_stride + x]));
    }
    hn::StoreU(count, d, column_counts + x * lanes);
  }
  ReachedThresholds reached{.none = false, .all = false};
  for (int y = 0; y < tile.height; ++y) {
    const std::uint8_t* entering = tile.ranks + (y + side - 1) * tile.ranks_stride;
    const std::uint8_t* leaving = tile.ranks + (y - 1) * tile.ranks_stride;
    for (int x = 0; x < columns; ++x) {
      std::uint8_t* at = column_counts + x * lanes;
      auto count = hn::Add(hn::LoadU(d, at), Below(d, thresholds, entering[x]));
      if (y > 0) count = hn::Sub(count, Below(d, thresholds, leaving[x]));
      hn::StoreU(count, d, at);
    }
    const auto low_of = [&](int x) {
      return hn::PromoteTo(wide, hn::LoadU(half, column_counts + x * lanes));
    };
    const auto high_of = [&](int x) {
      return hn::PromoteTo(wide, hn::LoadU(half, column_counts + x * lanes + upper));
    };
    auto low = hn::Zero(wide);
    auto high = hn::Zero(wide);
    for (int x = 0; x < side - 1; ++x) {
      low = hn::Add(low, low_of(x));
      high = hn::Add(high, high_of(x));
    }
    std::uint16_t* median = tile.median + y * rank_tile_width;
    std::uint16_t* below = tile.below == nullptr ? nullptr : tile.below + y * rank_tile_width;
    int fewest = 256;
    int most = 0;
    for (int x = 0; x < tile.width; ++x) {
      low = hn::Add(low, low_of(x + side - 1));
      high = hn::Add(high, high_of(x + side - 1));
      auto count = static_cast<int>(hn::CountTrue(wide, hn::Lt(low, limits_low)));
      if (has_upper) count += static_cast<int>(hn::CountTrue(wide, hn::Lt(high, limits_high)));
      median[x] = static_cast<std::uint16_t>(median[x] + count);
      fewest = std::min(fewest, count);
      most = std::max(most, count);
      if (below != nullptr && count > 0) {
        if (has_upper) hn::StoreU(high, wide, counts + upper);
        hn::StoreU(low, wide, counts);
        const int last = std::max(0, 1 - first) + count - 1;
        below[x] = std::max(below[x], static_cast<std::uint16_t>(counts[last]));
      }
      low = hn::Sub(low, low_of(x));
      high = hn::Sub(high, high_of(x));
    }
    reached.none = reached.none || fewest == 0;
    reached.all = reached.all || most == valid_lanes;
  }
  return reached;
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
