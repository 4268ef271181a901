// Both passes over a row of a tile, vector by vector. The first sums weights and squared differences from the
// centre pixel (and the differences themselves where the variance is around the mean); the second is a
// bilateral pass with a strength for each pixel. Sums are float: differences are from the centre, so that the
// variance is of the size of what is summed.
#include "methods/adaptive_bilateral/cpu_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "methods/adaptive_bilateral/cpu_simd.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h must come before what it includes again.
#include <hwy/highway.h>

#include "cpu/window_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ungrain::HWY_NAMESPACE {
namespace {

// What multiplies squared scaled differences for the pixel's own strength.
template <class D>
HWY_INLINE hn::Vec<D> OwnScale(D d, const OwnStrength& strength, hn::Vec<D> variance) {
  const auto epsilon = hn::Set(d, strength.epsilon);
  const auto raised = hn::MulAdd(hn::Max(variance, hn::Zero(d)), hn::Set(d, strength.to_variance), epsilon);
  const auto squared = hn::Mul(raised, hn::Set(d, strength.factor_squared));
  return hn::Min(hn::Div(hn::Set(d, strength.from_strength), squared), hn::Set(d, 1e10F));
}

template <int Channels, bool AroundMean, bool Bounded>
void FilterRow(const WindowRow& row, const OwnStrength& strength) {
  constexpr int means = AroundMean ? Channels : 0;
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const std::ptrdiff_t plane = row.kernel.plane;
  for (int x = 0; x < row.width; x += static_cast<int>(hn::Lanes(d))) {
    const auto c0 = LoadChannel<0, Channels>(d, row.centre + x, plane);
    const auto c1 = LoadChannel<1, Channels>(d, row.centre + x, plane);
    const auto c2 = LoadChannel<2, Channels>(d, row.centre + x, plane);
    const auto c3 = LoadChannel<3, Channels>(d, row.centre + x, plane);
    auto weights = hn::Zero(d);
    auto squares = hn::Zero(d);
    auto sum0 = hn::Zero(d);
    auto sum1 = hn::Zero(d);
    auto sum2 = hn::Zero(d);
    auto sum3 = hn::Zero(d);
    ForTaps(d, row, x, [&](const float* pixel, V exponent) HWY_ATTR {
      const auto d0 = Difference<0, Channels>(d, pixel, plane, c0);
      const auto d1 = Difference<1, Channels>(d, pixel, plane, c1);
      const auto d2 = Difference<2, Channels>(d, pixel, plane, c2);
      const auto d3 = Difference<3, Channels>(d, pixel, plane, c3);
      auto square = hn::Mul(d0, d0);
      square = AddProduct<1, Channels>(d1, d1, square);
      square = AddProduct<2, Channels>(d2, d2, square);
      square = AddProduct<3, Channels>(d3, d3, square);
      const auto weight = WindowWeight<4, Bounded>(d, hn::Sub(exponent, square));
      weights = hn::Add(weights, weight);
      squares = hn::MulAdd(weight, square, squares);
      sum0 = AddProduct<0, means>(weight, d0, sum0);
      sum1 = AddProduct<1, means>(weight, d1, sum1);
      sum2 = AddProduct<2, means>(weight, d2, sum2);
      sum3 = AddProduct<3, means>(weight, d3, sum3);
    });
    auto variance = hn::Div(squares, weights);
    if constexpr (AroundMean) {
      const auto per_weight = hn::Div(hn::Set(d, 1.0F), weights);
      const auto subtract_square = [&](V sum) HWY_ATTR {
        const auto mean = hn::Mul(sum, per_weight);
        variance = hn::NegMulAdd(mean, mean, variance);
      };
      subtract_square(sum0);
      subtract_square(sum1);
      subtract_square(sum2);
      subtract_square(sum3);
    }
    const auto own = OwnScale(d, strength, variance);

    weights = hn::Zero(d);
    sum0 = hn::Zero(d);
    sum1 = hn::Zero(d);
    sum2 = hn::Zero(d);
    sum3 = hn::Zero(d);
    ForTaps(d, row, x, [&](const float* pixel, V exponent) HWY_ATTR {
      const auto d0 = Difference<0, Channels>(d, pixel, plane, c0);
      const auto d1 = Difference<1, Channels>(d, pixel, plane, c1);
      const auto d2 = Difference<2, Channels>(d, pixel, plane, c2);
      const auto d3 = Difference<3, Channels>(d, pixel, plane, c3);
      auto square = hn::Mul(d0, d0);
      square = AddProduct<1, Channels>(d1, d1, square);
      square = AddProduct<2, Channels>(d2, d2, square);
      square = AddProduct<3, Channels>(d3, d3, square);
      // A pixel's own strength may be anything: low exponents are met here whatever the tile.
      const auto weight = WindowWeight<4, true>(d, hn::NegMulAdd(square, own, exponent));
      weights = hn::Add(weights, weight);
      sum0 = AddProduct<0, Channels>(weight, d0, sum0);
      sum1 = AddProduct<1, Channels>(weight, d1, sum1);
      sum2 = AddProduct<2, Channels>(weight, d2, sum2);
      sum3 = AddProduct<3, Channels>(weight, d3, sum3);
    });
    const auto per_weight = hn::Div(hn::Set(d, 1 / row.kernel.scale), weights);
    StoreChange<0, Channels>(d, sum0, per_weight, row, x);
    StoreChange<1, Channels>(d, sum1, per_weight, row, x);
    StoreChange<2, Channels>(d, sum2, per_weight, row, x);
    StoreChange<3, Channels>(d, sum3, per_weight, row, x);
  }
}

template <int Channels>
void FilterTile(const WindowTile& kernel, const OwnStrength& strength, const StageCall& call,
                const Rect& tile, int first_channel, float* memory) {
  FilterWindowTile(kernel, call, tile, first_channel, memory, [&](const WindowRow& row, bool bounded) {
    if (strength.around_mean) {
      bounded ? FilterRow<Channels, true, true>(row, strength)
              : FilterRow<Channels, true, false>(row, strength);
    } else {
      bounded ? FilterRow<Channels, false, true>(row, strength)
              : FilterRow<Channels, false, false>(row, strength);
    }
  });
}

void AdaptiveBilateralTile(const WindowTile& kernel, const OwnStrength& strength, const StageCall& call,
                           const Rect& tile, int first_channel, float* memory) {
  constexpr decltype(&AdaptiveBilateralTile) by_channels[] = {FilterTile<1>, FilterTile<2>, FilterTile<3>,
                                                              FilterTile<4>};
  by_channels[kernel.channels - 1](kernel, strength, call, tile, first_channel, memory);
}

}  // namespace
}  // namespace ungrain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace ungrain {

HWY_EXPORT(AdaptiveBilateralTile);

void adaptive_bilateral_tile(const WindowTile& kernel, const OwnStrength& strength, const StageCall& call,
                             const Rect& tile, int first_channel, float* memory) {
  HWY_DYNAMIC_DISPATCH(AdaptiveBilateralTile)(kernel, strength, call, tile, first_channel, memory);
}

}  // namespace ungrain

#endif
