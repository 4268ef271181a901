// Moments of cut noise. Bound by arithmetic: 14 operations for each area and weight.
#include "noise/clipped_gaussian_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "noise/clipped_gaussian_simd.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h must come before what it includes again.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ungrain::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V>
HWY_ATTR V AfterCut(D d, V value, V white) {
  return hn::Min(hn::Max(value, hn::Zero(d)), white);
}

// Two vectors at a time, so that one's sums do not wait for the other's.
template <class D>
HWY_ATTR void FindPair(D d, const double* centres, const GaussianWeights& gaussian, double white_level,
                       std::size_t at, CutMoments& to) {
  const std::size_t next = at + hn::Lanes(d);
  const auto white = hn::Set(d, white_level);
  const auto centre0 = hn::LoadU(d, centres + at);
  const auto centre1 = hn::LoadU(d, centres + next);
  auto mean0 = hn::Zero(d);
  auto mean1 = hn::Zero(d);
  for (int i = 0; i < gaussian.count; ++i) {
    const auto weight = hn::Set(d, gaussian.weights[i]);
    const auto offset = hn::Set(d, gaussian.offsets[i]);
    mean0 = hn::Add(mean0, hn::Mul(weight, AfterCut(d, hn::Add(centre0, offset), white)));
    mean1 = hn::Add(mean1, hn::Mul(weight, AfterCut(d, hn::Add(centre1, offset), white)));
  }
  auto second0 = hn::Zero(d);
  auto second1 = hn::Zero(d);
  auto fourth0 = hn::Zero(d);
  auto fourth1 = hn::Zero(d);
  for (int i = 0; i < gaussian.count; ++i) {
    const auto weight = hn::Set(d, gaussian.weights[i]);
    const auto offset = hn::Set(d, gaussian.offsets[i]);
    const auto from_mean0 = hn::Sub(AfterCut(d, hn::Add(centre0, offset), white), mean0);
    const auto from_mean1 = hn::Sub(AfterCut(d, hn::Add(centre1, offset), white), mean1);
    const auto square0 = hn::Mul(from_mean0, from_mean0);
    const auto square1 = hn::Mul(from_mean1, from_mean1);
    const auto weighted0 = hn::Mul(weight, square0);
    const auto weighted1 = hn::Mul(weight, square1);
    second0 = hn::Add(second0, weighted0);
    second1 = hn::Add(second1, weighted1);
    fourth0 = hn::Add(fourth0, hn::Mul(weighted0, square0));
    fourth1 = hn::Add(fourth1, hn::Mul(weighted1, square1));
  }
  hn::StoreU(mean0, d, to.mean + at);
  hn::StoreU(mean1, d, to.mean + next);
  hn::StoreU(second0, d, to.second + at);
  hn::StoreU(second1, d, to.second + next);
  hn::StoreU(fourth0, d, to.fourth + at);
  hn::StoreU(fourth1, d, to.fourth + next);
}

void FindCutMoments(const double* centres, const GaussianWeights& gaussian, double white,
                    CutMoments& moments) {
  const hn::CappedTag<double, 8> d;  // two vectors of it divide cut_areas
  static_assert(cut_areas % 16 == 0);
  for (std::size_t at = 0; at < cut_areas; at += 2 * hn::Lanes(d)) {
    FindPair(d, centres, gaussian, white, at, moments);
  }
}

}  // namespace
}  // namespace ungrain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace ungrain {
namespace {

HWY_EXPORT(FindCutMoments);

}  // namespace

void find_cut_moments(const double* centres, const GaussianWeights& gaussian, double white,
                      CutMoments& moments) {
  HWY_DYNAMIC_DISPATCH(FindCutMoments)(centres, gaussian, white, moments);
}

}  // namespace ungrain

#endif
