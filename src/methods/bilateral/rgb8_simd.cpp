// The window's taps in pairs: a word of 32 bits holds two neighbouring pixels of a row in 16 bits each, a
// vector the words of neighbouring pixels. Both halves go through the same instructions, and products of
// weights and values are added in pairs, which is one word again: the sum of its pixel.
//
// For a vector of words (AVX-512: 16 pixels, 2 taps each): 9 instructions for the exponent (differences,
// squares, sums), 10 for 2^-x, 4 for the sums of weights and weighted values with dot products, 8 without: 23
// or 27 where the float version takes 30, some of them two operations long. Where each weight is found once,
// a tap takes half of the first 19, and the sums. Then loads, most of which cross a cache line, count as
// much.
#include "methods/bilateral/rgb8.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "methods/bilateral/rgb8_simd.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h must come before what it includes again.
#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "cpu/exp2-inl.h"
#include "cpu/simd.h"

// Products are added in the pairs that the layout needs on x86 only; SSE4 has no shifts by different counts.
#undef UNGRAIN_RGB8
#define UNGRAIN_RGB8 (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2)

HWY_BEFORE_NAMESPACE();
namespace ungrain::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

#if UNGRAIN_RGB8

using Words = hn::ScalableTag<std::int32_t>;
using Signed = hn::Repartition<std::int16_t, Words>;
using Unsigned = hn::Repartition<std::uint16_t, Words>;
using Floats = hn::Rebind<float, Words>;
using WordVec = hn::Vec<Words>;
using SignedVec = hn::Vec<Signed>;
using UnsignedVec = hn::Vec<Unsigned>;
using FloatVec = hn::Vec<Floats>;

HWY_INLINE SignedVec LoadPairs(const std::int32_t* words) {
  return hn::BitCast(Signed(), hn::LoadU(Words(), words));
}
HWY_INLINE WordVec FirstOfPairs(WordVec words) { return hn::ShiftRight<16>(hn::ShiftLeft<16>(words)); }

// Shifts by 16 and more give 0.
HWY_INLINE UnsignedVec ShiftRightEach(UnsignedVec v, UnsignedVec bits) {
#if HWY_TARGET == HWY_AVX2
  const __m256i low = _mm256_set1_epi32(0xffff);
  const __m256i first = _mm256_srlv_epi32(_mm256_and_si256(v.raw, low), _mm256_and_si256(bits.raw, low));
  const __m256i second = _mm256_srlv_epi32(v.raw, _mm256_srli_epi32(bits.raw, 16));
  return UnsignedVec{_mm256_blend_epi16(first, second, 0xaa)};
#else
  return hn::Shr(v, bits);
#endif
}

// Sums of products in words.
template <bool Dots>
struct PairSum {
  HWY_INLINE PairSum() {}  // NOLINT: else it is made outside of the functions that may use vectors

  WordVec sum;

  HWY_INLINE void Clear() { sum = hn::Zero(Words()); }
  HWY_INLINE void Add(UnsignedVec weights, SignedVec values) {
#if HWY_TARGET <= HWY_AVX3
    if constexpr (Dots) {
      // Highway 1.0 has no function for it.
      asm("vpdpwssd %2, %1, %0" : "+v"(sum.raw) : "v"(weights.raw), "v"(values.raw));
      return;
    }
#endif
    WordVec none = hn::Zero(Words());
    sum = hn::ReorderWidenMulAccumulate(Words(), hn::BitCast(Signed(), weights), values, sum, none);
  }
  HWY_INLINE void Add(UnsignedVec weights, const std::int32_t* values) {
#if HWY_TARGET <= HWY_AVX3
    if constexpr (Dots) {
      asm("vpdpwssd %2, %1, %0"
          : "+v"(sum.raw)
          : "v"(weights.raw), "m"(*reinterpret_cast<const __m512i_u*>(values)));
      return;
    }
#endif
    Add(weights, LoadPairs(values));
  }
  HWY_INLINE FloatVec Get() const { return hn::ConvertTo(Floats(), sum); }
};

