// Filters groups whose noise follows a model: a variance by the group's level, and a share of it for each
// coefficient of a patch.
#include "methods/bm3d/filter_simd.h"

#include <cmath>

#include "cpu/vector_targets.h"

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (UNGRAIN_UNUSED_TARGETS | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "methods/bm3d/filter_model_simd.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h must come before what it includes again.
#include <hwy/highway.h>

#include "methods/bm3d/filter_level_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ungrain::HWY_NAMESPACE {
namespace {

#if !UNGRAIN_HAS_VECTORS

void FilterGroupByModel(const FilterCall&) {}

#else

// What both steps sum: the shares of variance that stay in the group.
struct ModelShares {
  const FilterTables& tables;
  Vector noise_at_level;  // step 1: the deviation at the group's level; step 2: the variance
  int slot = 0;
  Vector left = hn::Zero(d);

  HWY_INLINE void Begin(int of) { slot = of; }
  HWY_INLINE Vector Noise(int level, int i) const {
    return hn::Load(d, tables.noise[level][slot] + i * lanes);
  }
  HWY_INLINE Vector Share(int i) const { return hn::Load(d, tables.shares[slot] + i * lanes); }
};

struct ModelThreshold : ModelShares {
  template <int Level>
  HWY_INLINE Row Apply(const Row& value, const Row&) {
    Row result;
    for (int i = 0; i < parts; ++i) result.part[i] = AbovePart<Level>(value.part[i], Limit<Level>(i), i);
    return result;
  }

  template <int Level>
  HWY_INLINE Row ApplyToMean(const Row& value) {
    if (slot > 0) return Apply<Level>(value, value);
    Row result;
    for (int i = 0; i < parts; ++i) {
      const Vector limit = hn::Min(Limit<Level>(i), hn::Load(d, MeanLimits<Level>::values + i * lanes));
      result.part[i] = AbovePart<Level>(value.part[i], limit, i);
    }
    return result;
  }

 private:
  template <int Level>
  HWY_INLINE Vector Limit(int i) const {
    return hn::Mul(Noise(Level, i), noise_at_level);
  }

  template <int Level>
  HWY_INLINE Vector AbovePart(Vector value, Vector limit, int i) {
    const auto keep = hn::Gt(hn::Abs(value), limit);
    left = hn::Add(left, hn::IfThenElseZero(keep, Share(i)));
    return hn::IfThenElseZero(keep, value);
  }
};

struct ModelWienerFactors : ModelShares {
  template <int Level>
  HWY_INLINE Row Apply(const Row& value, const Row&) {
    Row result;
    for (int i = 0; i < parts; ++i) {
      const Vector factor = WienerFactor(value.part[i], Noise(Level, i), noise_at_level);
      left = hn::MulAdd(hn::Mul(factor, factor), Share(i), left);
      result.part[i] = factor;
    }
    return result;
  }
};

template <int Count>
HWY_INLINE float WeightByModel(const ModelShares& shares, double variance) {
  return WeightByVarianceLeft(shares.tables, SumOver<Count>(shares.left) * variance, variance);
}

struct ThresholdShrinkage {
  template <int Count>
  static HWY_NOINLINE float Run(const FilterCall& call, double variance, float* coefficients) {
    ModelThreshold shrink{{call.tables, hn::Set(d, static_cast<float>(std::sqrt(variance)))}};
    ThresholdAll<Count>(coefficients, shrink);
    return WeightByModel<Count>(shrink, variance);
  }
};

struct WienerShrinkage {
  template <int Count>
  static HWY_NOINLINE float Run(const FilterCall& call, double variance, const float* basic, float* noisy) {
    ModelWienerFactors factors{{call.tables, hn::Set(d, static_cast<float>(variance))}};
    WienerAll<Count>(basic, noisy, factors);
    return WeightByModel<Count>(factors, variance);
  }
};

void FilterGroupByModel(const FilterCall& call) { FilterByLevel<ThresholdShrinkage, WienerShrinkage>(call); }

#endif

}  // namespace
}  // namespace ungrain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ungrain {

HWY_EXPORT(FilterGroupByModel);

void filter_group_by_model(const FilterCall& call) { HWY_DYNAMIC_DISPATCH(FilterGroupByModel)(call); }

}  // namespace ungrain
#endif
