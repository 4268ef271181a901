// Defined by core/colour.h. Powers are 2^(exponent * log2) in float; sums over the channels are double,
// because a dark channel beside bright ones is the small difference of large numbers.
#include "cpu/lab_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/lab_simd.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h must come before what it includes again.
#include <hwy/highway.h>

#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/colour.h"
#include "cpu/exp2-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ungrain::HWY_NAMESPACE {
namespace {

template <class D>
HWY_INLINE hn::Vec<D> Constant(D d, double value) {
  return hn::Set(d, static_cast<hn::TFromD<D>>(value));
}

// log2(x) for normal x > 0; error below 2e-7 + 1e-7 |log2(x)|.
template <class D>
HWY_INLINE hn::Vec<D> Log2(D d, hn::Vec<D> x) {
  const hn::RebindToSigned<D> di;
  // x = 2^whole * m, m from sqrt(1/2) to sqrt(2).
  constexpr auto root = std::bit_cast<std::int32_t>(0.70710678F);
  const auto bits = hn::BitCast(di, x);
  const auto whole = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, root)));
  const auto m = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(whole)));
  // log2(m) = 2 / ln(2) artanh(s), s = (m - 1) / (m + 1).
  const auto one = hn::Set(d, 1.0F);
  const auto s = hn::Div(hn::Sub(m, one), hn::Add(m, one));
  const auto ss = hn::Mul(s, s);
  auto series = hn::Set(d, 0.320598898F);  // 2 / ln(2) / 9
  series = hn::MulAdd(series, ss, hn::Set(d, 0.412198583F));
  series = hn::MulAdd(series, ss, hn::Set(d, 0.577078016F));
  series = hn::MulAdd(series, ss, hn::Set(d, 0.961796694F));
  series = hn::MulAdd(series, ss, hn::Set(d, 2.88539008F));
  return hn::MulAdd(series, s, hn::ConvertTo(d, whole));
}

// x^exponent for x > least; least^exponent below.
template <class D>
HWY_INLINE hn::Vec<D> PowerFrom(D d, double least, hn::Vec<D> x, double exponent) {
  return Exp2InRange<5>(d, hn::Mul(Log2(d, hn::Max(x, Constant(d, least))), Constant(d, exponent)));
}

template <class D>
HWY_INLINE hn::Vec<D> ToLinear(D d, hn::Vec<D> v) {
  constexpr double knee = 0.04045;
  const auto shifted = hn::MulAdd(v, Constant(d, 1 / 1.055), Constant(d, 0.055 / 1.055));
  return hn::IfThenElse(hn::Gt(v, Constant(d, knee)), PowerFrom(d, (knee + 0.055) / 1.055, shifted, 2.4),
                        hn::Mul(v, Constant(d, 1 / 12.92)));
}
template <class D>
HWY_INLINE hn::Vec<D> FromLinear(D d, hn::Vec<D> v) {
  constexpr double knee = 0.04045 / 12.92;
  const auto power = hn::MulAdd(PowerFrom(d, knee, v, 1 / 2.4), Constant(d, 1.055), Constant(d, -0.055));
  return hn::IfThenElse(hn::Gt(v, Constant(d, knee)), power, hn::Mul(v, Constant(d, 12.92)));
}

// In double from here on.
template <class D>
HWY_INLINE hn::Vec<D> LabCurve(D d, hn::Vec<D> t) {
  constexpr double knee = colour::knee();
  const hn::Rebind<float, D> df;
  const auto straight = hn::MulAdd(t, Constant(d, 1 / (3 * knee * knee)), Constant(d, 4.0 / 29));
  // One Newton step takes the root from a float's precision nearly to a double's.
  const auto root = hn::PromoteTo(d, PowerFrom(df, knee * knee * knee, hn::DemoteTo(df, t), 1.0 / 3));
  const auto square = hn::Mul(root, root);
  const auto step = hn::Div(hn::NegMulAdd(square, root, t), hn::Mul(square, Constant(d, 3)));
  return hn::IfThenElse(hn::Gt(t, Constant(d, knee * knee * knee)), hn::Add(root, step), straight);
}
template <class D>
HWY_INLINE hn::Vec<D> LabCurveInverse(D d, hn::Vec<D> f) {
  constexpr double knee = colour::knee();
  const auto straight = hn::Mul(Constant(d, 3 * knee * knee), hn::Sub(f, Constant(d, 4.0 / 29)));
  return hn::IfThenElse(hn::Gt(f, Constant(d, knee)), hn::Mul(f, hn::Mul(f, f)), straight);
}

template <class D>
HWY_INLINE hn::Vec<D> Product(D d, const Triple& row, hn::Vec<D> x, hn::Vec<D> y, hn::Vec<D> z) {
  return hn::MulAdd(x, Constant(d, row[0]),
                    hn::MulAdd(y, Constant(d, row[1]), hn::Mul(z, Constant(d, row[2]))));
}