// Negated exponents of the differences, in units of 2^-10; too large ones saturate.
template <ColourDistance Distance, int Doublings>
HWY_INLINE UnsignedVec RangeExponents(SignedVec d0, SignedVec d1, SignedVec d2) {
  const auto sum_of = [](SignedVec a, SignedVec b, SignedVec c) HWY_ATTR {
    const Unsigned du;
    return hn::SaturatedAdd(hn::SaturatedAdd(hn::BitCast(du, a), hn::BitCast(du, b)), hn::BitCast(du, c));
  };
  UnsignedVec exponent;
  if constexpr (Distance == ColourDistance::city_block) {
    const auto sum = sum_of(hn::Abs(d0), hn::Abs(d1), hn::Abs(d2));
    exponent = hn::MulHigh(sum, sum);
  } else {
    exponent = sum_of(hn::MulHigh(d0, d0), hn::MulHigh(d1, d1), hn::MulHigh(d2, d2));
  }
  for (int i = 0; i < Doublings; ++i) exponent = hn::SaturatedAdd(exponent, exponent);
  return exponent;
}

// 2^-x in units of 2^-15, rounded to nearest. The polynomial's relative error is 1e-4.
HWY_INLINE UnsignedVec WeightsOf(UnsignedVec exponents) {
  const Unsigned du;
  const auto whole = hn::ShiftRight<10>(exponents);
  const auto f = hn::ShiftLeft<6>(exponents);
  auto p = hn::Sub(hn::Set(du, 15110), hn::MulHigh(f, hn::Set(du, 2565)));
  p = hn::Sub(hn::Set(du, 45313), hn::MulHigh(f, p));
  p = hn::Sub(hn::Set(du, 65534), hn::MulHigh(f, p));
  return hn::AverageRound(ShiftRightEach(p, whole), hn::Zero(du));
}

// Scaled values of pixels that are compared with others, in both halves of their words.
struct Centre {
  HWY_INLINE Centre() {}  // NOLINT: as above
  SignedVec c0, c1, c2;
};

HWY_INLINE Centre LoadCentre(const std::int32_t* scaled, std::ptrdiff_t plane) {
  const Words dw;
  const auto load = [&](int c) HWY_ATTR {
    const auto word = hn::LoadU(dw, scaled + c * plane);
    const auto low = hn::And(word, hn::Set(dw, 0xffff));
    return hn::BitCast(Signed(), hn::Or(low, hn::ShiftLeft<16>(word)));
  };
  Centre centre;
  centre.c0 = load(0);
  centre.c1 = load(1);
  centre.c2 = load(2);
  return centre;
}

template <ColourDistance Distance, int Doublings>
HWY_INLINE UnsignedVec WeightsOfPair(const Centre& centre, const std::int32_t* tap, std::ptrdiff_t plane,
                                     std::uint32_t distance) {
  const auto d0 = hn::SaturatedSub(LoadPairs(tap), centre.c0);
  const auto d1 = hn::SaturatedSub(LoadPairs(tap + plane), centre.c1);
  const auto d2 = hn::SaturatedSub(LoadPairs(tap + 2 * plane), centre.c2);
  const auto of_distance = hn::BitCast(Unsigned(), hn::Set(Words(), static_cast<std::int32_t>(distance)));
  return WeightsOf(hn::SaturatedAdd(RangeExponents<Distance, Doublings>(d0, d1, d2), of_distance));
}

struct Means {
  HWY_INLINE Means() {}  // NOLINT: as above
  FloatVec weights, m0, m1, m2;
};

// Sums to means.
HWY_INLINE void Divide(Means& sums) {
  const auto per_weight = hn::Div(hn::Set(Floats(), 1.0F), sums.weights);
  sums.m0 = hn::Mul(sums.m0, per_weight);
  sums.m1 = hn::Mul(sums.m1, per_weight);
  sums.m2 = hn::Mul(sums.m2, per_weight);
}

