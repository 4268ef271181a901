// Both passes over a row of a tile, vector by vector. Pass 1 computes each pixel's variance and leaves the
// squared differences in a core's cache, a vector for each tap. Pass 2 is a bilateral pass with a strength
// for each pixel and reads them from there.
#include "methods/adaptive_bilateral/cpu_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "methods/adaptive_bilateral/cpu_simd.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h must come before what it includes again.
#include <hwy/highway.h>

#include <utility>

#include "cpu/window_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ungrain::HWY_NAMESPACE {
namespace {

// The factor on squared scaled differences that follows from the pixel's own strength.
template <class D>
HWY_INLINE hn::Vec<D> OwnScale(D d, const OwnStrength& strength, hn::Vec<D> variance) {
  const auto epsilon = hn::Set(d, strength.epsilon);
  const auto raised = hn::MulAdd(variance, hn::Set(d, strength.to_variance), epsilon);
  const auto squared = hn::Mul(raised, hn::Set(d, strength.factor_squared));
  return hn::Min(hn::Div(hn::Set(d, strength.from_strength), squared), hn::Set(d, 1e10F));
}

// Buffers between the passes: a vector for each tap.
struct TapBuffers {
  float* squares;         // differences from the centre pixel, squared and summed over the channels
  float* squares_before;  // the same of the previous vector
  float* weights;         // of pass 1, if the variance is around the mean
};

template <int Channels, class D>
HWY_INLINE hn::Vec<D> SquaredDifference(D d, const float* pixel, std::ptrdiff_t plane, hn::Vec<D> c0,
                                        hn::Vec<D> c1, hn::Vec<D> c2, hn::Vec<D> c3) {
  const auto d0 = Difference<0, Channels>(d, pixel, plane, c0);
  const auto d1 = Difference<1, Channels>(d, pixel, plane, c1);
  const auto d2 = Difference<2, Channels>(d, pixel, plane, c2);
  const auto d3 = Difference<3, Channels>(d, pixel, plane, c3);
  auto square = hn::Mul(d0, d0);
  square = AddProduct<1, Channels>(d1, d1, square);
  square = AddProduct<2, Channels>(d2, d2, square);
  return AddProduct<3, Channels>(d3, d3, square);
}

// Pass 1, in scaled units. Around the mean it takes two passes: a variance as the small difference of two
// float sums would lose up to 1e-4 of the result.
template <int Channels, bool AroundMean, bool Bounded, class D>
HWY_INLINE hn::Vec<D> Variance(D d, const WindowRow& row, int x, TapBuffers tap_buffers) {
  using V = hn::Vec<D>;
  constexpr int means = AroundMean ? Channels : 0;
  const std::ptrdiff_t plane = row.kernel.plane;
  const std::size_t lanes = hn::Lanes(d);
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
  std::size_t at = 0;
  ForTaps(d, row, x, [&](const float* pixel, V exponent) HWY_ATTR {
    const auto square = SquaredDifference<Channels>(d, pixel, plane, c0, c1, c2, c3);
    const auto weight = WindowWeight<4, Bounded>(d, hn::Sub(exponent, square));
    hn::StoreU(square, d, tap_buffers.squares + at);
    if constexpr (AroundMean) hn::StoreU(weight, d, tap_buffers.weights + at);
    at += lanes;
    weights = hn::Add(weights, weight);
    squares = hn::MulAdd(weight, square, squares);
    sum0 = AddProduct<0, means>(weight, LoadChannel<0, means>(d, pixel, plane), sum0);
    sum1 = AddProduct<1, means>(weight, LoadChannel<1, means>(d, pixel, plane), sum1);
    sum2 = AddProduct<2, means>(weight, LoadChannel<2, means>(d, pixel, plane), sum2);
    sum3 = AddProduct<3, means>(weight, LoadChannel<3, means>(d, pixel, plane), sum3);
  });
  if constexpr (AroundMean) {
    const auto m0 = hn::Div(sum0, weights);
    const auto m1 = hn::Div(sum1, weights);
    const auto m2 = hn::Div(sum2, weights);
    const auto m3 = hn::Div(sum3, weights);
    squares = hn::Zero(d);
    at = 0;
    ForTaps(d, row, x, [&](const float* pixel, V) HWY_ATTR {
      const auto square = SquaredDifference<Channels>(d, pixel, plane, m0, m1, m2, m3);
      squares = hn::MulAdd(hn::LoadU(d, tap_buffers.weights + at), square, squares);
      at += lanes;
    });
  }
  return hn::Div(squares, weights);
}

template <int Channels, bool Bounded, class D>
HWY_INLINE void SecondPass(D d, const WindowRow& row, int x, const float* squares, hn::Vec<D> own) {
  const std::ptrdiff_t plane = row.kernel.plane;
  auto weights = hn::Zero(d);
  auto sum0 = hn::Zero(d);
  auto sum1 = hn::Zero(d);
  auto sum2 = hn::Zero(d);
  auto sum3 = hn::Zero(d);
  ForTaps(d, row, x, [&](const float* pixel, hn::Vec<D> exponent) HWY_ATTR {
    const auto weight = WindowWeight<4, Bounded>(d, hn::NegMulAdd(hn::LoadU(d, squares), own, exponent));
    squares += hn::Lanes(d);
    weights = hn::Add(weights, weight);
    sum0 = AddProduct<0, Channels>(weight, LoadChannel<0, Channels>(d, pixel, plane), sum0);
    sum1 = AddProduct<1, Channels>(weight, LoadChannel<1, Channels>(d, pixel, plane), sum1);
    sum2 = AddProduct<2, Channels>(weight, LoadChannel<2, Channels>(d, pixel, plane), sum2);
    sum3 = AddProduct<3, Channels>(weight, LoadChannel<3, Channels>(d, pixel, plane), sum3);
  });
  const auto per_weight = hn::Div(hn::Set(d, row.kernel.unscale), weights);
  const float* const centre = row.centre + x;
  // Turns sums of values into sums of differences from the centre.
  sum0 = SubtractProduct<0, Channels>(LoadChannel<0, Channels>(d, centre, plane), weights, sum0);
  sum1 = SubtractProduct<1, Channels>(LoadChannel<1, Channels>(d, centre, plane), weights, sum1);
  sum2 = SubtractProduct<2, Channels>(LoadChannel<2, Channels>(d, centre, plane), weights, sum2);
  sum3 = SubtractProduct<3, Channels>(LoadChannel<3, Channels>(d, centre, plane), weights, sum3);
  StoreChange<0, Channels>(d, sum0, per_weight, row, x);
  StoreChange<1, Channels>(d, sum1, per_weight, row, x);
  StoreChange<2, Channels>(d, sum2, per_weight, row, x);
  StoreChange<3, Channels>(d, sum3, per_weight, row, x);
}

// Pass 2 of a vector runs after pass 1 of the next vector, whose work hides the latency of its strengths: at
// radius 3 a row takes 15 % less time.
template <int Channels, bool AroundMean, bool Bounded>
void FilterRow(const WindowRow& row, const OwnStrength& strength, TapBuffers tap_buffers) {
  const hn::ScalableTag<float> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  auto own = hn::Zero(d);
  for (int x = 0; x < row.width + lanes; x += lanes) {
    const auto own_before = own;
    if (x < row.width) {
      own = OwnScale(d, strength, Variance<Channels, AroundMean, Bounded>(d, row, x, tap_buffers));
    }
    std::swap(tap_buffers.squares, tap_buffers.squares_before);
    if (x == 0) continue;
    const float* const squares = tap_buffers.squares;  // of the previous vector
    if (hn::AllTrue(d, hn::Lt(own_before, hn::Set(d, row.room)))) {
      SecondPass<Channels, false>(d, row, x - lanes, squares, own_before);
    } else {
      SecondPass<Channels, true>(d, row, x - lanes, squares, own_before);
    }
  }
}

template <int Channels, bool AroundMean>
void FilterTile(const WindowTile& kernel, const OwnStrength& strength, const StageCall& call,
                const Rect& tile, int first_channel, float* memory) {
  float* const behind = memory + kernel.scratch();
  const TapBuffers tap_buffers{.squares = behind,
                               .squares_before = behind + kernel.vector_for_each_tap(),
                               .weights = behind + 2 * kernel.vector_for_each_tap()};
  FilterWindowTile(kernel, call, tile, first_channel, memory, [&](const WindowRow& row) {
    row.room > 1 ? FilterRow<Channels, AroundMean, false>(row, strength, tap_buffers)
                 : FilterRow<Channels, AroundMean, true>(row, strength, tap_buffers);
  });
}

void AdaptiveBilateralTile(const WindowTile& kernel, const OwnStrength& strength, const StageCall& call,
                           const Rect& tile, int first_channel, float* memory) {
  constexpr decltype(&AdaptiveBilateralTile) around_pixel[] = {FilterTile<1, false>, FilterTile<2, false>,
                                                               FilterTile<3, false>, FilterTile<4, false>};
  constexpr decltype(&AdaptiveBilateralTile) around_mean[] = {FilterTile<1, true>, FilterTile<2, true>,
                                                              FilterTile<3, true>, FilterTile<4, true>};
  const auto* const by_channels = strength.around_mean ? around_mean : around_pixel;
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
