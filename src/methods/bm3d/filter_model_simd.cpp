// Filters groups whose noise follows a model: a variance by the group's level, and a share of it for each
// coefficient of a patch.
#include "methods/bm3d/filter_simd.h"

#include <cmath>

#include "methods/bm3d/vector_targets.h"

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (UNGRAIN_BM3D_UNUSED_TARGETS | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "methods/bm3d/filter_model_simd.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h must come before what it includes again.
#include <hwy/highway.h>

#include "methods/bm3d/filter_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ungrain::HWY_NAMESPACE {
namespace {

#if !UNGRAIN_BM3D_HAS_VECTORS

void FilterGroupByModel(const FilterCall&) {}

#else

struct ModelThreshold {
  const FilterTables& tables;
  Vector deviation;  // at the group's level
  int slot;
  Vector left;  // the sum of the shares that are kept

  HWY_INLINE void Begin(int of) { slot = of; }
  template <int Level>
  HWY_INLINE Row Apply(const Row& value, const Row&) {
    Row result;
    for (int i = 0; i < parts; ++i) {
      const Vector limit = hn::Mul(hn::Load(d, tables.noise[Level][slot] + i * lanes), deviation);
      result.part[i] = AbovePart<Level>(value.part[i], limit, i);
    }
    return result;
  }

  // The group's mean is always kept.
  template <int Level>
  HWY_INLINE Row ApplyToMean(const Row& value) {
    if (slot > 0) return Apply<Level>(value, value);
    // A group of one has its mean in both halves of a vector.
    constexpr float any = 3e38F;
    alignas(64) static constexpr float least[16] = {
        -1, any, any, any, any, any, any, any, Level == 0 ? -1 : any, any, any, any, any, any, any, any};
    Row result;
    for (int i = 0; i < parts; ++i) {
      const Vector limit = hn::Mul(hn::Load(d, tables.noise[Level][slot] + i * lanes), deviation);
      result.part[i] = AbovePart<Level>(value.part[i], hn::Min(limit, hn::Load(d, least + i * lanes)), i);
    }
    return result;
  }

 private:
  template <int Level>
  HWY_INLINE Vector AbovePart(Vector value, Vector limit, int i) {
    const auto keep = hn::Gt(hn::Abs(value), limit);
    left = hn::Add(left, hn::IfThenElseZero(keep, hn::Load(d, tables.shares[slot] + i * lanes)));
    return hn::IfThenElseZero(keep, hn::Mul(value, hn::Load(d, tables.scale[Level][slot] + i * lanes)));
  }
};

struct ModelWienerFactors {
  const FilterTables& tables;
  Vector variance;  // at the group's level
  int slot;
  Vector left;  // the sum of the shares that are kept

  HWY_INLINE void Begin(int of) { slot = of; }
  template <int Level>
  HWY_INLINE Row Apply(const Row& value, const Row&) {
    Row result;
    for (int i = 0; i < parts; ++i) {
      const Vector energy = hn::Min(hn::Mul(value.part[i], value.part[i]), hn::Set(d, 1e36F));
      const Vector noise = hn::Load(d, tables.noise[Level][slot] + i * lanes);
      const Vector kept = hn::Mul(energy, Reciprocal(hn::MulAdd(noise, variance, energy)));
      const Vector share = hn::Load(d, tables.shares[slot] + i * lanes);
      left = hn::MulAdd(hn::Mul(kept, kept), share, left);
      result.part[i] = hn::Mul(kept, hn::Load(d, tables.scale[Level][slot] + i * lanes));
    }
    return result;
  }
};

template <int Count>
HWY_INLINE float WeightByModel(const FilterTables& tables, Vector left, double variance) {
  return static_cast<float>(
      weight_of_varying(SumOver<Count>(left) * variance, tables.mean_share * variance, tables.mean_variance));
}

struct ThresholdShrinkage {
  template <int Count>
  static HWY_NOINLINE float Run(const FilterCall& call, double variance, float* coefficients) {
    ModelThreshold shrink{call.tables, hn::Set(d, static_cast<float>(std::sqrt(variance))), 0, hn::Zero(d)};
    ThresholdAll<Count>(coefficients, shrink);
    return WeightByModel<Count>(call.tables, shrink.left, variance);
  }
};

struct WienerShrinkage {
  template <int Count>
  static HWY_NOINLINE float Run(const FilterCall& call, double variance, const float* basic, float* noisy) {
    ModelWienerFactors factors{call.tables, hn::Set(d, static_cast<float>(variance)), 0, hn::Zero(d)};
    WienerAll<Count>(basic, noisy, factors);
    return WeightByModel<Count>(call.tables, factors.left, variance);
  }
};

void FilterByThreshold(const FilterCall& call) {
  alignas(64) float coefficients[group_floats];
  TransformAll<Dct>(call.noisy, call, coefficients);
  const double variance = VarianceAtLevel(call, coefficients);
  const float weight = ShrinkGroup<ThresholdShrinkage>(call, variance, coefficients);
  AddAll<Dct>(call, coefficients, weight);
}

void FilterByWiener(const FilterCall& call) {
  alignas(64) float noisy[group_floats];
  alignas(64) float basic[group_floats];
  TransformAll<Dct>(call.noisy, call, noisy);
  TransformAll<Dct>(call.basic, call, basic);
  const double variance = VarianceAtLevel(call, basic);
  const float weight = ShrinkGroup<WienerShrinkage>(call, variance, basic, noisy);
  AddAll<Dct>(call, noisy, weight);
}

void FilterGroupByModel(const FilterCall& call) {
  if (call.basic == nullptr) {
    FilterByThreshold(call);
  } else {
    FilterByWiener(call);
  }
}

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
