// With the group's mean subtracted from its patches, X of the guide and Z of the partly denoised image, a
// patch each row, the estimates are Xc (Xc^T Xc + d)^-1 Xc^T Zc. The Cholesky factor of the matrix in the
// middle, L L^T, makes this W W^T Zc with W = Xc L^-T, whose rows are at most 1 long: all that remains are
// products of matrices with well-sized numbers. The noise left in row i is |w_i|^2 - d |w_i L^-1|^2.
//
// What is added to the sums are the estimates less Z: the mean drops out, and constants stay as they are.
#include "methods/ridge/group_simd.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/scratch.h"
#include "cpu/vector_targets.h"

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (UNGRAIN_UNUSED_TARGETS | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "methods/ridge/group_simd.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h must come before what it includes again.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ungrain::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

#if !UNGRAIN_HAS_VECTORS

void CombineGroup(const CombineCall&) {}

#else

using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;
constexpr D d;
constexpr int lanes = static_cast<int>(HWY_MIN(HWY_LANES(float), std::size_t{16}));
using D4 = hn::FixedTag<float, 4>;
using D2 = hn::FixedTag<float, 2>;
constexpr D4 d4;
constexpr D2 d2;
constexpr int rows_at_once = 4;  // with three vectors of columns: 12 sums in registers

constexpr int UpTo(int step, int n) { return (n + step - 1) / step * step; }

// Four numbers of a row of the left matrix.
struct Four {
#if HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64
  // Multiplications take a lane of a register: replicating it would cost an arithmetic slot.
  float32x4_t numbers;
  HWY_INLINE explicit Four(const float* from) : numbers(vld1q_f32(from)) {}
  template <int Lane>
  HWY_INLINE V MulAdd(V right, V sum) const {
    return V{vfmaq_laneq_f32(sum.raw, right.raw, numbers, Lane)};
  }
#else
  const float* numbers;
  HWY_INLINE explicit Four(const float* from) : numbers(from) {}
  template <int Lane>
  HWY_INLINE V MulAdd(V right, V sum) const {
    return hn::MulAdd(hn::Set(d, numbers[Lane]), right, sum);
  }
#endif
};

template <int N, int Lane>
HWY_INLINE void AddMultiples(const Four& left, const V (&right)[N], V (&sums)[N]) {
#pragma GCC unroll 4
  for (int n = 0; n < N; ++n) sums[n] = left.template MulAdd<Lane>(right[n], sums[n]);
}

// A matrix whose rows lie `pitch` floats apart.
struct Matrix {
  float* data = nullptr;
  int pitch = 0;
  HWY_INLINE float* Row(int row) const { return data + row * pitch; }
};

// Four rows and N vectors of columns of the product of left's transpose with right, over their rows [first,
// end).
template <int N>
HWY_INLINE void TransposedBlock(const Matrix& left, const Matrix& right, int first, int end, int row,
                                int column, V (&sums)[rows_at_once][N]) {
#pragma GCC unroll 4
  for (int r = 0; r < rows_at_once; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) sums[r][n] = hn::Zero(d);
  }
  for (int k = first; k < end; ++k) {
    const Four numbers(left.Row(k) + row);
    V some[N];
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) some[n] = hn::LoadU(d, right.Row(k) + column + n * lanes);
    AddMultiples<N, 0>(numbers, some, sums[0]);
    AddMultiples<N, 1>(numbers, some, sums[1]);
    AddMultiples<N, 2>(numbers, some, sums[2]);
    AddMultiples<N, 3>(numbers, some, sums[3]);
  }
}

template <int N>
HWY_INLINE void StoreBlock(const V (&sums)[rows_at_once][N], const Matrix& to, int row, int column) {
#pragma GCC unroll 4
  for (int r = 0; r < rows_at_once; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) hn::StoreU(sums[r][n], d, to.Row(row + r) + column + n * lanes);
  }
}

// What one row of the right matrix adds to four rows of a product.
template <int N, int Lane>
HWY_INLINE void AddRow(const Four (&left)[rows_at_once], const float* right, V (&sums)[rows_at_once][N]) {
  V some[N];
#pragma GCC unroll 4
  for (int n = 0; n < N; ++n) some[n] = hn::LoadU(d, right + n * lanes);
#pragma GCC unroll 4
  for (int r = 0; r < rows_at_once; ++r) AddMultiples<N, Lane>(left[r], some, sums[r]);
}