// Calls convert(d, from, to) for vectors of pixels; from[c] and to[c] point to channel c.
template <class Convert>
void ForPixels(const float* const (&in)[3], float* const (&out)[3], int pixels, Convert convert) {
  const hn::ScalableTag<double> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  int x = 0;
  for (; x + lanes <= pixels; x += lanes) {
    const float* const from[3] = {in[0] + x, in[1] + x, in[2] + x};
    float* const to[3] = {out[0] + x, out[1] + x, out[2] + x};
    convert(d, from, to);
  }
  const int rest = pixels - x;
  if (rest <= 0) return;
  constexpr std::size_t longest = hn::MaxLanes(hn::ScalableTag<double>());
  float part[3][longest] = {};
  const auto for_rest = [&](auto copy) {
    for (int c = 0; c < 3; ++c) {
      for (int i = 0; i < rest; ++i) copy(c, i);
    }
  };
  for_rest([&](int c, int i) { part[c][i] = in[c][x + i]; });
  const float* const from[3] = {part[0], part[1], part[2]};
  float* const to[3] = {part[0], part[1], part[2]};
  convert(d, from, to);
  for_rest([&](int c, int i) { out[c][x + i] = part[c][i]; });
}

void LabFromRgb(const float* const (&rgb)[3], float* const (&lab)[3], int pixels, double white) {
  ForPixels(rgb, lab, pixels, [white](auto d, const float* const(&from)[3], float* const(&to)[3]) HWY_ATTR {
    constexpr colour::Matrix m = colour::to_xyz();
    constexpr Triple w = colour::white_point();
    const hn::Rebind<float, decltype(d)> df;
    const auto linear = [&](const float* channel) HWY_ATTR {
      const auto v = hn::Mul(hn::LoadU(df, channel), Constant(df, 1 / white));
      return hn::PromoteTo(d, ToLinear(df, hn::Min(v, Constant(df, 1e12))));
    };
    const auto r = linear(from[0]);
    const auto g = linear(from[1]);
    const auto b = linear(from[2]);
    const auto fx = LabCurve(d, Product(d, {m[0][0] / w[0], m[0][1] / w[0], m[0][2] / w[0]}, r, g, b));
    const auto fy = LabCurve(d, Product(d, {m[1][0] / w[1], m[1][1] / w[1], m[1][2] / w[1]}, r, g, b));
    const auto fz = LabCurve(d, Product(d, {m[2][0] / w[2], m[2][1] / w[2], m[2][2] / w[2]}, r, g, b));
    const auto lightness = hn::MulAdd(fy, Constant(d, 116), Constant(d, -16));
    hn::StoreU(hn::DemoteTo(df, lightness), df, to[0]);
    hn::StoreU(hn::DemoteTo(df, hn::Mul(hn::Sub(fx, fy), Constant(d, 500))), df, to[1]);
    hn::StoreU(hn::DemoteTo(df, hn::Mul(hn::Sub(fy, fz), Constant(d, 200))), df, to[2]);
  });
}

void RgbFromLab(const float* const (&lab)[3], float* const (&rgb)[3], int pixels, double white) {
  ForPixels(lab, rgb, pixels, [white](auto d, const float* const(&from)[3], float* const(&to)[3]) HWY_ATTR {
    constexpr colour::Matrix m = colour::inverse(colour::to_xyz());
    constexpr Triple w = colour::white_point();
    const hn::Rebind<float, decltype(d)> df;
    const auto lightness = hn::PromoteTo(d, hn::LoadU(df, from[0]));
    const auto fy = hn::MulAdd(lightness, Constant(d, 1.0 / 116), Constant(d, 16.0 / 116));
    const auto fx = hn::MulAdd(hn::PromoteTo(d, hn::LoadU(df, from[1])), Constant(d, 1.0 / 500), fy);
    const auto fz = hn::NegMulAdd(hn::PromoteTo(d, hn::LoadU(df, from[2])), Constant(d, 1.0 / 200), fy);
    const auto x = LabCurveInverse(d, fx);
    const auto y = LabCurveInverse(d, fy);
    const auto z = LabCurveInverse(d, fz);
    for (int c = 0; c < 3; ++c) {
      const auto linear = Product(d, {m[c][0] * w[0], m[c][1] * w[1], m[c][2] * w[2]}, x, y, z);
      hn::StoreU(hn::Mul(FromLinear(df, hn::DemoteTo(df, linear)), Constant(df, white)), df, to[c]);
    }
  });
}

}  // namespace
}  // namespace ungrain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace ungrain {

HWY_EXPORT(LabFromRgb);
HWY_EXPORT(RgbFromLab);

void lab_from_rgb_row(const float* const (&rgb)[3], float* const (&lab)[3], int pixels, double white) {
  HWY_DYNAMIC_DISPATCH(LabFromRgb)(rgb, lab, pixels, white);
}
void rgb_from_lab_row(const float* const (&lab)[3], float* const (&rgb)[3], int pixels, double white) {
  HWY_DYNAMIC_DISPATCH(RgbFromLab)(lab, rgb, pixels, white);
}

}  // namespace ungrain

#endif
