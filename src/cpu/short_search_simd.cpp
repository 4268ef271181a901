// Three passes, as in patch_search_simd.cpp: sums down columns, sums along rows and weights, then the sums of
// each pixel.
#include "cpu/short_search_simd.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/short_search_simd.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h must come before what it includes again.
#include <hwy/highway.h>

#include "cpu/vector_targets.h"

#ifndef UNGRAIN_CPU_SHORT_SEARCH_SIMD_CPP_
#define UNGRAIN_CPU_SHORT_SEARCH_SIMD_CPP_
namespace ungrain {
namespace {

// Passes 1 and 2 run over this many rows before the next ones, so that sums stay in the first-level cache.
constexpr int short_block_rows = 16;

constexpr std::ptrdiff_t weights_of_short_shift =
    static_cast<std::ptrdiff_t>(short_weight_rows) * ShortColumns::weights;

constexpr int down_to(int step, int n) { return -((-n + step - 1) / step * step); }
constexpr int up_to(int step, int n) { return (n + step - 1) / step * step; }

}  // namespace
}  // namespace ungrain
#endif

HWY_BEFORE_NAMESPACE();
namespace ungrain::HWY_NAMESPACE {
namespace {

#if !UNGRAIN_HAS_VECTORS

bool HasShortSearch() { return false; }
void MakeShortPixels(const float*, int, float, std::int16_t*) {}
void SplitShortValues(const float*, int, float*, float*) {}
void AddShortShifts(const ShortKernel&, const ShortTile&, int, int, int) {}

#else

namespace hn = hwy::HWY_NAMESPACE;

using Shorts = hn::CappedTag<std::uint16_t, most_shorts>;
using Signed = hn::RebindToSigned<Shorts>;
using Words = hn::RepartitionToWide<Shorts>;
using Floats = hn::RebindToFloat<Words>;
using ShortVector = hn::Vec<Shorts>;
using FloatVector = hn::Vec<Floats>;
constexpr Shorts d;
constexpr Signed ds;
constexpr Words dw;
constexpr Floats df;
constexpr int most_lanes = static_cast<int>(hn::MaxLanes(d));

#undef UNGRAIN_A64_NEON
#define UNGRAIN_A64_NEON (HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64)

// Loops over vectors that must stay in registers.
#undef UNGRAIN_UNROLL
#if HWY_COMPILER_CLANG
#define UNGRAIN_UNROLL _Pragma("unroll")
#else
#define UNGRAIN_UNROLL _Pragma("GCC unroll 16")
#endif

HWY_INLINE int Lanes() { return static_cast<int>(hn::Lanes(d)); }

// Hides the value from GCC, which otherwise loads it again for each use.
template <class V>
HWY_INLINE V InRegister(V v) {
#if HWY_ARCH_X86 && HWY_COMPILER_GCC
  asm("" : "+x"(v.raw));
#endif
  return v;
}

bool HasShortSearch() { return true; }

void MakeShortPixels(const float* from, int count, float scale, std::int16_t* to) {
  const hn::Rebind<std::int16_t, Floats> half;
  const int n = static_cast<int>(hn::Lanes(df));
  // Differences matter, not values: 8 bits around 0 use the range of 16 bits best.
  const auto factor = hn::Set(df, scale);
  const auto middle = hn::Set(df, 128.0F);
  for (int x = 0; x < count; x += n) {
    const auto scaled = hn::Mul(hn::Sub(hn::LoadU(df, from + x), middle), factor);
    const auto bounded = hn::Min(hn::Max(scaled, hn::Set(df, -32767.0F)), hn::Set(df, 32767.0F));
    hn::StoreU(hn::DemoteTo(half, hn::NearestInt(bounded)), half, to + x);
  }
}

void SplitShortValues(const float* from, int count, float* even, float* odd) {
  const int n = static_cast<int>(hn::Lanes(df));
  for (int x = 0; 2 * x < count; x += n) {
    FloatVector first;
    FloatVector second;
    hn::LoadInterleaved2(df, from + 2 * x, first, second);
    hn::StoreU(first, df, even + x);
    hn::StoreU(second, df, odd + x);
  }
}

// ---- sums down columns

// Where sums are computed. Pointers are to the first row and column of the patches.
struct SumArea {
  const std::int16_t* still;
  const std::int16_t* moving;
  std::ptrdiff_t plane;
  std::uint16_t* sums;
  int columns;  // a multiple of the vectors' length
  int rows;     // one more is written where the number is odd
};

// Squared differences, row by row down one column of vectors.
template <int Channels>
class SquareColumn {
 public:
  SquareColumn(const SumArea& area, int x) : a_(area.still + x), b_(area.moving + x), plane_(area.plane) {}

