#include "methods/bm3d/time_simd.h"

#include <cmath>

#include "cpu/vector_targets.h"

// A vector of sixteen would hold two patches; rows of eight are simpler, and AVX2 has them.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (UNGRAIN_UNUSED_TARGETS | HWY_AVX3_DL | HWY_AVX3)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "methods/bm3d/time_simd.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h must come before what it includes again.
#include <hwy/highway.h>

#include "methods/bm3d/filter_level_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ungrain::HWY_NAMESPACE {
namespace {

#if !UNGRAIN_HAS_VECTORS

bool HasVectors() { return false; }
void PatchDistances(const DistanceCall&) {}
void FilterGroup(const TimeGroupCall&) {}

#else

bool HasVectors() { return true; }

// ---- Distances

using Shorts = hn::FixedTag<std::int16_t, 8>;
using Ints = hn::FixedTag<std::int32_t, 4>;
constexpr Shorts shorts;
constexpr Ints ints;

// Match pixels have 12 bits, so their differences fit signed ones of 16.
HWY_INLINE hn::Vec<Shorts> LoadPixels(const std::uint16_t* from) {
  return hn::LoadU(shorts, reinterpret_cast<const std::int16_t*>(from));
}

void PatchDistances(const DistanceCall& call) {
  hn::Vec<Shorts> reference[time_patch];
#pragma GCC unroll 8
  for (int y = 0; y < time_patch; ++y) reference[y] = LoadPixels(call.reference + y * call.reference_stride);
  std::uint32_t* to = call.distances;
  for (int row = 0; row < call.rows; ++row) {
    const std::uint16_t* at = call.first + row * call.stride;
    for (int column = 0; column < call.columns; ++column, ++at) {
      auto even = hn::Zero(ints);
      auto odd = hn::Zero(ints);
#pragma GCC unroll 8
      for (int y = 0; y < time_patch; ++y) {
        const auto difference = hn::Sub(reference[y], LoadPixels(at + y * call.stride));
        even = hn::ReorderWidenMulAccumulate(ints, difference, difference, even, odd);
      }
      *to++ = static_cast<std::uint32_t>(hn::GetLane(hn::SumOfLanes(ints, hn::Add(even, odd))));
    }
  }
}

// ---- Filtering

constexpr int floats_of_patch = filter_patch * filter_patch;
constexpr int floats_of_group = most_time_patches * floats_of_patch;

HWY_INLINE float* RowOf(float* coefficients, int patch, int slot) {
  return coefficients + patch * floats_of_patch + slot * filter_patch;
}

template <class Transform>
HWY_NOINLINE void TransformPatches(const PatchPixels* patches, int count, float* to) {
  for (int i = 0; i < count; ++i) {
    Patch p;
#pragma GCC unroll 8
    for (int y = 0; y < filter_patch; ++y) p.row[y] = LoadAlong(patches[i].first + y * patches[i].stride);
    Transform::Forward(p);
    Transpose(p);
    Transform::Forward(p);
    Transform::ForwardRest(p);
#pragma GCC unroll 8
    for (int slot = 0; slot < filter_patch; ++slot) Store(p.row[slot], RowOf(to, i, slot));
  }
}

// The cosine transform of rows at `from`, `step` floats apart. Its even rows are symmetric, the odd ones
// antisymmetric.
template <int Images>
HWY_INLINE void AlongTime(const float* along, int step, float* from) {
  constexpr int pairs = Images / 2;
  Row sums[pairs + 1];
  Row differences[pairs + 1];
#pragma GCC unroll 8
  for (int i = 0; i < pairs; ++i) {
    const Row early = Load(from + i * step);
    const Row late = Load(from + (Images - 1 - i) * step);
    sums[i] = Add(early, late);
    differences[i] = Sub(early, late);
  }
  if constexpr (Images % 2 == 1) sums[pairs] = Load(from + pairs * step);
#pragma GCC unroll 17
  for (int f = 0; f < Images; ++f) {
    const float* row = along + f * Images;
    if (f % 2 == 0) {
      Row sum = Mul(sums[0], Set(row[0]));
#pragma GCC unroll 8
      for (int i = 1; i < Images - pairs; ++i) sum = MulAdd(sums[i], Set(row[i]), sum);
      Store(sum, from + f * step);
    } else {
      Row sum = Mul(differences[0], Set(row[0]));
#pragma GCC unroll 8
      for (int i = 1; i < pairs; ++i) sum = MulAdd(differences[i], Set(row[i]), sum);
      Store(sum, from + f * step);
    }
  }
}

template <int Images>
HWY_NOINLINE void AllAlongTime(const float* along, int matches, float* coefficients) {
  for (int m = 0; m < matches; ++m) {
    for (int slot = 0; slot < filter_patch; ++slot)
      AlongTime<Images>(along, floats_of_patch, RowOf(coefficients, m * Images, slot));
  }
}

template <int Images = most_time_images>
void AlongTimeOf(int images, const float* along, int matches, float* coefficients) {
  if constexpr (Images > 1) {
    if (images < Images) return AlongTimeOf<Images - 1>(images, along, matches, coefficients);
    AllAlongTime<Images>(along, matches, coefficients);
  }
}

// Haar's transform along matches, `step` patches apart, in place.
void AlongMatches(int matches, int step, float* coefficients) {
  const Row root = Set(0.707106781F);
  for (int apart = 1; apart < matches; apart *= 2) {
    for (int m = 0; m < matches; m += 2 * apart) {
      for (int i = 0; i < step * filter_patch; ++i) {
        float* first = RowOf(coefficients, m * step, i);
        float* second = RowOf(coefficients, (m + apart) * step, i);
        const Row a = Load(first);
        const Row b = Load(second);
        Store(Mul(Add(a, b), root), first);
        Store(Mul(Sub(a, b), root), second);
      }
    }
  }
}

void BackAlongMatches(int matches, float* coefficients) {
  const Row root = Set(0.707106781F);
  for (int apart = matches / 2; apart > 0; apart /= 2) {
    for (int m = 0; m < matches; m += 2 * apart) {
      for (int slot = 0; slot < filter_patch; ++slot) {
        float* first = RowOf(coefficients, m, slot);
        float* second = RowOf(coefficients, m + apart, slot);
        const Row a = Load(first);
        const Row b = Load(second);
        Store(Mul(Add(a, b), root), first);
        Store(Mul(Sub(a, b), root), second);
      }
    }
  }
}

HWY_INLINE float SumOfRow(const Row& row) {
  Vector sum = row.part[0];
  if constexpr (parts == 2) sum = hn::Add(sum, row.part[parts - 1]);
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

// What a group's noise is: by a model, or the same everywhere.
struct GroupNoise {
  const PlaneNoise* model = nullptr;
  double variance = 1;  // at the group's level; tables are for 1 with a model
};

// Step 1. Returns the group's weight.
float Threshold(const TimeGroupCall& call, const GroupNoise& noise, float* coefficients) {
  const FilterTables& tables = call.tables;
  const Row deviation = Set(noise.model != nullptr ? static_cast<float>(std::sqrt(noise.variance)) : 1.0F);
  Row left = Set(0.0F);
  const float mean = coefficients[0];
  for (int slot = 0; slot < filter_patch; ++slot) {
    const Row limit = Mul(Load(tables.noise[0][slot]), deviation);
    const Row share = noise.model != nullptr ? Load(tables.shares[slot]) : Set(1.0F);
    for (int i = 0; i < call.matches * call.images; ++i) {
      float* at = RowOf(coefficients, i, slot);
      Row row = Load(at);
#pragma GCC unroll 2
      for (int k = 0; k < parts; ++k) {
        const auto keep = hn::Gt(hn::Abs(row.part[k]), limit.part[k]);
        left.part[k] = hn::Add(left.part[k], hn::IfThenElseZero(keep, share.part[k]));
        row.part[k] = hn::IfThenElseZero(keep, row.part[k]);
      }
      Store(row, at);
    }
  }
  const float kept = SumOfRow(left);
  if (noise.model == nullptr) return 1.0F / std::max(kept, 1.0F);
  // A group's mean is always kept.
  const bool was_kept = coefficients[0] != 0 || mean == 0;
  coefficients[0] = mean;
  return WeightByVarianceLeft(tables, (kept + (was_kept ? 0 : tables.shares[0][0])) * noise.variance,
                              noise.variance);
}

// Step 2.
float Wiener(const TimeGroupCall& call, const GroupNoise& noise, const float* basic, float* coefficients) {
  const FilterTables& tables = call.tables;
  const Vector variance = hn::Set(d, noise.model != nullptr ? static_cast<float>(noise.variance) : 1.0F);
  Row left = Set(0.0F);
  for (int slot = 0; slot < filter_patch; ++slot) {
    const Row energy = Load(tables.noise[0][slot]);
    const Row share = noise.model != nullptr ? Load(tables.shares[slot]) : Set(1.0F);
    for (int i = 0; i < call.matches * call.images; ++i) {
      float* at = RowOf(coefficients, i, slot);
      const Row pilot = Load(basic + (at - coefficients));
      Row row = Load(at);
#pragma GCC unroll 2
      for (int k = 0; k < parts; ++k) {
        const Vector factor = WienerFactor(pilot.part[k], energy.part[k], variance);
        left.part[k] = hn::MulAdd(hn::Mul(factor, factor), share.part[k], left.part[k]);
        row.part[k] = hn::Mul(row.part[k], factor);
      }
      Store(row, at);
    }
  }
  const float squares = SumOfRow(left);
  if (noise.model == nullptr) return 1.0F / std::max(squares, 1.0F);
  return WeightByVarianceLeft(tables, squares * noise.variance, noise.variance);
}

// Back to pixels of the own image's patches, and into the sums.
template <class Transform>
HWY_NOINLINE void AddPatchesOf(const TimeGroupCall& call, float weight, const float* coefficients) {
  alignas(64) float own[most_time_matches * floats_of_patch];
  for (int m = 0; m < call.matches; ++m) {
    for (int slot = 0; slot < filter_patch; ++slot) {
      const float* at = coefficients + m * call.images * floats_of_patch + slot * filter_patch;
      Row sum = Mul(Load(at), Set(call.along[call.own]));
      for (int f = 1; f < call.images; ++f)
        sum = MulAdd(Load(at + f * floats_of_patch), Set(call.along[f * call.images + call.own]), sum);
      Store(Mul(sum, Load(call.tables.back[slot])), RowOf(own, m, slot));
    }
  }
  BackAlongMatches(call.matches, own);
  alignas(64) float window[filter_patch];
  for (int x = 0; x < filter_patch; ++x) window[x] = call.tables.window[x][0] * weight;
  for (int m = 0; m < call.matches; ++m) {
    Patch p;
#pragma GCC unroll 8
    for (int slot = 0; slot < filter_patch; ++slot) p.row[slot] = Load(RowOf(own, m, slot));
    Transform::InverseRest(p);
    Transform::Inverse(p);
    Transpose(p);
    Transform::Inverse(p);
    float* values = call.values[m];
    const Row across = Load(window);
#pragma GCC unroll 8
    for (int y = 0; y < filter_patch; ++y) {
      const Row of_pixels = Mul(across, Load(call.tables.window[y]));
      float* to = values + y * call.pitch;
      StoreAlong(MulAdd(p.row[y], of_pixels, LoadAlong(to)), to);
      to += call.to_weights;
      StoreAlong(Add(LoadAlong(to), of_pixels), to);
    }
  }
}

// The sum of all pixels: coefficient (0, 0) of each patch, whose transform does not normalise.
float LevelOfGroup(const float* coefficients, int patches) {
  float sum = 0;
  for (int i = 0; i < patches; ++i) sum += coefficients[i * floats_of_patch];
  return sum / static_cast<float>(patches * floats_of_patch);
}

template <class Transform>
void FilterGroupBy(const TimeGroupCall& call) {
  alignas(64) float noisy[floats_of_group];
  alignas(64) float basic[floats_of_group];
  const int patches = call.matches * call.images;
  TransformPatches<Transform>(call.noisy, patches, noisy);
  if (call.basic != nullptr) TransformPatches<Transform>(call.basic, patches, basic);
  GroupNoise noise{.model = call.tables.model};
  if (noise.model != nullptr) {
    if (call.finds_level) *call.level = LevelOfGroup(call.basic != nullptr ? basic : noisy, patches);
    noise.variance = noise.model->variance(*call.level);
  }
  AlongTimeOf(call.images, call.along, call.matches, noisy);
  AlongMatches(call.matches, call.images, noisy);
  float weight = 0;
  if (call.basic == nullptr) {
    weight = Threshold(call, noise, noisy);
  } else {
    AlongTimeOf(call.images, call.along, call.matches, basic);
    AlongMatches(call.matches, call.images, basic);
    weight = Wiener(call, noise, basic, noisy);
  }
  AddPatchesOf<Transform>(call, weight, noisy);
}

void FilterGroup(const TimeGroupCall& call) {
  if (call.transform == PatchTransform::dct) {
    FilterGroupBy<Dct>(call);
  } else {
    FilterGroupBy<Bior15>(call);
  }
}

#endif

}  // namespace
}  // namespace ungrain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ungrain {

HWY_EXPORT(HasVectors);
HWY_EXPORT(PatchDistances);
HWY_EXPORT(FilterGroup);

bool has_time_vectors() { return HWY_DYNAMIC_DISPATCH(HasVectors)(); }

void patch_distances(const DistanceCall& call) { HWY_DYNAMIC_DISPATCH(PatchDistances)(call); }

void filter_time_group(const TimeGroupCall& call) { HWY_DYNAMIC_DISPATCH(FilterGroup)(call); }

}  // namespace ungrain
#endif