// Four rows and N vectors of columns of a product, over right's rows [first, end), whole fours.
template <int N>
HWY_INLINE void ProductBlock(const Matrix& left, const Matrix& right, int first, int end, int row, int column,
                             V (&sums)[rows_at_once][N]) {
#pragma GCC unroll 4
  for (int r = 0; r < rows_at_once; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) sums[r][n] = hn::Zero(d);
  }
  for (int k = first; k < end; k += 4) {
    const Four numbers[rows_at_once] = {Four(left.Row(row) + k), Four(left.Row(row + 1) + k),
                                        Four(left.Row(row + 2) + k), Four(left.Row(row + 3) + k)};
    const float* from = right.Row(k) + column;
    AddRow<N, 0>(numbers, from, sums);
    AddRow<N, 1>(numbers, from + right.pitch, sums);
    AddRow<N, 2>(numbers, from + 2 * right.pitch, sums);
    AddRow<N, 3>(numbers, from + 3 * right.pitch, sums);
  }
}

// Calls body(first column, a constant with the number of vectors) for all columns.
template <class Body>
HWY_INLINE void ForColumns(int columns, const Body& body) {
  int column = 0;
  for (; columns - column >= 3 * lanes; column += 3 * lanes) body(column, std::integral_constant<int, 3>{});
  if (columns - column > lanes) {
    body(column, std::integral_constant<int, 2>{});
  } else if (columns - column > 0) {
    body(column, std::integral_constant<int, 1>{});
  }
}

// The sizes and the memory of one group's matrices.
struct Group {
  int side;
  int pixels;   // of a patch
  int columns;  // the same, whole vectors
  int count;    // patches
  int rows;     // the same, whole blocks; rows beyond are 0
  Matrix guide;
  Matrix partly;
  Matrix factor;    // n x n: the matrix, then the upper factor's inverse
  Matrix inverse;   // of the lower factor
  Matrix product;   // n x n: W^T Z
  Matrix combined;  // W

  explicit Group(const CombineCall& call)
      : side(call.patch),
        pixels(side * side),
        columns(UpTo(std::max(lanes, 4), pixels)),
        count(call.count),
        rows(UpTo(rows_at_once, count)) {
    ScratchPieces pieces(call.scratch);
    const auto matrix = [&](int height) {
      return Matrix{pieces.take<float>(static_cast<std::size_t>(height) * columns + 16), columns};
    };
    guide = matrix(rows);
    partly = matrix(rows);
    combined = matrix(rows);
    factor = matrix(columns);
    inverse = matrix(columns);
    product = matrix(columns);
  }
};

// A patch's rows side by side, then zeros. Rows are copied as two overlapping vectors.
HWY_INLINE void Gather(const Group& g, const float* from, int pitch, float* to) {
  for (int y = 0; y < g.side; ++y) {
    const float* row = from + y * pitch;
    const auto end = hn::LoadU(d4, row + g.side - 4);
    hn::StoreU(hn::LoadU(d4, row), d4, to + y * g.side);
    hn::StoreU(end, d4, to + y * g.side + g.side - 4);
  }
  for (int i = g.pixels; i < g.columns; ++i) to[i] = 0;
}

// Its square, and sums of squares, are finite.
constexpr float largest = 1e17F;