// What a vector of pixels adds up.
template <bool Dots>
struct PixelSums {
  HWY_INLINE PixelSums() {}  // NOLINT: as above
  PairSum<Dots> weights, sum0, sum1, sum2;

  HWY_INLINE void Clear() {
    weights.Clear();
    sum0.Clear();
    sum1.Clear();
    sum2.Clear();
  }
  HWY_INLINE void Add(UnsignedVec w, const std::int32_t* values, std::ptrdiff_t plane) {
    weights.Add(w, hn::Set(Signed(), 1));
    sum0.Add(w, values);
    sum1.Add(w, values + plane);
    sum2.Add(w, values + 2 * plane);
  }
  HWY_INLINE Means Get() const {
    Means sums;
    sums.weights = weights.Get();
    sums.m0 = sum0.Get();
    sums.m1 = sum1.Get();
    sums.m2 = sum2.Get();
    return sums;
  }
};

// Means less 128 of the vector of pixels at these words, in integers.
template <ColourDistance Distance, int Doublings, bool Dots>
HWY_INLINE Means IntegerMeans(const Rgb8Window& window, const std::int32_t* scaled,
                              const std::int32_t* values) {
  const Floats df;
  const std::ptrdiff_t plane = window.plane;
  const Centre centre = LoadCentre(scaled, plane);
  Means total;
  total.weights = total.m0 = total.m1 = total.m2 = hn::Zero(df);
  constexpr std::ptrdiff_t most_pairs = 240;  // 2 * 2^15 * 128 times this is still less than 2^31
  const TapPair* pair = window.pairs.data();
  const TapPair* const end = pair + window.pairs.size();
  while (pair != end) {
    const TapPair* const until = end - pair > most_pairs ? pair + most_pairs : end;
    PixelSums<Dots> sums;
    sums.Clear();
    for (; pair != until; ++pair) {
      const auto w =
          WeightsOfPair<Distance, Doublings>(centre, scaled + pair->offset, plane, pair->exponents);
      sums.Add(w, values + pair->offset, plane);
    }
    total.weights = hn::Add(total.weights, sums.weights.Get());
    total.m0 = hn::Add(total.m0, sums.sum0.Get());
    total.m1 = hn::Add(total.m1, sums.sum1.Get());
    total.m2 = hn::Add(total.m2, sums.sum2.Get());
  }
  Divide(total);
  return total;
}

// The same in floats, for pixels that are unlike all around them.
template <ColourDistance Distance>
HWY_NOINLINE void FloatMeans(const Rgb8Window& window, const std::int32_t* values, Means& means) {
  const Words dw;
  const Floats df;
  const std::ptrdiff_t plane = window.plane;
  const auto value = [&](const std::int32_t* word)
                         HWY_ATTR { return hn::ConvertTo(df, FirstOfPairs(hn::LoadU(dw, word))); };
  const auto c0 = value(values);
  const auto c1 = value(values + plane);
  const auto c2 = value(values + 2 * plane);
  const auto factor = hn::Set(df, window.range_factor);
  auto weights = hn::Zero(df);
  auto sum0 = hn::Zero(df);
  auto sum1 = hn::Zero(df);
  auto sum2 = hn::Zero(df);
  for (const FloatTap& tap : window.taps) {
    const std::int32_t* const word = values + tap.offset;
    const auto d0 = hn::Sub(value(word), c0);
    const auto d1 = hn::Sub(value(word + plane), c1);
    const auto d2 = hn::Sub(value(word + 2 * plane), c2);
    FloatVec squares;
    if constexpr (Distance == ColourDistance::city_block) {
      const auto sum = hn::Add(hn::Add(hn::Abs(d0), hn::Abs(d1)), hn::Abs(d2));
      squares = hn::Mul(sum, sum);
    } else {
      squares = hn::MulAdd(d2, d2, hn::MulAdd(d1, d1, hn::Mul(d0, d0)));
    }
    const auto w = Exp2Bounded<4>(df, hn::MulAdd(squares, factor, hn::Set(df, tap.log2_weight)));
    weights = hn::Add(weights, w);
    sum0 = hn::MulAdd(w, d0, sum0);
    sum1 = hn::MulAdd(w, d1, sum1);
    sum2 = hn::MulAdd(w, d2, sum2);
  }
  const auto per_weight = hn::Div(hn::Set(df, 1.0F), weights);
  const auto few = hn::Lt(means.weights, hn::Set(df, window.least_weights));
  means.m0 = hn::IfThenElse(few, hn::MulAdd(sum0, per_weight, c0), means.m0);
  means.m1 = hn::IfThenElse(few, hn::MulAdd(sum1, per_weight, c1), means.m1);
  means.m2 = hn::IfThenElse(few, hn::MulAdd(sum2, per_weight, c2), means.m2);
}

