// Filters groups with the same noise everywhere: one sigma. Also contains the code that all kinds of noise
// share and that does not depend on a group's size: the columns of a tile, the weights, the tables. Noise
// models: filter_model_simd.cpp; correlated noise: filter_correlation_simd.cpp.
#include "methods/bm3d/filter_simd.h"

#include <algorithm>
#include <cmath>

#include "cpu/vector_targets.h"

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (UNGRAIN_UNUSED_TARGETS | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "methods/bm3d/filter_simd.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h must come before what it includes again.
#include <hwy/highway.h>

#include "methods/bm3d/filter_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ungrain::HWY_NAMESPACE {
namespace {

#if !UNGRAIN_HAS_VECTORS

void FilterGroupBySigma(const FilterCall&) {}
void FillTables(const Bm3dStep&, bool, double, const PlaneNoise*, std::span<const double, filter_patch>,
                FilterTables&) {}
void TransformColumns(PatchTransform, const ColumnTile&, const float*, float*) {}
void MoveColumns(PatchTransform, const ColumnTile&, const FilterTables&, float*, float*) {}
void SpreadWeights(const ColumnTile&, const FilterTables&, float*) {}

#else

// ---- A group

struct Threshold {
  const FilterTables& tables;
  int slot;
  std::size_t kept;

  HWY_INLINE void Begin(int of) { slot = of; }
  template <int Level>
  HWY_INLINE Row Apply(const Row& value, const Row&) {
    Row result;
    for (int i = 0; i < parts; ++i) {
      const auto keep = hn::Gt(hn::Abs(value.part[i]), hn::Load(d, tables.noise[Level][slot] + i * lanes));
      kept += hn::CountTrue(d, keep);
      result.part[i] = hn::IfThenElseZero(keep, value.part[i]);
    }
    return result;
  }
  template <int Level>
  HWY_INLINE Row ApplyToMean(const Row& value) {
    return Apply<Level>(value, value);
  }
};

// Turns the basic estimate's coefficients into factors of the noisy ones'.
struct WienerFactors {
  const FilterTables& tables;
  int slot;
  Vector squares;

  HWY_INLINE void Begin(int of) { slot = of; }
  template <int Level>
  HWY_INLINE Row Apply(const Row& value, const Row&) {
    Row result;
    for (int i = 0; i < parts; ++i) {
      const Vector share = SignalShare(value.part[i], hn::Load(d, tables.noise[Level][slot] + i * lanes));
      squares = hn::MulAdd(share, share, squares);
      result.part[i] = share;
    }
    return result;
  }
};

struct ThresholdShrinkage {
  template <int Count>
  static HWY_NOINLINE float Run(const FilterCall& call, float* coefficients) {
    Threshold shrink{call.tables, 0, 0};
    ThresholdAll<Count>(coefficients, shrink);
    std::size_t kept = shrink.kept;
    if (Count == 1 && patches_at_once == 2) kept /= 2;
    return 1.0F / static_cast<float>(std::max<std::size_t>(kept, 1));
  }
};

struct WienerShrinkage {
  template <int Count>
  static HWY_NOINLINE float Run(const FilterCall& call, const float* basic, float* noisy) {
    WienerFactors factors{call.tables, 0, hn::Zero(d)};
    WienerAll<Count>(basic, noisy, factors);
    return 1.0F / std::max(SumOver<Count>(factors.squares), 1.0F);
  }
};

template <class Transform>
void FilterByThreshold(const FilterCall& call) {
  alignas(64) float coefficients[group_floats];
  TransformAll<Transform>(call.noisy, call, coefficients);
  const float weight = ShrinkGroup<ThresholdShrinkage>(call, coefficients);
  AddAll<Transform>(call, coefficients, weight);
}

template <class Transform>
void FilterByWiener(const FilterCall& call) {
  alignas(64) float noisy[group_floats];
  alignas(64) float basic[group_floats];
  TransformAll<Transform>(call.noisy, call, noisy);
  TransformAll<Transform>(call.basic, call, basic);
  const float weight = ShrinkGroup<WienerShrinkage>(call, basic, noisy);
  AddAll<Transform>(call, noisy, weight);
}

template <class Transform>
void FilterBySigma(const FilterCall& call) {
  if (call.basic == nullptr) {
    FilterByThreshold<Transform>(call);
  } else {
    FilterByWiener<Transform>(call);
  }
}

void FilterGroupBySigma(const FilterCall& call) {
  if (call.transform == PatchTransform::dct) {
    FilterBySigma<Dct>(call);
  } else {
    FilterBySigma<Bior15>(call);
  }
}

// ---- Columns

template <class Transform>
void TransformColumnsBy(const ColumnTile& tile, const float* image, float* columns) {
  for (int y = 0; y + filter_patch <= tile.height; ++y) {
    for (int x = 0; x < tile.width; x += row_floats) {
      const float* from = image + y * tile.pitch + x;
      Patch p;
#pragma GCC unroll 8
      for (int i = 0; i < filter_patch; ++i) p.row[i] = LoadAlong(from + i * tile.pitch);
      Transform::Forward(p);
      Transpose(p);
      float* to = columns + y * tile.column_pitch() + x * filter_patch;
#pragma GCC unroll 8
      for (int i = 0; i < filter_patch; ++i) StoreHalves(p.row[i], to + 8 * i, to + 8 * (i + 8));
    }
  }
}

void TransformColumns(PatchTransform transform, const ColumnTile& tile, const float* image, float* columns) {
  if (transform == PatchTransform::dct) {
    TransformColumnsBy<Dct>(tile, image, columns);
  } else {
    TransformColumnsBy<Bior15>(tile, image, columns);
  }
}

template <class Transform>
void MoveColumnsBy(const ColumnTile& tile, const FilterTables& tables, float* columns, float* image) {
  for (int y = 0; y + filter_patch <= tile.height; ++y) {
    for (int x = 0; x < tile.width; x += row_floats) {
      float* from = columns + y * tile.column_pitch() + x * filter_patch;
      Patch p;
#pragma GCC unroll 8
      for (int i = 0; i < filter_patch; ++i) p.row[i] = LoadRow(from + 8 * i, from + 8 * (i + 8));
#pragma GCC unroll 8
      for (int i = 0; i < filter_patch; ++i) StoreAlong(Set(0.0F), from + i * row_floats);
      Transpose(p);
      Transform::Inverse(p);
      float* to = image + y * tile.pitch + x;
#pragma GCC unroll 8
      for (int i = 0; i < filter_patch; ++i) {
        StoreAlong(MulAdd(p.row[i], Load(tables.window[i]), LoadAlong(to + i * tile.pitch)),
                   to + i * tile.pitch);
      }
    }
  }
}

void MoveColumns(PatchTransform transform, const ColumnTile& tile, const FilterTables& tables, float* columns,
                 float* image) {
  if (transform == PatchTransform::dct) {
    MoveColumnsBy<Dct>(tile, tables, columns, image);
  } else {
    MoveColumnsBy<Bior15>(tile, tables, columns, image);
  }
}

void SpreadWeights(const ColumnTile& tile, const FilterTables& tables, float* weights) {
  // Rows from right to left and columns from bottom to top, so that no value is overwritten before it is
  // read.
  const int columns = (tile.width + row_floats - 1) / row_floats * row_floats;
  alignas(64) float line[1024 + 8] = {};
  for (int y = 0; y < tile.height; ++y) {
    float* row = weights + y * tile.pitch;
    std::copy_n(row, columns, line + 8);
    for (int x = 0; x < columns; x += row_floats) {
      Row sum = Mul(LoadAlong(line + 8 + x), Load(tables.window[0]));
#pragma GCC unroll 8
      for (int i = 1; i < filter_patch; ++i)
        sum = MulAdd(LoadAlong(line + 8 + x - i), Load(tables.window[i]), sum);
      StoreAlong(sum, row + x);
    }
  }
  for (int y = tile.height - 1; y >= 0; --y) {
    for (int x = 0; x < columns; x += row_floats) {
      float* to = weights + y * tile.pitch + x;
      Row sum = Mul(LoadAlong(to), Load(tables.window[0]));
      for (int i = 1; i < filter_patch && i <= y; ++i) {
        sum = MulAdd(LoadAlong(to - i * tile.pitch), Load(tables.window[i]), sum);
      }
      StoreAlong(sum, to);
    }
  }
}

void FillTables(const Bm3dStep& step, bool wiener, double sigma, const PlaneNoise* model,
                std::span<const double, filter_patch> window, FilterTables& tables) {
  const bool dct = step.transform == PatchTransform::dct;
  tables.model = model;
  tables.mean_variance = sigma * sigma;
  tables.mean_share = model == nullptr ? 1 : mean_share(*model);
  // A slot is a horizontal frequency, a lane a vertical one.
  const auto share = [&](int slot, int lane) { return model->shares[lane * filter_patch + slot]; };
  for (int level = 0; level < FilterTables::levels; ++level) {
    const double size = 1 << level;
    for (int slot = 0; slot < filter_patch; ++slot) {
      for (int lane = 0; lane < FilterTables::row; ++lane) {
        const int other = lane % filter_patch;
        const double norm = (dct ? Dct::Norm(slot, other) : Bior15::Norm(slot, other)) / std::sqrt(size);
        const double back = dct ? Dct::Back(slot, other) : Bior15::Back(slot, other);
        double deviation = sigma;
        if (model != nullptr) {
          deviation = model->strength * std::sqrt(share(slot, other));
          tables.shares[slot][lane] = static_cast<float>(share(slot, other));
        }
        const bool exact = model != nullptr && model->covariances != nullptr;
        const double noise = step.strength * (exact ? 1 : deviation) / norm;
        tables.noise[level][slot][lane] = static_cast<float>(wiener || exact ? noise * noise : noise);
        tables.back[slot][lane] = static_cast<float>(back);
        tables.window[slot][lane] = static_cast<float>(window[slot]);
      }
    }
  }
}

#endif

}  // namespace
}  // namespace ungrain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ungrain {