// The group's patches less their mean, with the patches' precisions as weights, and each multiplied with the
// root of its precision. The mean is taken of differences from the reference: of equal patches it is exact.
HWY_NOINLINE void GatherCentred(const Group& g, const CombineCall& call, const float* from,
                                const float* roots, const Matrix& to) {
  for (int i = 0; i < g.count; ++i) Gather(g, from + call.places[i], call.pitch, to.Row(i));
  float all = static_cast<float>(g.count);
  if (call.precisions != nullptr) {
    all = 0;
    for (int i = 0; i < g.count; ++i) all += call.precisions[i];
  }
  const V share = hn::Set(d, 1 / all);
  for (int column = 0; column < g.columns; column += lanes) {
    const V first = hn::LoadU(d, to.Row(0) + column);
    V sum = hn::Zero(d);
    for (int i = 1; i < g.count; ++i) {
      const V difference = hn::Sub(hn::LoadU(d, to.Row(i) + column), first);
      if (call.precisions != nullptr) {
        sum = hn::MulAdd(hn::Set(d, call.precisions[i]), difference, sum);
      } else {
        sum = hn::Add(sum, difference);
      }
    }
    const V mean = hn::Mul(sum, share);  // less the reference
    for (int i = 0; i < g.count; ++i) {
      V value = hn::Sub(hn::Sub(hn::LoadU(d, to.Row(i) + column), first), mean);
      value = hn::Clamp(value, hn::Set(d, -largest), hn::Set(d, largest));
      if (roots != nullptr) value = hn::Mul(value, hn::Set(d, roots[i]));
      hn::StoreU(value, d, to.Row(i) + column);
    }
  }
  std::fill(to.Row(g.count), to.Row(g.rows), 0.0F);
}

// The upper triangle of X^T X + noise, in whole blocks. Returns the noise, at least what float can tell.
HWY_NOINLINE float FillFactor(const Group& g, const CombineCall& call) {
  for (int row = 0; row < g.columns; row += rows_at_once) {
    ForColumns(g.columns, [&](int column, auto vectors) HWY_ATTR {
      constexpr int n = decltype(vectors)::value;
      if (column + n * lanes <= row) return;
      V sums[rows_at_once][n];
      TransposedBlock<n>(g.guide, g.guide, 0, g.count, row, column, sums);
      StoreBlock<n>(sums, g.factor, row, column);
    });
  }
  float energy = 0;
  for (int i = 0; i < g.columns; ++i) energy = std::max(energy, g.factor.Row(i)[i]);
  const float noise = std::max(call.noise, call.least_noise * energy);
  for (int i = 0; i < g.columns; ++i) g.factor.Row(i)[i] += noise;
  return noise;
}

// In place: the upper Cholesky factor, four rows at a time, and 1 over its diagonal. No pivot is below the
// noise, unless rounding makes it so beside pixels that are millions of times as far apart.
HWY_NOINLINE void Factorise(const Group& g, float noise, float* reciprocals) {
  for (int first = 0; first < g.columns; first += rows_at_once) {
    const int aligned = first / lanes * lanes;
    // What the rows above take away.
    ForColumns(g.columns - aligned, [&](int right, auto vectors) HWY_ATTR {
      constexpr int n = decltype(vectors)::value;
      V sums[rows_at_once][n];
      TransposedBlock<n>(g.factor, g.factor, 0, first, first, aligned + right, sums);
      for (int r = 0; r < rows_at_once; ++r) {
        for (int v = 0; v < n; ++v) {
          float* at = g.factor.Row(first + r) + aligned + right + v * lanes;
          hn::StoreU(hn::Sub(hn::LoadU(d, at), sums[r][v]), d, at);
        }
      }
    });
    for (int j = first; j < first + rows_at_once; ++j) {
      float* own = g.factor.Row(j);
      const float reciprocal = 1 / std::sqrt(std::max(noise, own[j]));
      reciprocals[j] = reciprocal;
      float numbers[rows_at_once];  // of the rows below, in this block
      for (int i = j + 1; i < first + rows_at_once; ++i) numbers[i - first] = own[i] * reciprocal;
      for (int column = aligned; column < g.columns; column += lanes) {
        const V scaled = hn::Mul(hn::LoadU(d, own + column), hn::Set(d, reciprocal));
        hn::StoreU(scaled, d, own + column);
        for (int i = j + 1; i < first + rows_at_once; ++i) {
          float* at = g.factor.Row(i) + column;
          hn::StoreU(hn::NegMulAdd(hn::Set(d, numbers[i - first]), scaled, hn::LoadU(d, at)), d, at);
        }
      }
    }
  }
}

