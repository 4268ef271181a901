// Groups whose noise has a variance by the group's level: what filter_model_simd.cpp (a share of that
// variance for each coefficient of a patch) and filter_correlation_simd.cpp (a variance for each coefficient
// of the group) have in common.
#if defined(UNGRAIN_METHODS_BM3D_FILTER_LEVEL_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef UNGRAIN_METHODS_BM3D_FILTER_LEVEL_SIMD_INL_H_
#undef UNGRAIN_METHODS_BM3D_FILTER_LEVEL_SIMD_INL_H_
#else
#define UNGRAIN_METHODS_BM3D_FILTER_LEVEL_SIMD_INL_H_
#endif

#include "methods/bm3d/filter_simd-inl.h"

#if UNGRAIN_HAS_VECTORS

HWY_BEFORE_NAMESPACE();
namespace ungrain::HWY_NAMESPACE {
namespace {

constexpr float no_limit = 3e38F;

// Upper bounds of the thresholds of the row that holds the group's mean: -1 for the mean, which is always
// kept, and none for the other coefficients. A group of one has its mean in both halves of a vector.
template <int Level>
struct MeanLimits {
  alignas(64) static constexpr float values[16] = {-1,       no_limit, no_limit,
                                                   no_limit, no_limit, no_limit,
                                                   no_limit, no_limit, Level == 0 ? -1 : no_limit,
                                                   no_limit, no_limit, no_limit,
                                                   no_limit, no_limit, no_limit,
                                                   no_limit};
};

// The Wiener factor energy / (energy + noise · variance) of the basic estimate's coefficients.
HWY_INLINE Vector WienerFactor(Vector basic, Vector noise, Vector variance) {
  return SignalShare(basic, hn::Mul(noise, variance));
}

// The weight of a group in which noise of the variance `left` is left.
HWY_INLINE float WeightByVarianceLeft(const FilterTables& tables, double left, double variance_at_level) {
  return static_cast<float>(
      weight_of_varying(left, tables.mean_share * variance_at_level, tables.mean_variance));
}

template <class Shrinkage>
void ThresholdByLevel(const FilterCall& call) {
  alignas(64) float coefficients[group_floats];
  TransformAll<Dct>(call.noisy, call, coefficients);
  const double variance = VarianceAtLevel(call, coefficients);
  const float weight = ShrinkGroup<Shrinkage>(call, variance, coefficients);
  AddAll<Dct>(call, coefficients, weight);
}

template <class Shrinkage>
void WienerByLevel(const FilterCall& call) {
  alignas(64) float noisy[group_floats];
  alignas(64) float basic[group_floats];
  TransformAll<Dct>(call.noisy, call, noisy);
  TransformAll<Dct>(call.basic, call, basic);
  const double variance = VarianceAtLevel(call, basic);
  const float weight = ShrinkGroup<Shrinkage>(call, variance, basic, noisy);
  AddAll<Dct>(call, noisy, weight);
}

template <class ThresholdShrinkage, class WienerShrinkage>
void FilterByLevel(const FilterCall& call) {
  if (call.basic == nullptr) {
    ThresholdByLevel<ThresholdShrinkage>(call);
  } else {
    WienerByLevel<WienerShrinkage>(call);
  }
}

}  // namespace
}  // namespace ungrain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // UNGRAIN_HAS_VECTORS

#endif  // include guard