  HWY_INLINE ShortVector Next() {
    auto sum = Square(0);
    for (int c = 1; c < Channels; ++c) sum = hn::SaturatedAdd(sum, Square(c));
    a_ += ShortColumns::pixels;
    b_ += ShortColumns::pixels;
    return sum;
  }

 private:
  // Rounded. -2^15 squared is 2^15 or one less.
  HWY_INLINE ShortVector Square(int c) const {
    const auto difference = hn::SaturatedSub(hn::LoadU(ds, a_ + c * plane_), hn::LoadU(ds, b_ + c * plane_));
    return hn::BitCast(d, hn::MulFixedPoint15(difference, difference));
  }

  const std::int16_t* a_;
  const std::int16_t* b_;
  std::ptrdiff_t plane_;
};

// Sums of 2 reach + 1 rows. Two rows share the sum of pairs of rows, and each pair is added once.
template <int Channels, int Reach>
void SumColumns(const SumArea& area) {
  static_assert(Reach <= 4);
  constexpr int pitch = ShortColumns::weights;
  const int n = Lanes();
  const int rows = area.rows;
  const int columns = area.columns;
  for (int x = 0; x < columns; x += n) {
    SquareColumn<Channels> squares(area, x);
    std::uint16_t* sums = area.sums + x;
    if constexpr (Reach == 0) {
      for (int y = 0; y < rows; ++y, sums += pitch) hn::Store(squares.Next(), d, sums);
    } else {
      // Holds every other square until its row is the first of a sum, and the pairs between.
      auto old0 = squares.Next();
      auto last = squares.Next();
      auto old1 = old0;
      auto old2 = old0;
      auto old3 = old0;
      auto pair0 = last;
      auto pair1 = last;
      auto pair2 = last;
      if (Reach > 1) {
        old1 = squares.Next();
        pair0 = hn::SaturatedAdd(last, old1);
        last = squares.Next();
      }
      if (Reach > 2) {
        old2 = squares.Next();
        pair1 = hn::SaturatedAdd(last, old2);
        last = squares.Next();
      }
      if (Reach > 3) {
        old3 = squares.Next();
        pair2 = hn::SaturatedAdd(last, old3);
        last = squares.Next();
      }
      for (int y = 0; y < rows; y += 2, sums += 2 * pitch) {
        const auto upper = squares.Next();
        const auto lower = squares.Next();
        const auto pair = hn::SaturatedAdd(last, upper);
        last = lower;
        auto shared = pair;
        if (Reach > 1) shared = hn::SaturatedAdd(shared, pair0);
        if (Reach > 2) shared = hn::SaturatedAdd(shared, pair1);
        if (Reach > 3) shared = hn::SaturatedAdd(shared, pair2);
        hn::Store(hn::SaturatedAdd(shared, old0), d, sums);
        hn::Store(hn::SaturatedAdd(shared, lower), d, sums + pitch);
        old0 = Reach == 1 ? upper : old1;
        old1 = Reach == 2 ? upper : old2;
        old2 = Reach == 3 ? upper : old3;
        old3 = upper;
        pair0 = Reach == 2 ? pair : pair1;
        pair1 = Reach == 3 ? pair : pair2;
        pair2 = pair;
      }
    }
  }
}

// ---- sums along rows, and weights

// Sums of 2 reach + 1 neighbours, one vector after the other. May be overwritten up to the last vector.
#if HWY_TARGET <= HWY_AVX3 || UNGRAIN_A64_NEON
// With AVX-512 a load that is not aligned crosses a cache line and counts twice. Pairs of neighbours are
// loaded, the others are moved there from the next vector; shared pairs save additions, too.
template <int Reach>
class RowSums {
 public:
  explicit RowSums(const std::uint16_t* sums) : next_(sums) { Advance(); }

  HWY_INLINE ShortVector Next() {
    const auto one = one1_;
    const auto pair = pair1_;
    Advance();
    if constexpr (Reach == 0) return one;
    auto sum = hn::SaturatedAdd(pair, Moved<Reach>(one1_, one));
    if constexpr (Reach > 1) sum = hn::SaturatedAdd(sum, Moved<1>(pair1_, pair));
    if constexpr (Reach > 2) sum = hn::SaturatedAdd(sum, Moved<2>(pair1_, pair));
    if constexpr (Reach > 3) sum = hn::SaturatedAdd(sum, Moved<3>(pair1_, pair));
    return sum;
  }