template <ColourDistance Distance>
HWY_INLINE void StoreMeans(const Rgb8Window& window, const std::int32_t* values, Means means, float* out) {
  const Floats df;
  const auto few = hn::Lt(means.weights, hn::Set(df, window.least_weights));
  if (!hn::AllFalse(df, few)) FloatMeans<Distance>(window, values, means);
  const auto middle = hn::Set(df, 128.0F);
  hn::StoreU(hn::Add(means.m0, middle), df, out);
  hn::StoreU(hn::Add(means.m1, middle), df, out + Rgb8Window::tile_width);
  hn::StoreU(hn::Add(means.m2, middle), df, out + 2 * Rgb8Window::tile_width);
}

constexpr int lanes = static_cast<int>(hn::MaxLanes(Words()));

template <ColourDistance Distance, int Doublings, bool Dots>
void FilterRow(const Rgb8Window& window, const std::int32_t* scaled, const std::int32_t* values, int width,
               float* out) {
  for (int x = 0; x < width; x += lanes) {
    const Means means = IntegerMeans<Distance, Doublings, Dots>(window, scaled + x, values + x);
    StoreMeans<Distance>(window, values + x, means, out + x);
  }
}

// The weights of pairs with the pixels from x on; `kept` is where those of the row's first pixel and the
// first of all pairs go.
template <ColourDistance Distance, int Doublings>
HWY_INLINE void KeepWeights(const Rgb8Window& window, const std::int32_t* scaled, int x, const HalfPair* pair,
                            const HalfPair* end, bool (*wanted)(const HalfPair&), std::int32_t* kept) {
  const Centre centre = LoadCentre(scaled + x, window.plane);
  const auto pitch = static_cast<std::ptrdiff_t>(window.weights_pitch());
  kept += (pair - window.half.data()) * pitch + x;
  for (; pair != end; ++pair, kept += pitch) {
    if (!wanted(*pair)) continue;
    const auto w =
        WeightsOfPair<Distance, Doublings>(centre, scaled + x + pair->offset, window.plane, pair->exponents);
    hn::StoreU(hn::BitCast(Words(), w), Words(), kept);
  }
}

// Where the weights of a pair lie for the first pixel of a row: with the taps of the lower half, and with
// those of the upper half, which begin in the middle of a word.
struct WeightPlaces {
  std::int32_t* below;
  const std::int16_t* above;
  std::ptrdiff_t offset;
  std::uint32_t exponents;
};