// The inverse of the lower factor, four rows at a time, and its transpose in place of the upper factor.
HWY_NOINLINE void InvertFactor(const Group& g, const float* reciprocals) {
  for (int first = 0; first < g.columns; first += rows_at_once) {
    for (int i = first; i < first + rows_at_once; ++i) std::fill_n(g.inverse.Row(i), g.columns, 0.0F);
    // Rows above their diagonal are 0.
    ForColumns(UpTo(lanes, first), [&](int column, auto vectors) HWY_ATTR {
      constexpr int n = decltype(vectors)::value;
      V sums[rows_at_once][n];
      TransposedBlock<n>(g.factor, g.inverse, column, first, first, column, sums);
      StoreBlock<n>(sums, g.inverse, first, column);
    });
    for (int i = first; i < first + rows_at_once; ++i) {
      float* row = g.inverse.Row(i);
      for (int k = first; k < i; ++k) {
        const float number = g.factor.Row(k)[i];
        const float* above = g.inverse.Row(k);
        for (int column = 0; column < i; column += lanes) {
          hn::StoreU(hn::MulAdd(hn::Set(d, number), hn::LoadU(d, above + column), hn::LoadU(d, row + column)),
                     d, row + column);
        }
      }
      const V scale = hn::Set(d, -reciprocals[i]);
      for (int column = 0; column < i; column += lanes)
        hn::StoreU(hn::Mul(hn::LoadU(d, row + column), scale), d, row + column);
      row[i] = reciprocals[i];
    }
  }
  for (int i = 0; i < g.columns; ++i) {
    std::fill_n(g.factor.Row(i), i, 0.0F);
    for (int k = i; k < g.columns; ++k) g.factor.Row(i)[k] = g.inverse.Row(k)[i];
  }
}

// Rows of W are at most 1 long, unless rounding makes them longer beside pixels that are millions of times as
// far apart.
HWY_INLINE void Shorten(const Group& g, float* row) {
  V squares = hn::Zero(d);
  for (int column = 0; column < g.columns; column += lanes) {
    const V number = hn::LoadU(d, row + column);
    squares = hn::MulAdd(number, number, squares);
  }
  constexpr float rounding = 1.01F;
  const float length = hn::GetLane(hn::SumOfLanes(d, squares));
  if (length <= rounding) return;
  const bool is_number = length < std::numeric_limits<float>::infinity();
  const V scale = hn::Set(d, is_number ? 1 / std::sqrt(length) : 0);
  for (int column = 0; column < g.columns; column += lanes) {
    const V number = hn::LoadU(d, row + column);
    hn::StoreU(is_number ? hn::Mul(number, scale) : hn::Zero(d), d, row + column);
  }
}

// W = X U^-1
HWY_NOINLINE void FillCombined(const Group& g) {
  for (int row = 0; row < g.rows; row += rows_at_once) {
    ForColumns(g.columns, [&](int column, auto vectors) HWY_ATTR {
      constexpr int n = decltype(vectors)::value;
      V sums[rows_at_once][n];
      ProductBlock<n>(g.guide, g.factor, 0, column + n * lanes, row, column, sums);
      for (int r = 0; r < rows_at_once; ++r) {
        for (int v = 0; v < n; ++v) hn::StoreU(sums[r][v], d, g.combined.Row(row + r) + column + v * lanes);
      }
    });
    for (int r = 0; r < rows_at_once; ++r) Shorten(g, g.combined.Row(row + r));
  }
}

// The noise left in each row, besides the mean's, in units of the noise.
HWY_NOINLINE void NoiseLeft(const Group& g, float noise, float* left) {
  for (int row = 0; row < g.rows; row += rows_at_once) {
    V squares[rows_at_once];
    for (int r = 0; r < rows_at_once; ++r) {
      squares[r] = hn::Zero(d);
      for (int column = 0; column < g.columns; column += lanes) {
        const V number = hn::LoadU(d, g.combined.Row(row + r) + column);
        squares[r] = hn::MulAdd(number, number, squares[r]);
      }
    }
    const V factor = hn::Set(d, noise);
    ForColumns(g.columns, [&](int column, auto vectors) HWY_ATTR {
      constexpr int n = decltype(vectors)::value;
      V sums[rows_at_once][n];
      ProductBlock<n>(g.combined, g.inverse, column, g.columns, row, column, sums);
      for (int r = 0; r < rows_at_once; ++r) {
        for (int v = 0; v < n; ++v) {
          squares[r] = hn::NegMulAdd(hn::Mul(sums[r][v], factor), sums[r][v], squares[r]);
        }
      }
    });
    for (int r = 0; r < rows_at_once; ++r) left[row + r] = hn::GetLane(hn::SumOfLanes(d, squares[r]));
  }
}

