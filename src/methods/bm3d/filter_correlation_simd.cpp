// Filters groups whose noise is correlated: each coefficient of a group has a variance that follows from the
// places of its patches.
#include "methods/bm3d/filter_simd.h"

#include <algorithm>
#include <cmath>

#include "cpu/vector_targets.h"

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (UNGRAIN_UNUSED_TARGETS | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "methods/bm3d/filter_correlation_simd.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h must come before what it includes again.
#include <hwy/highway.h>

#include "methods/bm3d/filter_level_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ungrain::HWY_NAMESPACE {
namespace {

#if !UNGRAIN_HAS_VECTORS

void FilterCorrelatedGroup(const FilterCall&) {}

#else

// What both steps read and sum: a variance for each coefficient of a group, in the order in which Analyse()
// comes to the coefficients (the differences, then the mean).
struct ExactVariances {
  const FilterTables& tables;
  const float* variances;
  int slot = 0;
  Vector left = hn::Zero(d);  // the variance that stays in the group
  const float* next = nullptr;

  HWY_INLINE void Begin(int of) {
    slot = of;
    next = variances + slot * row_floats;
  }
  HWY_INLINE Vector Variance(int i) const { return hn::Load(d, next + i * lanes); }
  HWY_INLINE Vector Noise(int level, int i) const {
    return hn::Load(d, tables.noise[level][slot] + i * lanes);
  }
};

struct ExactThreshold : ExactVariances {
  template <int Level>
  HWY_INLINE Row Apply(const Row& value, const Row&) {
    Row result;
    for (int i = 0; i < parts; ++i) result.part[i] = AbovePart<Level>(value.part[i], hn::Set(d, no_limit), i);
    next += patch_floats;
    return result;
  }

  template <int Level>
  HWY_INLINE Row ApplyToMean(const Row& value) {
    if (slot > 0) return Apply<Level>(value, value);
    Row result;
    for (int i = 0; i < parts; ++i)
      result.part[i] = AbovePart<Level>(value.part[i], hn::Load(d, MeanLimits<Level>::values + i * lanes), i);
    return result;
  }

 private:
  // Keeps coefficients whose energy is above the threshold or above `limit`.
  template <int Level>
  HWY_INLINE Vector AbovePart(Vector value, Vector limit, int i) {
    const Vector variance = Variance(i);
    const Vector threshold = hn::Min(hn::Mul(variance, Noise(Level, i)), limit);
    const auto keep = hn::Gt(hn::Mul(value, value), threshold);
    left = hn::Add(left, hn::IfThenElseZero(keep, variance));
    return hn::IfThenElseZero(keep, value);
  }
};

struct ExactWienerFactors : ExactVariances {
  template <int Level>
  HWY_INLINE Row Apply(const Row& value, const Row&) {
    Row result;
    for (int i = 0; i < parts; ++i) {
      const Vector variance = Variance(i);
      const Vector factor = WienerFactor(value.part[i], Noise(Level, i), variance);
      left = hn::MulAdd(hn::Mul(factor, factor), variance, left);
      result.part[i] = factor;
    }
    next += patch_floats;
    return result;
  }
};

// ---- Variances of patches that share noise
//
// With V the variance of a half of the patches and C the covariance of both halves, the sum of the halves has
// the variance V1 + V2 + 2 C, their difference V1 + V2 - 2 C. So every pair of patches is visited once.

constexpr int common_floats = filter_patch * filter_patch;

struct GroupNoise {
  const FilterTables& tables;
  float variance;  // at the group's level
  int x[most_filtered];
  int y[most_filtered];

  HWY_INLINE GroupNoise(const FilterCall& call, double at_level)
      : tables(call.tables), variance(static_cast<float>(at_level)) {
    for (int i = 0; i < call.count; ++i) {
      y[i] = static_cast<int>(call.places[i] / call.pitch);
      x[i] = static_cast<int>(call.places[i] % call.pitch);
    }
  }

  // Sums the covariances of the patches [first, first + count) with as many from `other` on.
  HWY_INLINE void SumPairs(int first, int other, int count, float* sum) const {
    int pairs[most_filtered * most_filtered / 4 + 1];
    const int row = 2 * tables.reach_x + 1;
    int found = 0;
    for (int m = first; m < first + count; ++m) {
      for (int n = other; n < other + count; ++n) {
        const int down = y[m] - y[n];
        const int sign = down < 0 ? -1 : 1;
        const int dy = sign * down;
        const int dx = sign * (x[m] - x[n]) + tables.reach_x;
        pairs[found] = (dy * row + dx) * common_floats;
        found += ((dy <= tables.reach_y) & (static_cast<unsigned>(dx) < static_cast<unsigned>(row))) ? 1 : 0;
      }
    }
    constexpr int at_once = common_floats / lanes < 8 ? common_floats / lanes : 8;
    for (int c = 0; c < common_floats; c += at_once * lanes) {
      Rows<at_once> sums;
#pragma GCC unroll 8
      for (int i = 0; i < at_once; ++i) sums.part[i] = hn::Zero(d);
      for (int pair = 0; pair < found; ++pair) {
        const float* common = tables.common + pairs[pair] + c;
#pragma GCC unroll 8
        for (int i = 0; i < at_once; ++i)
          sums.part[i] = hn::Add(sums.part[i], hn::Load(d, common + i * lanes));
      }
#pragma GCC unroll 8
      for (int i = 0; i < at_once; ++i) hn::Store(sums.part[i], d, sum + c + i * lanes);
    }
  }

  // Writes (a + b + twice * common) / size, in units of the variance, for one of the patches of a vector.
  HWY_INLINE void Write(const float* a, const float* b, const float* common, float twice, int size,
                        float* to) const {
    const hn::CappedTag<float, filter_patch> eight;
    const int step = static_cast<int>(hn::Lanes(eight));
    const auto scale = hn::Set(eight, variance / static_cast<float>(size));
    const auto least = hn::Set(eight, variance * static_cast<float>(least_share));
    const auto factor = hn::Set(eight, twice);
    for (int c = 0; c < common_floats; c += step) {
      const auto both = hn::Add(hn::Load(eight, a + c), hn::Load(eight, b + c));
      const auto sum = hn::MulAdd(factor, hn::Load(eight, common + c), both);
      hn::StoreU(hn::Max(hn::Mul(sum, scale), least), eight,
                 to + c / filter_patch * row_floats + c % filter_patch);
    }
  }
};

// The variances of a single patch.
HWY_INLINE void WriteOwn(const GroupNoise& noise, float* sum) {
  std::copy_n(noise.tables.common + noise.tables.reach_x * common_floats, common_floats, sum);
}

// Writes the variances of all differences of `Size` patches from `first` on to `to`, those of their sum to
// `sum`. Returns the end of the written variances. Not inlined, because each size calls the half size twice.
template <int Size>
HWY_NOINLINE float* WriteDifferences(const GroupNoise& noise, int first, float* to, float* sum) {
  alignas(64) float right[common_floats];
  alignas(64) float common[common_floats];
  if constexpr (Size == 2) {
    WriteOwn(noise, sum);
    WriteOwn(noise, right);
  } else {
    to = WriteDifferences<Size / 2>(noise, first, to, sum);
    to = WriteDifferences<Size / 2>(noise, first + Size / 2, to, right);
  }
  noise.SumPairs(first, first + Size / 2, Size / 2, common);
  noise.Write(sum, right, common, -2, Size, to);
  for (int c = 0; c < common_floats; ++c) sum[c] += right[c] + 2 * common[c];
  return to + patch_floats;
}
template <>
HWY_INLINE float* WriteDifferences<1>(const GroupNoise& noise, int, float* to, float* sum) {
  WriteOwn(noise, sum);
  return to;
}

// Writes one variance for each coefficient, in the order in which they are shrunk.
template <int Count>
HWY_NOINLINE void WriteVariances(const FilterCall& call, double variance, float* to) {
  const GroupNoise noise(call, variance);
  alignas(64) static constexpr float nothing[common_floats] = {};
  alignas(64) float sum[common_floats];
  if constexpr (patches_at_once == 1) {
    to = WriteDifferences<Count>(noise, 0, to, sum);
    noise.Write(sum, nothing, nothing, 0, Count, to);
  } else if constexpr (Count == 1) {
    WriteDifferences<1>(noise, 0, to, sum);
    for (const int half : {0, 1}) noise.Write(sum, nothing, nothing, 0, 1, to + half * filter_patch);
  } else {
    constexpr int sets = Count / 2;
    alignas(64) float other[common_floats];
    alignas(64) float common[common_floats];
    float* second = WriteDifferences<sets>(noise, sets, to + filter_patch, other);
    to = WriteDifferences<sets>(noise, 0, to, sum);
    noise.SumPairs(0, sets, sets, common);
    noise.Write(sum, other, common, 2, Count, to);
    noise.Write(sum, other, common, -2, Count, second);
  }
}

struct ThresholdShrinkage {
  template <int Count>
  static HWY_NOINLINE float Run(const FilterCall& call, double variance, float* coefficients) {
    alignas(64) float variances[SetsOf(Count) * patch_floats];
    WriteVariances<Count>(call, variance, variances);
    ExactThreshold shrink{{call.tables, variances}};
    ThresholdAll<Count>(coefficients, shrink);
    return WeightByVarianceLeft(call.tables, SumOver<Count>(shrink.left), variance);
  }
};

struct WienerShrinkage {
  template <int Count>
  static HWY_NOINLINE float Run(const FilterCall& call, double variance, const float* basic, float* noisy) {
    alignas(64) float variances[SetsOf(Count) * patch_floats];
    WriteVariances<Count>(call, variance, variances);
    ExactWienerFactors factors{{call.tables, variances}};
    WienerAll<Count>(basic, noisy, factors);
    return WeightByVarianceLeft(call.tables, SumOver<Count>(factors.left), variance);
  }
};

void FilterCorrelatedGroup(const FilterCall& call) {
  FilterByLevel<ThresholdShrinkage, WienerShrinkage>(call);
}

#endif

}  // namespace
}  // namespace ungrain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ungrain {

HWY_EXPORT(FilterCorrelatedGroup);

std::vector<CommonNoise> common_noise(const PatchCovariances& covariances) {
  std::vector<CommonNoise> result;
  for (int dy = 0; dy <= covariances.reach_y(); ++dy) {
    for (int dx = -covariances.reach_x(); dx <= covariances.reach_x(); ++dx) {
      const NoiseModel::Spectrum& at = covariances.at(dx, dy);
      CommonNoise& to = result.emplace_back();
      // A slot is a horizontal frequency, a lane a vertical one.
      for (int slot = 0; slot < filter_patch; ++slot) {
        for (int lane = 0; lane < filter_patch; ++lane)
          to.of[slot][lane] = static_cast<float>(at[lane * filter_patch + slot]);
      }
    }
  }
  return result;
}

void filter_correlated_group(const FilterCall& call) { HWY_DYNAMIC_DISPATCH(FilterCorrelatedGroup)(call); }

}  // namespace ungrain
#endif