template <ColourDistance Distance, int Doublings, bool Dots>
void FilterRowOnce(const Rgb8Window& window, const std::int32_t* scaled, const std::int32_t* values,
                   int width, int row, int dy, std::int32_t* weights, float* out) {
  const bool means_too = out != nullptr;
  const auto all = [](const HalfPair&) { return true; };
  const HalfPair* const begin = window.half.data();
  const HalfPair* const end = begin + window.half.size();
  const auto first_at = [&](int rows) {
    return std::find_if(begin, end, [&](const HalfPair& pair) { return pair.dy >= rows; });
  };
  const HalfPair* const first = first_at(dy);
  const HalfPair* const below = first_at(1);  // pairs before it lie in the row itself
  const int kept_rows = window.rows_of_weights();
  const auto kept_row = [&](int kept) {
    return weights + static_cast<std::size_t>(kept) * window.weights_row() + window.left;
  };
  std::int32_t* const own_row = kept_row(row);
  const int until = (width + lanes - 1) / lanes * lanes;
  // Pixels beside the tile: of a pair only those on one side are used.
  for (int x = -(window.radius + lanes) / lanes * lanes; x < 0; x += lanes) {
    KeepWeights<Distance, Doublings>(
        window, scaled, x, first, end, [](const HalfPair& pair) { return pair.dx >= 0; }, own_row);
  }
  for (int x = until; x < until + window.radius; x += lanes) {
    KeepWeights<Distance, Doublings>(
        window, scaled, x, first, end, [](const HalfPair& pair) { return pair.dx < 0; }, own_row);
  }
  // Weights that the row itself reads again are written well before.
  const HalfPair* const before = means_too ? below : end;
  for (int x = 0; first < before && x < until; x += lanes) {
    KeepWeights<Distance, Doublings>(window, scaled, x, first, before, all, own_row);
  }
  if (!means_too) return;

  WeightPlaces places[Rgb8Window::most_half_pairs];
  WeightPlaces* const places_below = places + (below - begin);
  WeightPlaces* const places_end = places + (end - begin);
  for (std::ptrdiff_t i = 0; i < end - begin; ++i) {
    const HalfPair& pair = begin[i];
    const std::ptrdiff_t line = i * static_cast<std::ptrdiff_t>(window.weights_pitch());
    const std::int32_t* const above = kept_row((row - pair.dy + kept_rows) % kept_rows) + line - pair.dx;
    places[i] = {own_row + line, reinterpret_cast<const std::int16_t*>(above) - 1, pair.offset,
                 pair.exponents};
  }
  const std::ptrdiff_t plane = window.plane;
  const auto own = hn::BitCast(Unsigned(), hn::Set(Words(), 32767));  // the first half's; the second's is 0
  for (int x = 0; x < width; x += lanes) {
    const std::int32_t* const value = values + x;
    const Centre centre = LoadCentre(scaled + x, plane);
    PixelSums<Dots> sums;
    sums.Clear();
    sums.Add(own, value, plane);
    for (const WeightPlaces* pair = places; pair != places_below; ++pair) {
      sums.Add(hn::BitCast(Unsigned(), hn::LoadU(Words(), pair->below + x)), value + pair->offset, plane);
      const auto above = hn::LoadU(Signed(), pair->above + 2 * x);
      sums.Add(hn::BitCast(Unsigned(), above), value - pair->offset - 1, plane);
    }
    for (const WeightPlaces* pair = places_below; pair != places_end; ++pair) {
      const auto w =
          WeightsOfPair<Distance, Doublings>(centre, scaled + x + pair->offset, plane, pair->exponents);
      hn::StoreU(hn::BitCast(Words(), w), Words(), pair->below + x);
      sums.Add(w, value + pair->offset, plane);
      const auto above = hn::LoadU(Signed(), pair->above + 2 * x);
      sums.Add(hn::BitCast(Unsigned(), above), value - pair->offset - 1, plane);
    }
    Means means = sums.Get();
    Divide(means);
    StoreMeans<Distance>(window, value, means, out + x);
  }
}

// Calls visit with the distance, the doublings and whether there are dot products, as constants.
template <class Visit>
void WithConstants(const Rgb8Window& window, Visit visit) {
  const auto with_dots = [&](auto distance, auto doublings) {
#if HWY_TARGET <= HWY_AVX3
    if (byte_dots_in_use(HWY_TARGET)) return visit(distance, doublings, std::true_type());
#endif
    visit(distance, doublings, std::false_type());
  };
  const auto with_doublings = [&](auto distance) {
    if (window.doublings == 0) return with_dots(distance, std::integral_constant<int, 0>());
    if (window.doublings == 1) return with_dots(distance, std::integral_constant<int, 1>());
    with_dots(distance, std::integral_constant<int, 2>());
  };
  if (window.distance == ColourDistance::city_block) {
    with_doublings(std::integral_constant<ColourDistance, ColourDistance::city_block>());
  } else {
    with_doublings(std::integral_constant<ColourDistance, ColourDistance::euclidean>());
  }
}