// The estimates less Z, in place of the guide.
HWY_NOINLINE void FillDifferences(const Group& g, const float* roots) {
  for (int row = 0; row < g.columns; row += rows_at_once) {
    ForColumns(g.columns, [&](int column, auto vectors) HWY_ATTR {
      constexpr int n = decltype(vectors)::value;
      V sums[rows_at_once][n];
      TransposedBlock<n>(g.combined, g.partly, 0, g.count, row, column, sums);
      StoreBlock<n>(sums, g.product, row, column);
    });
  }
  for (int row = 0; row < g.rows; row += rows_at_once) {
    ForColumns(g.columns, [&](int column, auto vectors) HWY_ATTR {
      constexpr int n = decltype(vectors)::value;
      V sums[rows_at_once][n];
      ProductBlock<n>(g.combined, g.product, 0, g.columns, row, column, sums);
      for (int r = 0; r < rows_at_once; ++r) {
        for (int v = 0; v < n; ++v) {
          V value = hn::Sub(sums[r][v], hn::LoadU(d, g.partly.Row(row + r) + column + v * lanes));
          if (roots != nullptr && row + r < g.count) value = hn::Mul(value, hn::Set(d, 1 / roots[row + r]));
          hn::StoreU(value, d, g.guide.Row(row + r) + column + v * lanes);
        }
      }
    });
  }
}

// Adds a patch, times a weight.
HWY_INLINE void Scatter(const Group& g, const float* from, float weight, int pitch, float* to) {
  const auto factor = hn::Set(d4, weight);
  for (int y = 0; y < g.side; ++y) {
    const float* row = from + y * g.side;
    float* sums = to + y * pitch;
    hn::StoreU(hn::MulAdd(factor, hn::LoadU(d4, row), hn::LoadU(d4, sums)), d4, sums);
    int x = 4;
    for (; x + 2 <= g.side; x += 2) {
      hn::StoreU(hn::MulAdd(hn::Set(d2, weight), hn::LoadU(d2, row + x), hn::LoadU(d2, sums + x)), d2,
                 sums + x);
    }
    for (; x < g.side; ++x) sums[x] += weight * row[x];
  }
}

void CombineGroup(const CombineCall& call) {
  const Group g(call);
  float roots[most_combined] = {};
  float all = static_cast<float>(g.count);
  if (call.precisions != nullptr) {
    all = 0;
    for (int i = 0; i < g.count; ++i) {
      roots[i] = std::sqrt(call.precisions[i]);
      all += call.precisions[i];
    }
  }
  const float* const scaled = call.precisions != nullptr ? roots : nullptr;
  GatherCentred(g, call, call.guide, scaled, g.guide);
  GatherCentred(g, call, call.partly, scaled, g.partly);

  float reciprocals[longest_patch * longest_patch + 16];
  const float noise = FillFactor(g, call);
  Factorise(g, noise, reciprocals);
  InvertFactor(g, reciprocals);
  FillCombined(g);
  float left[most_combined];
  NoiseLeft(g, noise, left);
  FillDifferences(g, scaled);

  const float least = 1 / static_cast<float>(g.count);
  for (int i = 0; i < g.count; ++i) {
    const float own = scaled != nullptr ? left[i] / call.precisions[i] : left[i];
    const float weight = call.weight / std::max(least, 1 / all + own);
    const std::int32_t place = call.places[i];
    if (call.guide_sums != nullptr) Scatter(g, g.guide.Row(i), weight, call.pitch, call.guide_sums + place);
    Scatter(g, g.guide.Row(i), weight * call.step, call.pitch, call.partly_sums + place);
    call.weight_sums[place] += weight;
  }
}

#endif

}  // namespace
}  // namespace ungrain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ungrain {

HWY_EXPORT(CombineGroup);

void combine_group(const CombineCall& call) { HWY_DYNAMIC_DISPATCH(CombineGroup)(call); }

}  // namespace ungrain
#endif