 private:
  // From column 2 Pairs on.
  template <int Pairs>
  static HWY_INLINE ShortVector Moved(ShortVector high, ShortVector low) {
#if UNGRAIN_A64_NEON
    if constexpr (2 * Pairs == most_lanes) return high;
    return ShortVector{vextq_u16(low.raw, high.raw, 2 * Pairs % most_lanes)};
#else
    return ShortVector{_mm512_alignr_epi32(high.raw, low.raw, Pairs)};
#endif
  }
  HWY_INLINE void Advance() {
    one1_ = hn::Load(d, next_);
    pair1_ = hn::SaturatedAdd(one1_, hn::LoadU(d, next_ + 1));
    next_ += most_lanes;
  }

  const std::uint16_t* next_;
  ShortVector one1_ = hn::Zero(d);
  ShortVector pair1_ = hn::Zero(d);
};
#else
template <int Reach>
class RowSums {
 public:
  explicit RowSums(const std::uint16_t* sums) : next_(sums) {}

  HWY_INLINE ShortVector Next() {
    auto sum = hn::Load(d, next_);
    for (int k = 1; k <= 2 * Reach; ++k) sum = hn::SaturatedAdd(sum, hn::LoadU(d, next_ + k));
    next_ += Lanes();
    return sum;
  }

