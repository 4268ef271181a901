// A cube's rows of 4 voxels fill a vector of 4 lanes; rows of 5 take two, whose other lanes are 0.
#include "methods/bm4d/cubes_simd.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "cpu/vector_targets.h"

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (UNGRAIN_UNUSED_TARGETS | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "methods/bm4d/cubes_simd.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h must come before what it includes again.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ungrain::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

#if !UNGRAIN_HAS_VECTORS

void CubeDistances(int, const float*, const float*, std::ptrdiff_t, std::ptrdiff_t, int, float, float*) {}
void ComparedVoxels(const float*, int, float, float*) {}
void FilterCubes(const FilterCall&) {}

#else

using D = hn::CappedTag<float, 16>;
using D4 = hn::FixedTag<float, 4>;
using V4 = hn::Vec<D4>;

template <int Cube>
void Distances(const float* HWY_RESTRICT reference, const float* HWY_RESTRICT first, std::ptrdiff_t line,
               std::ptrdiff_t slice, int count, float enough, float* HWY_RESTRICT distances) {
  const D d;
  using V = hn::Vec<D>;
  constexpr int lanes = static_cast<int>(hn::MaxLanes(D()));
  constexpr int at_once = lanes >= 8 ? 2 : 3;  // vectors of candidates
  const V most = hn::Set(d, largest_difference);
  for (int begin = 0; begin < count; begin += at_once * lanes) {
    V sums[at_once];
    for (int v = 0; v < at_once; ++v) sums[v] = hn::Zero(d);
    const bool last_is_used = begin + (at_once - 1) * lanes < count;
    const auto add_row = [&](const float* row, const float* compared, auto used) HWY_ATTR {
      for (int x = 0; x < Cube; ++x) {
        const V own = hn::Set(d, compared[x]);
        for (int v = 0; v < used; ++v) {
          const V difference = hn::Min(hn::AbsDiff(hn::LoadU(d, row + x + v * lanes), own), most);
          sums[v] = hn::MulAdd(difference, difference, sums[v]);
        }
      }
    };
    for (int z = 0; z < Cube; ++z) {
      for (int y = 0; y < Cube; ++y) {
        const float* row = first + begin + z * slice + y * line;
        const float* compared = reference + (z * Cube + y) * Cube;
        if (last_is_used) {
          add_row(row, compared, std::integral_constant<int, at_once>());
        } else {
          add_row(row, compared, std::integral_constant<int, at_once - 1>());
        }
      }
      V least = sums[0];
      for (int v = 1; v < at_once - (last_is_used ? 0 : 1); ++v) least = hn::Min(least, sums[v]);
      if (hn::AllTrue(d, hn::Gt(least, hn::Set(d, enough)))) break;
    }
    for (int v = 0; v < at_once - (last_is_used ? 0 : 1); ++v) {
      hn::StoreU(sums[v], d, distances + begin + v * lanes);
    }
  }
}

void CubeDistances(int cube, const float* reference, const float* first, std::ptrdiff_t line,
                   std::ptrdiff_t slice, int count, float enough, float* distances) {
  if (cube == 4) {
    Distances<4>(reference, first, line, slice, count, enough, distances);
  } else {
    Distances<5>(reference, first, line, slice, count, enough, distances);
  }
}

void ComparedVoxels(const float* HWY_RESTRICT from, int count, float scale, float* HWY_RESTRICT to) {
  const D d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  const auto factor = hn::Set(d, scale);
  int x = 0;
  for (; x + lanes <= count; x += lanes) {
    hn::StoreU(hn::Round(hn::Mul(hn::LoadU(d, from + x), factor)), d, to + x);
  }
  for (; x < count; ++x) to[x] = std::nearbyint(from[x] * scale);
}

constexpr D4 d4;

template <int Cube>
struct Layout {
  static constexpr int vectors = (Cube + 3) / 4;  // of a row
  static constexpr int row = 4 * vectors;         // floats
  static constexpr int rows = Cube * Cube;
  static constexpr int cube = rows * row;
};

// The matrix along x: coefficient k of a row is the sum of its voxels times row k of the matrix. `columns`
// are the columns of that matrix, of Layout::row floats. The row's fifth voxel is lane 0 of `fifth`.
template <int Cube>
HWY_INLINE V4 AlongRow(const float* columns, int vector, V4 row, V4 fifth) {
  using L = Layout<Cube>;
  const float* at = columns + 4 * vector;
  V4 sum = hn::Mul(hn::Broadcast<0>(row), hn::Load(d4, at));
  sum = hn::MulAdd(hn::Broadcast<1>(row), hn::Load(d4, at + L::row), sum);
  sum = hn::MulAdd(hn::Broadcast<2>(row), hn::Load(d4, at + 2 * L::row), sum);
  sum = hn::MulAdd(hn::Broadcast<3>(row), hn::Load(d4, at + 3 * L::row), sum);
  if constexpr (Cube == 5) sum = hn::MulAdd(hn::Broadcast<0>(fifth), hn::Load(d4, at + 4 * L::row), sum);
  return sum;
}

// The matrix along y or z: `step` rows lead to the next of the axis.
template <int Cube>
HWY_INLINE void AcrossRows(const float* matrix, float* cube, int step) {
  using L = Layout<Cube>;
  for (int i = 0; i < L::vectors; ++i) {
    V4 in[Cube];
    for (int j = 0; j < Cube; ++j) in[j] = hn::Load(d4, cube + j * step * L::row + 4 * i);
    for (int k = 0; k < Cube; ++k) {
      V4 sum = hn::Mul(in[0], hn::Set(d4, matrix[k * Cube]));
      for (int j = 1; j < Cube; ++j) sum = hn::MulAdd(in[j], hn::Set(d4, matrix[k * Cube + j]), sum);
      hn::Store(sum, d4, cube + k * step * L::row + 4 * i);
    }
  }
}

template <int Cube>
HWY_INLINE void AcrossSlices(const float* matrix, float* cube) {
  using L = Layout<Cube>;
  for (int z = 0; z < Cube; ++z) AcrossRows<Cube>(matrix, cube + z * Cube * L::row, 1);
  for (int y = 0; y < Cube; ++y) AcrossRows<Cube>(matrix, cube + y * L::row, Cube);
}

// The columns of a matrix, padded with 0.
template <int Cube>
void FillColumns(const float* matrix, float* columns) {
  using L = Layout<Cube>;
  std::fill_n(columns, Cube * L::row, 0.0F);
  for (int k = 0; k < Cube; ++k) {
    for (int j = 0; j < Cube; ++j) columns[j * L::row + k] = matrix[k * Cube + j];
  }
}

// One level of Haar's transform, in place: sums stay at the first of each pair, differences at the second.
HWY_INLINE void HaarLevel(float* cubes, int count, int step, int floats) {
  const V4 half = hn::Set(d4, 0.70710678118654752F);
  for (int first = 0; first < count; first += 2 * step) {
    float* a = cubes + first * floats;
    float* b = a + step * floats;
    for (int i = 0; i < floats; i += 4) {
      const V4 left = hn::Mul(hn::Load(d4, a + i), half);
      const V4 right = hn::Mul(hn::Load(d4, b + i), half);
      hn::Store(hn::Add(left, right), d4, a + i);
      hn::Store(hn::Sub(left, right), d4, b + i);
    }
  }
}

template <int Cube>
void Transform(const FilterCall& call, const float* columns, const CubeSlices<const float>& from,
               float* cubes) {
  using L = Layout<Cube>;
  const CubeGroup& group = *call.group;
  for (int m = 0; m < group.count; ++m) {
    float* cube = cubes + m * L::cube;
    for (int z = 0; z < Cube; ++z) {
      const float* slice = from.at(group.z[m] + z) + group.places[m];
      for (int y = 0; y < Cube; ++y) {
        const float* row = slice + y * call.line;
        float* to = cube + (z * Cube + y) * L::row;
        const V4 four = hn::LoadU(d4, row);
        const V4 fifth = Cube == 5 ? hn::Set(d4, row[Cube - 1]) : hn::Zero(d4);
        for (int i = 0; i < L::vectors; ++i)
          hn::Store(AlongRow<Cube>(columns, i, four, fifth), d4, to + 4 * i);
      }
    }
    AcrossSlices<Cube>(call.transform, cube);
  }
  for (int step = 1; step < group.count; step *= 2) HaarLevel(cubes, group.count, step, L::cube);
}

// Calls visit(i, own) for each vector of coefficients: it lies i floats from the group's first and `own` from
// its cube's first.
template <int Cube, class Visit>
HWY_INLINE void ForCoefficients(const CubeGroup& group, const Visit& visit) {
  for (int m = 0; m < group.count; ++m) {
    for (int own = 0; own < Layout<Cube>::cube; own += 4) visit(m * Layout<Cube>::cube + own, own);
  }
}

// Both return the sum of the squares of the factors that coefficients are multiplied by.
template <int Cube, bool White>
float Threshold(const FilterCall& call, float* cubes) {
  const V4 threshold = hn::Set(d4, call.threshold);
  const V4 one = hn::Set(d4, 1.0F);
  V4 kept = hn::Zero(d4);
  const float mean = cubes[0];
  ForCoefficients<Cube>(*call.group, [&](int i, int own) HWY_ATTR {
    const V4 least = White ? threshold : hn::Mul(threshold, hn::LoadU(d4, call.deviations + own));
    const V4 value = hn::Load(d4, cubes + i);
    const auto large = hn::And(hn::Ge(hn::Abs(value), least), hn::Ne(value, hn::Zero(d4)));
    hn::Store(hn::IfThenElseZero(large, value), d4, cubes + i);
    kept = hn::Add(kept, hn::IfThenElseZero(large, one));
  });
  float sum = hn::GetLane(hn::SumOfLanes(d4, kept));
  if (cubes[0] != mean || mean == 0) sum += 1;
  cubes[0] = mean;
  return sum;
}

template <int Cube, bool White>
float Shrink(const FilterCall& call, const float* guide, float* cubes) {
  const V4 variance = hn::Set(d4, call.variance);
  V4 sum = hn::Zero(d4);
  ForCoefficients<Cube>(*call.group, [&](int i, int own) HWY_ATTR {
    V4 noise = variance;
    if constexpr (!White) {
      const V4 deviation = hn::LoadU(d4, call.deviations + own);
      noise = hn::Mul(variance, hn::Mul(deviation, deviation));
    }
    const V4 signal = hn::Load(d4, guide + i);
    const V4 energy = hn::Mul(signal, signal);
    const V4 factor = hn::Div(energy, hn::Add(energy, noise));
    hn::Store(hn::Mul(hn::Load(d4, cubes + i), factor), d4, cubes + i);
    sum = hn::MulAdd(factor, factor, sum);
  });
  return hn::GetLane(hn::SumOfLanes(d4, sum));
}

template <int Cube>
HWY_INLINE void AddRow(const float* columns, const float* row, const float* window, float weight,
                       float* values, float* weights) {
  const V4 four = hn::Load(d4, row);
  const V4 fifth = Cube == 5 ? hn::Load(d4, row + Layout<Cube>::row - 4) : hn::Zero(d4);
  const V4 share = hn::Mul(hn::Set(d4, weight), hn::LoadU(d4, window));
  const V4 estimate = AlongRow<Cube>(columns, 0, four, fifth);
  hn::StoreU(hn::MulAdd(share, estimate, hn::LoadU(d4, values)), d4, values);
  hn::StoreU(hn::Add(share, hn::LoadU(d4, weights)), d4, weights);
  if constexpr (Cube == 5) {
    const float last = weight * window[4];
    values[4] += last * hn::GetLane(AlongRow<Cube>(columns, 1, four, fifth));
    weights[4] += last;
  }
}

template <int Cube>
void Filter(const FilterCall& call) {
  using L = Layout<Cube>;
  const CubeGroup& group = *call.group;
  HWY_ALIGN float columns[largest_cube * 8];
  HWY_ALIGN float back_columns[largest_cube * 8];
  FillColumns<Cube>(call.transform, columns);
  FillColumns<Cube>(call.back, back_columns);
  float* const cubes = call.scratch;
  float* const guide = cubes + filter_cubes_floats / 2;
  const bool white = call.deviations == nullptr;
  Transform<Cube>(call, columns, call.noisy, cubes);
  float squares = 0;
  if (call.guide.data != nullptr) {
    Transform<Cube>(call, columns, call.guide, guide);
    squares = white ? Shrink<Cube, true>(call, guide, cubes) : Shrink<Cube, false>(call, guide, cubes);
  } else {
    squares = white ? Threshold<Cube, true>(call, cubes) : Threshold<Cube, false>(call, cubes);
  }
  const float weight = 1 / std::max(squares, 1.0F);
  for (int step = group.count / 2; step >= 1; step /= 2) HaarLevel(cubes, group.count, step, L::cube);
  for (int m = 0; m < group.count; ++m) {
    float* cube = cubes + m * L::cube;
    AcrossSlices<Cube>(call.back, cube);
    for (int z = 0; z < Cube; ++z) {
      const int at = group.z[m] + z;
      if (at < call.first_z || at >= call.end_z) continue;
      for (int y = 0; y < Cube; ++y) {
        const int row = z * Cube + y;
        const std::ptrdiff_t to = group.places[m] + y * call.line;
        AddRow<Cube>(back_columns, cube + row * L::row, call.window + row * Cube, weight,
                     call.values.at(at) + to, call.weights.at(at) + to);
      }
    }
  }
}

void FilterCubes(const FilterCall& call) {
  if (call.cube == 4) {
    Filter<4>(call);
  } else {
    Filter<5>(call);
  }
}

#endif

}  // namespace
}  // namespace ungrain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ungrain {

HWY_EXPORT(CubeDistances);
HWY_EXPORT(ComparedVoxels);
HWY_EXPORT(FilterCubes);

void cube_distances(int cube, const float* reference, const float* first, std::ptrdiff_t line,
                    std::ptrdiff_t slice, int count, float enough, float* distances) {
  HWY_DYNAMIC_DISPATCH(CubeDistances)(cube, reference, first, line, slice, count, enough, distances);
}

void compared_voxels(const float* from, int count, float scale, float* to) {
  HWY_DYNAMIC_DISPATCH(ComparedVoxels)(from, count, scale, to);
}

void filter_cubes(const FilterCall& call) { HWY_DYNAMIC_DISPATCH(FilterCubes)(call); }

}  // namespace ungrain
#endif
