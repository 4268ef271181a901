// 2^x of a vector, for weights: included once for each instruction set, like Highway's own -inl.h files.
#include <hwy/highway.h>

#if defined(UNGRAIN_CPU_EXP2_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef UNGRAIN_CPU_EXP2_INL_H_
#undef UNGRAIN_CPU_EXP2_INL_H_
#else
#define UNGRAIN_CPU_EXP2_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace ungrain::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// x = whole + f. AVX-512 splits x and scales by a power of two in one instruction each, and rounds down: f
// from 0 to 1. Elsewhere adding 1.5 * 2^23 rounds to nearest and leaves the whole number in the low bits: f
// from -1/2 to 1/2.
#undef UNGRAIN_EXP2_SPLITS_DOWN
#if HWY_TARGET <= HWY_AVX3
#define UNGRAIN_EXP2_SPLITS_DOWN 1
#else
#define UNGRAIN_EXP2_SPLITS_DOWN 0
#endif

// Polynomials of 2^f with the smallest relative error among those that give 1 at 0 and are continuous where x
// crosses a whole number. Relative errors: 1.03e-4, 3.7e-6, 9.3e-8 (before rounding) for degrees 3, 4, 5.
template <int Degree>
struct Exp2Polynomial;
template <>
struct Exp2Polynomial<3> {
  static constexpr float c[] =
#if UNGRAIN_EXP2_SPLITS_DOWN
      {1, 0.695424348F, 0.226307682F, 0.0782679702F};
#else
      {1, 0.693282927F, 0.242210959F, 0.0550089319F};
#endif
};
template <>
struct Exp2Polynomial<4> {
  static constexpr float c[] =
#if UNGRAIN_EXP2_SPLITS_DOWN
      {1, 0.693032121F, 0.241379762F, 0.0520323702F, 0.0135557466F};
#else
      {1, 0.693116825F, 0.240229677F, 0.0559627583F, 0.0096616523F};
#endif
};
template <>
struct Exp2Polynomial<5> {
  static constexpr float c[] =
#if UNGRAIN_EXP2_SPLITS_DOWN
      {1, 0.693151739F, 0.240159271F, 0.055818676F, 0.00899099507F, 0.00187931867F};
#else
      {1, 0.693146978F, 0.240222421F, 0.0555073374F, 0.00967151265F, 0.00132647276F};
#endif
};

template <int Degree, class D>
HWY_INLINE hn::Vec<D> Exp2PolynomialAt(D d, hn::Vec<D> f) {
  using P = Exp2Polynomial<Degree>;
  auto p = hn::Set(d, P::c[Degree]);
  for (int k = Degree - 1; k >= 0; --k) p = hn::MulAdd(p, f, hn::Set(d, P::c[k]));
  return p;
}

// 2^x for x from -126 to 0.
template <int Degree, class D>
HWY_INLINE hn::Vec<D> Exp2InRange(D d, hn::Vec<D> x) {
#if UNGRAIN_EXP2_SPLITS_DOWN
  if constexpr (hn::MaxLanes(D()) == 16) {
    constexpr int down = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
    const hn::Vec<D> f{_mm512_reduce_ps(x.raw, down)};
    return hn::Vec<D>{_mm512_scalef_ps(Exp2PolynomialAt<Degree>(d, f).raw, x.raw)};
  } else {
    const auto whole = hn::Floor(x);
    const auto power = hn::ShiftLeft<23>(hn::ConvertTo(hn::RebindToSigned<D>(), whole));
    const auto p = Exp2PolynomialAt<Degree>(d, hn::Sub(x, whole));
    return hn::BitCast(d, hn::Add(hn::BitCast(hn::RebindToSigned<D>(), p), power));
  }
#else
  const hn::RebindToSigned<D> di;
  const auto round = hn::Set(d, 12582912.0F);
  const auto shifted = hn::Add(x, round);
  const auto p = Exp2PolynomialAt<Degree>(d, hn::Sub(x, hn::Sub(shifted, round)));
  return hn::BitCast(d, hn::Add(hn::BitCast(di, p), hn::ShiftLeft<23>(hn::BitCast(di, shifted))));
#endif
}

// 2^x for any x <= 0, infinity too: at least 2^-126.
template <int Degree, class D>
HWY_INLINE hn::Vec<D> Exp2Bounded(D d, hn::Vec<D> x) {
  return Exp2InRange<Degree>(d, hn::Max(x, hn::Set(d, -126.0F)));
}

// 2^x for any x <= 0: 0 below 2^-126.
template <int Degree, class D>
HWY_INLINE hn::Vec<D> Exp2OrZero(D d, hn::Vec<D> x) {
#if UNGRAIN_EXP2_SPLITS_DOWN
  // Both instructions take any x.
  if constexpr (hn::MaxLanes(D()) == 16) {
    return hn::IfThenElseZero(hn::Gt(x, hn::Set(d, -126.0F)), Exp2InRange<Degree>(d, x));
  }
#endif
  return hn::IfThenElseZero(hn::Gt(x, hn::Set(d, -126.0F)), Exp2Bounded<Degree>(d, x));
}

}  // namespace ungrain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // once for each set of instructions