 private:
  const std::uint16_t* next_;
};
#endif

// 2^-(distance / 256) as the upper half of a float, at least 2^-126. Relative error at most 0.0057, and 1 is
// exact.
//
// The bits of a float are its logarithm but for the mantissa, which bends below the line by 2^f - 1 - f, f
// from 0 to 1. Nearly that is a (f - 1/2)² - a / 4. `line` is the logarithm in units of 1/256, moved so that
// its lower byte, taken as signed, is f - 1/2.
HWY_INLINE ShortVector WeightOf(ShortVector distance) {
  constexpr int one = 127 * 256;
  constexpr int moved = 256 + 128;
  constexpr int bend = 89;  // 256 a
  const auto line = hn::SaturatedSub(hn::Set(d, one - moved), distance);
  const auto f = hn::BitCast(ds, hn::ShiftLeft<8>(line));
#if UNGRAIN_A64_NEON
  // The same bits: MulHigh widens there, but the upper half of twice a product is one instruction.
  const int16x8_t square =
      vreinterpretq_s16_u16(vshrq_n_u16(vreinterpretq_u16_s16(vqdmulhq_s16(f.raw, f.raw)), 1));
  const uint16x8_t twice = vreinterpretq_u16_s16(vqdmulhq_n_s16(square, bend));
  const ShortVector bent{vsraq_n_u16(vdupq_n_u16(moved - bend / 4), twice, 1)};
#else
  const auto square = hn::BitCast(d, hn::MulHigh(f, f));
  const auto bent = hn::Add(hn::MulHigh(square, hn::Set(d, bend)), hn::Set(d, moved - bend / 4));
#endif
  return hn::AverageRound(line, bent);
}

struct WeightArea {
  std::uint16_t* weights;  // overwrite the sums
  int columns;
  int rows;
  std::uint16_t noise;
  int finer;
};

template <int Reach, bool Finer>
void FindWeights(const WeightArea& area) {
  const int n = Lanes();
  const int rows = area.rows;
  const int columns = area.columns;
  const int finer = area.finer;
  const auto noise = hn::Set(d, area.noise);
  std::uint16_t* row = area.weights;
  for (int y = 0; y < rows; ++y, row += ShortColumns::weights) {
    RowSums<Reach> sums(row);
    for (int x = 0; x < columns; x += n) {
      auto distance = hn::SaturatedSub(sums.Next(), noise);
      if (Finer) distance = hn::ShiftRightSame(distance, finer);
      hn::Store(WeightOf(distance), d, row + x);
    }
  }
}

// ---- sums of pixels

// Rows of a tile's pixels; pointers are to the first pixel of the first row.
struct TakenRows {
  const ShortTile& tile;
  const std::uint16_t* forth;  // weights of p for p + shift
  const std::uint16_t* back;   // of p - shift for p
  int dx;
  int dy;
  int first;
  int end;
};

HWY_INLINE FloatVector OfEven(ShortVector weights) {
  return hn::BitCast(df, hn::ShiftLeft<16>(hn::BitCast(dw, weights)));
}
HWY_INLINE FloatVector OfOdd(ShortVector weights) {
  return hn::BitCast(df, hn::And(hn::BitCast(dw, weights), hn::Set(dw, 0xFFFF0000U)));
}

// The values of every other column of a row, from `column` on.
HWY_INLINE const float* EveryOther(const float* row, int column) {
  const int at = column + ShortColumns::values_before;
  return row - ShortColumns::values_before / 2 + at / 2 + at % 2 * (ShortColumns::values / 2);
}

// For even columns, shift s takes the values of every other column from dx + s on; for odd ones it takes
// those from dx + s + 1 on, which the next shift takes for even columns: each is loaded once. Loads of values
// cross cache lines and bound this pass.
template <int Shifts, bool Largest, bool Weights>
void TakeChannel(const TakenRows& rows, int y, int c) {
  const int n = Lanes();
  const int half = n / 2;
  const ShortTile& tile = rows.tile;
  const std::ptrdiff_t below_first = y - rows.first;
  const std::uint16_t* forth = rows.forth + below_first * ShortColumns::weights;
  const std::uint16_t* back = rows.back + below_first * ShortColumns::weights;
  const auto values = [&](int column, int row) {
    const std::ptrdiff_t to_row = static_cast<std::ptrdiff_t>(row) * ShortColumns::values;
    return EveryOther(tile.values + c * tile.values_plane + to_row, column);
  };
  const float* forth0 = values(rows.dx, y + rows.dy);
  const float* forth1 = values(rows.dx + 1, y + rows.dy);
  const float* back0 = values(-rows.dx, y - rows.dy);
  const float* back1 = values(-rows.dx + 1, y - rows.dy);
  const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(y) * short_tile_width;
  float* weight_sums = tile.sums + at;
  float* sums = tile.sums + (1 + c) * tile.sums_plane + at;
  std::uint16_t* largest = tile.largest + at;
  constexpr int odd = short_tile_width / 2;
  for (int x = 0, h = 0; x < tile.width; x += n, h += half) {
    auto even_weight = Weights ? hn::Load(df, weight_sums + h) : hn::Zero(df);
    auto odd_weight = Weights ? hn::Load(df, weight_sums + odd + h) : hn::Zero(df);
    auto even_sum = hn::Load(df, sums + h);
    auto odd_sum = hn::Load(df, sums + odd + h);
    auto most = Largest ? hn::Load(d, largest + x) : hn::Zero(d);
    auto even_forth = hn::LoadU(df, forth0 + h);
    auto odd_back = hn::LoadU(df, back1 + h);
    const auto take = [&](int s) HWY_ATTR {
      const auto w = InRegister(hn::Load(d, forth + s * weights_of_short_shift + x));
      const auto v = InRegister(hn::LoadU(d, back + s * (weights_of_short_shift - 1) + x));
      const auto odd_forth =
          InRegister(hn::LoadU(df, (s % 2 == 0 ? forth1 + s / 2 : forth0 + s / 2 + 1) + h));
      const auto even_back = InRegister(hn::LoadU(df, (s % 2 == 0 ? back0 - s / 2 : back1 - s / 2 - 1) + h));
      const auto even_w = OfEven(w);
      const auto odd_w = OfOdd(w);
      const auto even_v = OfEven(v);
      const auto odd_v = OfOdd(v);
      if (Weights) {
        even_weight = hn::Add(even_weight, hn::Add(even_w, even_v));
        odd_weight = hn::Add(odd_weight, hn::Add(odd_w, odd_v));
      }
      if (Largest) most = hn::Max(most, hn::Max(w, v));
      even_sum = hn::MulAdd(even_w, even_forth, even_sum);
      odd_sum = hn::MulAdd(odd_w, odd_forth, odd_sum);
      even_sum = hn::MulAdd(even_v, even_back, even_sum);
      odd_sum = hn::MulAdd(odd_v, odd_back, odd_sum);
      even_forth = odd_forth;
      odd_back = even_back;
    };
    UNGRAIN_UNROLL
    for (int s = 0; s < Shifts; ++s) take(s);
    if (Weights) {
      hn::Store(even_weight, df, weight_sums + h);
      hn::Store(odd_weight, df, weight_sums + odd + h);
    }
    hn::Store(even_sum, df, sums + h);
    hn::Store(odd_sum, df, sums + odd + h);
    if (Largest) hn::Store(most, d, largest + x);
  }
}

template <int Shifts, bool Largest>
void TakeRows(const TakenRows& rows, int channels) {
  for (int y = rows.first; y < rows.end; ++y) {
    TakeChannel<Shifts, Largest, true>(rows, y, 0);
    for (int c = 1; c < channels; ++c) TakeChannel<Shifts, false, false>(rows, y, c);
  }
}

// ---- all passes

using SumFunction = void (*)(const SumArea&);
using WeightFunction = void (*)(const WeightArea&);
using TakeFunction = void (*)(const TakenRows&, int);

template <int Channels>
SumFunction ChooseSums(int reach) {
  switch (reach) {
    case 0:
      return SumColumns<Channels, 0>;
    case 1:
      return SumColumns<Channels, 1>;
    case 2:
      return SumColumns<Channels, 2>;
    case 3:
      return SumColumns<Channels, 3>;
    default:
      return SumColumns<Channels, 4>;
  }
}

SumFunction ChooseSums(const ShortKernel& kernel) {
  return kernel.channels == 1 ? ChooseSums<1>(kernel.reach) : ChooseSums<3>(kernel.reach);
}

template <bool Finer>
WeightFunction ChooseWeights(int reach) {
  switch (reach) {
    case 0:
      return FindWeights<0, Finer>;
    case 1:
      return FindWeights<1, Finer>;
    case 2:
      return FindWeights<2, Finer>;
    case 3:
      return FindWeights<3, Finer>;
    default:
      return FindWeights<4, Finer>;
  }
}

template <int Shifts, bool Largest>
TakeFunction ChooseTake(int shifts) {
  if constexpr (Shifts > 1) {
    if (shifts < Shifts) return ChooseTake<Shifts - 1, Largest>(shifts);
  }
  return TakeRows<Shifts, Largest>;
}

void AddShortShifts(const ShortKernel& kernel, const ShortTile& tile, int dx, int dy, int count) {
  const int n = Lanes();
  const auto sum_columns = ChooseSums(kernel);
  const auto find_weights =
      kernel.finer > 0 ? ChooseWeights<true>(kernel.reach) : ChooseWeights<false>(kernel.reach);
  const auto take_rows = kernel.largest ? ChooseTake<short_shifts_at_once, true>(count)
                                        : ChooseTake<short_shifts_at_once, false>(count);
  // Weights of these columns are used, from the row -dy on, which is the memory's first.
  const int begin = down_to(n, -std::max(dx + count - 1, 0));
  const int end = up_to(n, tile.width + std::max(-dx, 0));
  const auto weights = [&](int x, int y) {
    return tile.weights + static_cast<std::ptrdiff_t>(y + dy) * ShortColumns::weights +
           ShortColumns::weights_before + x;
  };
  const auto pixels = [&](int x, int y) {
    return tile.pixels + static_cast<std::ptrdiff_t>(y) * ShortColumns::pixels + x;
  };
  for (int y = 0, row = -dy; y < tile.height;) {
    const int next = std::min(tile.height, y + short_block_rows);
    for (int s = 0; s < count; ++s) {
      std::uint16_t* const block = weights(begin, row) + s * weights_of_short_shift;
      sum_columns({.still = pixels(begin, row - kernel.reach),
                   .moving = pixels(begin + dx + s, row - kernel.reach + dy),
                   .plane = tile.pixels_plane,
                   .sums = block,
                   .columns = up_to(n, end - begin + 2 * kernel.reach),
                   .rows = next - row});
      find_weights({.weights = block,
                    .columns = end - begin,
                    .rows = next - row,
                    .noise = kernel.noise,
                    .finer = kernel.finer});
    }
    take_rows({.tile = tile,
               .forth = weights(0, y),
               .back = weights(-dx, y - dy),
               .dx = dx,
               .dy = dy,
               .first = y,
               .end = next},
              kernel.channels);
    y = next;
    row = next;
  }
}

#endif  // UNGRAIN_HAS_VECTORS

}  // namespace
}  // namespace ungrain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace ungrain {
namespace {

HWY_EXPORT(HasShortSearch);
HWY_EXPORT(MakeShortPixels);
HWY_EXPORT(SplitShortValues);
HWY_EXPORT(AddShortShifts);

}  // namespace

bool has_short_search() { return HWY_DYNAMIC_DISPATCH(HasShortSearch)(); }

void make_short_pixels(const float* from, int count, float scale, std::int16_t* to) {
  HWY_DYNAMIC_DISPATCH(MakeShortPixels)(from, count, scale, to);
}

void split_short_values(const float* from, int count, float* even, float* odd) {
  HWY_DYNAMIC_DISPATCH(SplitShortValues)(from, count, even, odd);
}

void add_short_shifts(const ShortKernel& kernel, const ShortTile& tile, int dx, int dy, int count) {
  HWY_DYNAMIC_DISPATCH(AddShortShifts)(kernel, tile, dx, dy, count);
}

}  // namespace ungrain

#endif