HWY_EXPORT(FilterGroupBySigma);
HWY_EXPORT(FillTables);
HWY_EXPORT(TransformColumns);
HWY_EXPORT(MoveColumns);
HWY_EXPORT(SpreadWeights);

bool filter_knows(const Bm3dStep& step) {
  return step.patch == filter_patch && step.group <= most_filtered && step.along == GroupTransform::haar &&
         (step.transform == PatchTransform::dct || step.transform == PatchTransform::bior15);
}

void fill_filter_tables(const Bm3dStep& step, bool wiener, double sigma, const PlaneNoise* model,
                        std::span<const double, filter_patch> window, FilterTables& tables) {
  HWY_DYNAMIC_DISPATCH(FillTables)(step, wiener, sigma, model, window, tables);
}

void transform_columns(PatchTransform transform, const ColumnTile& tile, const float* image, float* columns) {
  HWY_DYNAMIC_DISPATCH(TransformColumns)(transform, tile, image, columns);
}

void move_columns(PatchTransform transform, const ColumnTile& tile, const FilterTables& tables,
                  float* columns, float* image) {
  HWY_DYNAMIC_DISPATCH(MoveColumns)(transform, tile, tables, columns, image);
}

void spread_weights(const ColumnTile& tile, const FilterTables& tables, float* weights) {
  HWY_DYNAMIC_DISPATCH(SpreadWeights)(tile, tables, weights);
}

void filter_group(const FilterCall& call) {
  if (call.tables.common != nullptr) {
    filter_correlated_group(call);
  } else if (call.tables.model != nullptr) {
    filter_group_by_model(call);
  } else {
    HWY_DYNAMIC_DISPATCH(FilterGroupBySigma)(call);
  }
}

}  // namespace ungrain
#endif