bool Rgb8IsThere() { return true; }

void Rgb8Row(const Rgb8Window& window, const std::int32_t* scaled, const std::int32_t* values, int width,
             float* means) {
  WithConstants(window, [&](auto distance, auto doublings, auto dots) {
    FilterRow<distance(), doublings(), dots()>(window, scaled, values, width, means);
  });
}

void Rgb8RowOnce(const Rgb8Window& window, const std::int32_t* scaled, const std::int32_t* values, int width,
                 int row, int dy, std::int32_t* weights, float* means) {
  WithConstants(window, [&](auto distance, auto doublings, auto dots) {
    FilterRowOnce<distance(), doublings(), dots()>(window, scaled, values, width, row, dy, weights, means);
  });
}

void Rgb8Words(const Rgb8Window& window, const std::uint8_t* bytes, int columns, std::int32_t* scaled,
               std::int32_t* values) {
  const Words dw;
  const Signed ds;
  const hn::Rebind<std::uint8_t, Words> db;
  const auto scale = hn::Set(ds, static_cast<std::int16_t>(window.scale));
  for (int x = 0; x < columns; x += static_cast<int>(hn::Lanes(dw))) {
    const auto first = hn::PromoteTo(dw, hn::LoadU(db, bytes + x));
    const auto second = hn::PromoteTo(dw, hn::LoadU(db, bytes + x + 1));
    const auto pairs = hn::BitCast(ds, hn::Or(first, hn::ShiftLeft<16>(second)));
    const auto v = hn::Sub(pairs, hn::Set(ds, 128));
    hn::StoreU(hn::BitCast(dw, v), dw, values + x);
    hn::StoreU(hn::BitCast(dw, hn::MulFixedPoint15(hn::ShiftLeft<8>(v), scale)), dw, scaled + x);
  }
}

#else

bool Rgb8IsThere() { return false; }
void Rgb8Row(const Rgb8Window&, const std::int32_t*, const std::int32_t*, int, float*) {}
void Rgb8RowOnce(const Rgb8Window&, const std::int32_t*, const std::int32_t*, int, int, int, std::int32_t*,
                 float*) {}
void Rgb8Words(const Rgb8Window&, const std::uint8_t*, int, std::int32_t*, std::int32_t*) {}

#endif

}  // namespace
}  // namespace ungrain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace ungrain {

HWY_EXPORT(Rgb8IsThere);
HWY_EXPORT(Rgb8Row);
HWY_EXPORT(Rgb8RowOnce);
HWY_EXPORT(Rgb8Words);

bool rgb8_is_there() { return HWY_DYNAMIC_DISPATCH(Rgb8IsThere)(); }
void rgb8_words(const Rgb8Window& window, const std::uint8_t* bytes, int columns, std::int32_t* scaled,
                std::int32_t* values) {
  HWY_DYNAMIC_DISPATCH(Rgb8Words)(window, bytes, columns, scaled, values);
}
void rgb8_row(const Rgb8Window& window, const std::int32_t* scaled, const std::int32_t* values, int width,
              float* means) {
  HWY_DYNAMIC_DISPATCH(Rgb8Row)(window, scaled, values, width, means);
}
void rgb8_row_once(const Rgb8Window& window, const std::int32_t* scaled, const std::int32_t* values,
                   int width, int row, int dy, std::int32_t* weights, float* means) {
  HWY_DYNAMIC_DISPATCH(Rgb8RowOnce)(window, scaled, values, width, row, dy, weights, means);
}

}  // namespace ungrain

#endif
