// Columns are transformed once for all patches that share them, rows for each patch by itself; vectors of
// sixteen hold two patches, which are half a group apart. Filtered patches are added up before their columns
// are transformed back. No transform normalises: what coefficients are compared with and multiplied by makes
// up for it. Along the group goes a Haar transform, depth first, from and to memory: a difference is shrunk
// as soon as it is there.
#include "methods/bm3d/filter_simd.h"

#include <algorithm>
#include <cmath>

#include "methods/bm3d/vector_targets.h"

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (UNGRAIN_BM3D_UNUSED_TARGETS | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "methods/bm3d/filter_simd.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h must come before what it includes again.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ungrain::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

#if !UNGRAIN_BM3D_HAS_VECTORS

void FilterGroup(const FilterCall&) {}
void FillTables(const Bm3dStep&, bool, double, const PlaneNoise*, std::span<const double, filter_patch>,
                FilterTables&) {}
void TransformColumns(PatchTransform, const ColumnTile&, const float*, float*) {}
void AddColumns(PatchTransform, const ColumnTile&, const FilterTables&, const float*, float*) {}
void SpreadWeights(const ColumnTile&, const FilterTables&, float*) {}

#else

constexpr int lanes = static_cast<int>(HWY_MIN(HWY_LANES(float), std::size_t{16}));
using Floats = hn::CappedTag<float, 16>;
constexpr Floats d;
using Vector = hn::Vec<Floats>;

// A row of eight: of two patches, of one, or in two vectors.
constexpr int patches_at_once = lanes == 16 ? 2 : 1;
constexpr int row_floats = 8 * patches_at_once;

// Constructors that the compiler writes itself come after the instructions' pragma has ended, which gcc
// refuses on ARM.
template <int Parts>
struct Rows {
  Vector part[Parts];
  HWY_INLINE Rows() {}  // NOLINT
};
using Row = Rows<lanes == 4 ? 2 : 1>;
constexpr int parts = lanes == 4 ? 2 : 1;

HWY_INLINE Row Load(const float* from) {
  Row row;
  row.part[0] = hn::Load(d, from);
  if constexpr (parts == 2) row.part[1] = hn::Load(d, from + 4);
  return row;
}
HWY_INLINE void Store(const Row& row, float* to) {
  hn::Store(row.part[0], d, to);
  if constexpr (parts == 2) hn::Store(row.part[1], d, to + 4);
}
HWY_INLINE Row Set(float value) {
  Row row;
  for (Vector& part : row.part) part = hn::Set(d, value);
  return row;
}
#define UNGRAIN_ROW_OPERATION(name, operation)                                                           \
  HWY_INLINE Row name(const Row& a, const Row& b) {                                                      \
    Row row;                                                                                             \
    row.part[0] = hn::operation(a.part[0], b.part[0]);                                                   \
    if constexpr (parts == 2) row.part[parts - 1] = hn::operation(a.part[parts - 1], b.part[parts - 1]); \
    return row;                                                                                          \
  }
UNGRAIN_ROW_OPERATION(Add, Add)
UNGRAIN_ROW_OPERATION(Sub, Sub)
UNGRAIN_ROW_OPERATION(Mul, Mul)
#undef UNGRAIN_ROW_OPERATION
// a * b + c and c - a * b.
HWY_INLINE Row MulAdd(const Row& a, const Row& b, const Row& c) {
  Row row;
  row.part[0] = hn::MulAdd(a.part[0], b.part[0], c.part[0]);
  if constexpr (parts == 2)
    row.part[parts - 1] = hn::MulAdd(a.part[parts - 1], b.part[parts - 1], c.part[parts - 1]);
  return row;
}
HWY_INLINE Row NegMulAdd(const Row& a, const Row& b, const Row& c) {
  Row row;
  row.part[0] = hn::NegMulAdd(a.part[0], b.part[0], c.part[0]);
  if constexpr (parts == 2)
    row.part[parts - 1] = hn::NegMulAdd(a.part[parts - 1], b.part[parts - 1], c.part[parts - 1]);
  return row;
}

// ---- Patches in memory

struct Patch {
  Row row[filter_patch];
  HWY_INLINE Patch() {}  // NOLINT
};

HWY_INLINE Row LoadRow(const float* first, const float* second) {
  Row row;
#if HWY_TARGET == HWY_AVX3
  const hn::Half<Floats> half;
  row.part[0] = hn::Combine(d, hn::LoadU(half, second), hn::LoadU(half, first));
#else
  (void)second;
  row.part[0] = hn::LoadU(d, first);
  if constexpr (parts == 2) row.part[parts - 1] = hn::LoadU(d, first + 4);
#endif
  return row;
}

// Two patches may overlap: one after the other.
HWY_INLINE void AddPatches(const Patch& p, float* first, float* second) {
#if HWY_TARGET == HWY_AVX3
  const hn::Half<Floats> half;
#pragma GCC unroll 8
  for (int x = 0; x < filter_patch; ++x) {
    hn::StoreU(hn::Add(hn::LoadU(half, first + 8 * x), hn::LowerHalf(half, p.row[x].part[0])), half,
               first + 8 * x);
  }
  if (second == nullptr) return;
#pragma GCC unroll 8
  for (int x = 0; x < filter_patch; ++x) {
    hn::StoreU(hn::Add(hn::LoadU(half, second + 8 * x), hn::UpperHalf(half, p.row[x].part[0])), half,
               second + 8 * x);
  }
#else
  (void)second;
#pragma GCC unroll 8
  for (int x = 0; x < filter_patch; ++x) {
    hn::StoreU(hn::Add(hn::LoadU(d, first + 8 * x), p.row[x].part[0]), d, first + 8 * x);
    if constexpr (parts == 2) {
      hn::StoreU(hn::Add(hn::LoadU(d, first + 8 * x + 4), p.row[x].part[parts - 1]), d, first + 8 * x + 4);
    }
  }
#endif
}

// Eight floats of each patch of a row.
HWY_INLINE void StoreHalves(const Row& row, float* first, float* second) {
#if HWY_TARGET == HWY_AVX3
  const hn::Half<Floats> half;
  hn::StoreU(hn::LowerHalf(half, row.part[0]), half, first);
  hn::StoreU(hn::UpperHalf(half, row.part[0]), half, second);
#else
  (void)second;
  hn::StoreU(row.part[0], d, first);
  if constexpr (parts == 2) hn::StoreU(row.part[parts - 1], d, first + 4);
#endif
}

// As many floats side by side as a row has.
HWY_INLINE Row LoadAlong(const float* from) {
  Row row;
  row.part[0] = hn::LoadU(d, from);
  if constexpr (parts == 2) row.part[parts - 1] = hn::LoadU(d, from + 4);
  return row;
}
HWY_INLINE void StoreAlong(const Row& row, float* to) {
  hn::StoreU(row.part[0], d, to);
  if constexpr (parts == 2) hn::StoreU(row.part[parts - 1], d, to + 4);
}

template <class V>
HWY_INLINE V LowerPairs(V a, V b) {
  const hn::Repartition<double, Floats> wide;
  return hn::BitCast(d, hn::InterleaveLower(wide, hn::BitCast(wide, a), hn::BitCast(wide, b)));
}
template <class V>
HWY_INLINE V UpperPairs(V a, V b) {
  const hn::Repartition<double, Floats> wide;
  return hn::BitCast(d, hn::InterleaveUpper(wide, hn::BitCast(wide, a), hn::BitCast(wide, b)));
}

// Blocks of 4 x 4 by themselves.
HWY_INLINE void TransposeBlocks(Vector& a, Vector& b, Vector& c, Vector& e) {
  const Vector ab_lower = hn::InterleaveLower(d, a, b);
  const Vector ab_upper = hn::InterleaveUpper(d, a, b);
  const Vector ce_lower = hn::InterleaveLower(d, c, e);
  const Vector ce_upper = hn::InterleaveUpper(d, c, e);
  a = LowerPairs(ab_lower, ce_lower);
  b = UpperPairs(ab_lower, ce_lower);
  c = LowerPairs(ab_upper, ce_upper);
  e = UpperPairs(ab_upper, ce_upper);
}

// The second block of a changes places with the first of b, for each patch.
HWY_INLINE void SwapBlocks(Vector& a, Vector& b) {
#if HWY_TARGET == HWY_AVX3
  const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
  const __m512i second = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
  const __m512d x = _mm512_castps_pd(a.raw);
  const __m512d y = _mm512_castps_pd(b.raw);
  a = Vector{_mm512_castpd_ps(_mm512_permutex2var_pd(x, first, y))};
  b = Vector{_mm512_castpd_ps(_mm512_permutex2var_pd(x, second, y))};
#elif HWY_TARGET == HWY_AVX2
  const Vector x = a;
  a = hn::ConcatLowerLower(d, b, x);
  b = hn::ConcatUpperUpper(d, b, x);
#else
  const Vector x = a;
  a = b;
  b = x;
#endif
}

HWY_INLINE void Transpose(Patch& p) {
  TransposeBlocks(p.row[0].part[0], p.row[1].part[0], p.row[2].part[0], p.row[3].part[0]);
  TransposeBlocks(p.row[4].part[0], p.row[5].part[0], p.row[6].part[0], p.row[7].part[0]);
  if constexpr (parts == 2) {
    TransposeBlocks(p.row[0].part[parts - 1], p.row[1].part[parts - 1], p.row[2].part[parts - 1],
                    p.row[3].part[parts - 1]);
    TransposeBlocks(p.row[4].part[parts - 1], p.row[5].part[parts - 1], p.row[6].part[parts - 1],
                    p.row[7].part[parts - 1]);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) SwapBlocks(p.row[i].part[parts - 1], p.row[i + 4].part[0]);
  } else {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) SwapBlocks(p.row[i].part[0], p.row[i + 4].part[0]);
  }
}

// ---- Transforms of patches

// Arai, Agui and Nakajima's: the scales that it leaves out are left to the tables.
struct Dct {
  static HWY_INLINE void Forward(Patch& p) {
    const Row s0 = Add(p.row[0], p.row[7]);
    const Row d0 = Sub(p.row[0], p.row[7]);
    const Row s1 = Add(p.row[1], p.row[6]);
    const Row d1 = Sub(p.row[1], p.row[6]);
    const Row s2 = Add(p.row[2], p.row[5]);
    const Row d2 = Sub(p.row[2], p.row[5]);
    const Row s3 = Add(p.row[3], p.row[4]);
    const Row d3 = Sub(p.row[3], p.row[4]);
    const Row half_root = Set(0.707106781F);

    const Row outer = Add(s0, s3);
    const Row inner = Add(s1, s2);
    const Row outer_less = Sub(s0, s3);
    const Row turned = Add(Sub(s1, s2), outer_less);
    p.row[0] = Add(outer, inner);
    p.row[4] = Sub(outer, inner);
    p.row[2] = MulAdd(turned, half_root, outer_less);
    p.row[6] = NegMulAdd(turned, half_root, outer_less);

    const Row o0 = Add(d3, d2);
    const Row o1 = Add(d2, d1);
    const Row o2 = Add(d1, d0);
    const Row both = Mul(Sub(o0, o2), Set(0.382683433F));
    const Row z2 = MulAdd(o0, Set(0.541196100F), both);
    const Row z4 = MulAdd(o2, Set(1.306562965F), both);
    const Row z11 = MulAdd(o1, half_root, d0);
    const Row z13 = NegMulAdd(o1, half_root, d0);
    p.row[5] = Add(z13, z2);
    p.row[3] = Sub(z13, z2);
    p.row[1] = Add(z11, z4);
    p.row[7] = Sub(z11, z4);
  }

  static HWY_INLINE void Inverse(Patch& p) {
    const Row root = Set(1.414213562F);
    const Row e0 = Add(p.row[0], p.row[4]);
    const Row e1 = Sub(p.row[0], p.row[4]);
    const Row e3 = Add(p.row[2], p.row[6]);
    const Row less = Sub(p.row[2], p.row[6]);
    const Row e2 = Sub(Mul(less, root), e3);
    const Row t0 = Add(e0, e3);
    const Row t3 = Sub(e0, e3);
    const Row t1 = Add(e1, e2);
    const Row t2 = Sub(e1, e2);

    const Row z13 = Add(p.row[5], p.row[3]);
    const Row z10 = Sub(p.row[5], p.row[3]);
    const Row z11 = Add(p.row[1], p.row[7]);
    const Row z12 = Sub(p.row[1], p.row[7]);
    const Row t7 = Add(z11, z13);
    const Row o1 = Mul(Sub(z11, z13), root);
    const Row z5 = Mul(Add(z10, z12), Set(1.847759065F));
    const Row o0 = NegMulAdd(z12, Set(1.082392200F), z5);
    const Row o2 = NegMulAdd(z10, Set(2.613125930F), z5);
    const Row t6 = Sub(o2, t7);
    const Row t5 = Sub(o1, t6);
    const Row t4 = Sub(o0, t5);

    p.row[0] = Add(t0, t7);
    p.row[7] = Sub(t0, t7);
    p.row[1] = Add(t1, t6);
    p.row[6] = Sub(t1, t6);
    p.row[2] = Add(t2, t5);
    p.row[5] = Sub(t2, t5);
    p.row[3] = Add(t3, t4);
    p.row[4] = Sub(t3, t4);
  }

  static HWY_INLINE void ForwardRest(Patch&) {}
  static HWY_INLINE void InverseRest(Patch&) {}

  static double Along(int i) {
    return 1 / (std::sqrt(8.0) * (i == 0 ? 1 : std::sqrt(2.0) * std::cos(i * std::acos(-1.0) / 16)));
  }
  // From what Forward() leaves to orthonormal coefficients.
  static double Norm(int x, int y) { return Along(x) * Along(y); }
  // From what Forward() leaves to what Inverse() takes.
  static double Back(int, int) { return 1.0 / 64; }
};

// bior1.5 in the Mallat form: the finest level on all, the others on what is low in both directions. With
// four pairs that continue periodically the outer taps cancel, with fewer also the inner ones: Haar is left.
struct Bior15 {
  static constexpr float inner_taps = 11.0F / 64;

  static HWY_INLINE void Forward(Patch& p) {
    Row low[4];
    Row high[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      low[i] = Add(p.row[2 * i], p.row[2 * i + 1]);
      high[i] = Sub(p.row[2 * i], p.row[2 * i + 1]);
    }
    const Row taps = Set(inner_taps);
    const Row of_even = Sub(high[1], high[3]);
    const Row of_odd = Sub(high[2], high[0]);
    p.row[0] = MulAdd(of_even, taps, low[0]);
    p.row[1] = MulAdd(of_odd, taps, low[1]);
    p.row[2] = NegMulAdd(of_even, taps, low[2]);
    p.row[3] = NegMulAdd(of_odd, taps, low[3]);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) p.row[4 + i] = high[i];
  }

  static HWY_INLINE void Inverse(Patch& p) {
    const Row taps = Set(inner_taps);
    const Row of_even = Sub(p.row[5], p.row[7]);
    const Row of_odd = Sub(p.row[6], p.row[4]);
    Row low[4];
    low[0] = NegMulAdd(of_even, taps, p.row[0]);
    low[1] = NegMulAdd(of_odd, taps, p.row[1]);
    low[2] = MulAdd(of_even, taps, p.row[2]);
    low[3] = MulAdd(of_odd, taps, p.row[3]);
    Row high[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) high[i] = p.row[4 + i];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      p.row[2 * i] = Add(low[i], high[i]);
      p.row[2 * i + 1] = Sub(low[i], high[i]);
    }
  }

  // Levels 2 and 3 in place: the sum of a pair where its first was, the difference where its second was.
  static HWY_INLINE void ForwardRest(Patch& p) {
    Rest(p, 0, 1);
    Rest(p, 2, 3);
    for (int i = 0; i < 4; ++i) AlongLanes<1>(p.row[i]);
    Rest(p, 0, 2, 2);
    AlongLanes<2>(p.row[0]);
    AlongLanes<2>(p.row[2]);
  }

  static HWY_INLINE void InverseRest(Patch& p) {
    AlongLanes<2>(p.row[0]);
    AlongLanes<2>(p.row[2]);
    Rest(p, 0, 2, 2);
    for (int i = 0; i < 4; ++i) AlongLanes<1>(p.row[i]);
    Rest(p, 0, 1);
    Rest(p, 2, 3);
  }

  static double Norm(int x, int y) { return 1.0 / (2 << (Level(x, y) - 1)); }
  static double Back(int x, int y) { return Norm(x, y) * Norm(x, y); }

 private:
  static int Level(int x, int y) {
    if (x >= 4 || y >= 4) return 1;
    return x % 2 == 1 || y % 2 == 1 ? 2 : 3;
  }

  // Lanes that are low: the first four of a row, or of these every other.
  static HWY_INLINE hn::Mask<Floats> Low(int stride) {
    alignas(64) static constexpr std::int32_t every[16] = {-1, -1, -1, -1, 0, 0, 0, 0,
                                                           -1, -1, -1, -1, 0, 0, 0, 0};
    alignas(64) static constexpr std::int32_t other[16] = {-1, 0, -1, 0, 0, 0, 0, 0,
                                                           -1, 0, -1, 0, 0, 0, 0, 0};
    const hn::RebindToSigned<Floats> di;
    return hn::MaskFromVec(hn::BitCast(d, hn::Load(di, stride == 1 ? every : other)));
  }

  static HWY_INLINE void Rest(Patch& p, int first, int second, int stride = 1) {
    const Vector a = p.row[first].part[0];
    const Vector b = p.row[second].part[0];
    const auto low = Low(stride);
    p.row[first].part[0] = hn::IfThenElse(low, hn::Add(a, b), a);
    p.row[second].part[0] = hn::IfThenElse(low, hn::Sub(a, b), b);
  }

  // Sums and differences of lanes that are `stride` apart, within the first four.
  template <int Stride>
  static HWY_INLINE void AlongLanes(Row& row) {
    alignas(64) static constexpr float signs1[16] = {1, -1, 1, -1, 1, 1, 1, 1, 1, -1, 1, -1, 1, 1, 1, 1};
    alignas(64) static constexpr float signs2[16] = {1, 1, -1, 1, 1, 1, 1, 1, 1, 1, -1, 1, 1, 1, 1, 1};
    const Vector v = row.part[0];
    const Vector other = Stride == 1 ? hn::Shuffle2301(v) : hn::Shuffle1032(v);
    const Vector sum = hn::MulAdd(v, hn::Load(d, Stride == 1 ? signs1 : signs2), other);
    row.part[0] = hn::IfThenElse(Low(Stride), sum, v);
  }
};

// ---- Along the group

template <int Size>
struct Tree {
  Row difference;
  Tree<Size / 2> left;
  Tree<Size / 2> right;
  HWY_INLINE Tree() {}  // NOLINT
};
template <>
struct Tree<1> {};

constexpr int patch_floats = filter_patch * row_floats;

constexpr int LevelOf(int size) { return size == 1 ? 0 : 1 + LevelOf(size / 2); }

// Sums on the way up; differences shrunk on the way.
template <int Size, class Shrink>
HWY_INLINE Row Analyse(const float* from, Tree<Size>& tree, Shrink& shrink) {
  if constexpr (Size == 1) {
    return Load(from);
  } else {
    const Row left = Analyse<Size / 2>(from, tree.left, shrink);
    const Row right = Analyse<Size / 2>(from + Size / 2 * patch_floats, tree.right, shrink);
    tree.difference = shrink.template Apply<LevelOf(Size)>(Sub(left, right), tree.difference);
    return Add(left, right);
  }
}

template <int Size>
HWY_INLINE void Synthesise(const Row& value, const Tree<Size>& tree, float* to) {
  if constexpr (Size == 1) {
    Store(value, to);
  } else {
    Synthesise<Size / 2>(Add(value, tree.difference), tree.left, to);
    Synthesise<Size / 2>(Sub(value, tree.difference), tree.right, to + Size / 2 * patch_floats);
  }
}

// The two patches of a vector are the last pair: their sum beside their difference, and back.
HWY_MAYBE_UNUSED HWY_INLINE Row AcrossHalves(const Row& row) {
#if HWY_TARGET == HWY_AVX3
  alignas(64) static constexpr float signs[16] = {1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1, -1};
  Row result;
  const Vector swapped{_mm512_shuffle_f32x4(row.part[0].raw, row.part[0].raw, 0x4E)};
  result.part[0] = hn::MulAdd(row.part[0], hn::Load(d, signs), swapped);
  return result;
#else
  return row;
#endif
}

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
      result.part[i] = hn::IfThenElseZero(
          keep, hn::Mul(value.part[i], hn::Load(d, tables.scale[Level][slot] + i * lanes)));
    }
    return result;
  }
  template <int Level>
  HWY_INLINE Row ApplyToMean(const Row& value) {
    return Apply<Level>(value, value);
  }
};

// With a model.
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

HWY_INLINE Vector Reciprocal(Vector v) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4
  const Vector guess = hn::ApproximateReciprocal(v);
  return hn::Mul(guess, hn::NegMulAdd(v, guess, hn::Set(d, 2.0F)));
#else
  return hn::Div(hn::Set(d, 1.0F), v);
#endif
}

// From the basic estimate's coefficients the factors of the noisy ones'.
struct WienerFactors {
  const FilterTables& tables;
  int slot;
  Vector squares;

  HWY_INLINE void Begin(int of) { slot = of; }
  template <int Level>
  HWY_INLINE Row Apply(const Row& value, const Row&) {
    Row result;
    for (int i = 0; i < parts; ++i) {
      // Bounded: an infinite one would be multiplied by 0.
      const Vector energy = hn::Min(hn::Mul(value.part[i], value.part[i]), hn::Set(d, 1e36F));
      const Vector share =
          hn::Mul(energy, Reciprocal(hn::Add(energy, hn::Load(d, tables.noise[Level][slot] + i * lanes))));
      squares = hn::MulAdd(share, share, squares);
      result.part[i] = hn::Mul(share, hn::Load(d, tables.scale[Level][slot] + i * lanes));
    }
    return result;
  }
};

// With a model.
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

// With variances of each coefficient of a group, in the order in which Analyse() comes to them: the
// differences, then the mean.
struct ExactThreshold {
  const FilterTables& tables;
  const float* variances;
  int slot;
  Vector left;  // the sum of the variances that are kept
  const float* next;

  HWY_INLINE void Begin(int of) {
    slot = of;
    next = variances + slot * row_floats;
  }

  template <int Level>
  HWY_INLINE Row Apply(const Row& value, const Row&) {
    Row result;
    for (int i = 0; i < parts; ++i) result.part[i] = AbovePart<Level>(value.part[i], hn::Set(d, 3e38F), i);
    next += patch_floats;
    return result;
  }

  // The group's mean is always kept.
  template <int Level>
  HWY_INLINE Row ApplyToMean(const Row& value) {
    if (slot > 0) return Apply<Level>(value, value);
    constexpr float any = 3e38F;
    alignas(64) static constexpr float most[16] = {
        -1, any, any, any, any, any, any, any, Level == 0 ? -1 : any, any, any, any, any, any, any, any};
    Row result;
    for (int i = 0; i < parts; ++i)
      result.part[i] = AbovePart<Level>(value.part[i], hn::Load(d, most + i * lanes), i);
    return result;
  }

 private:
  // Above the noise or above `most`.
  template <int Level>
  HWY_INLINE Vector AbovePart(Vector value, Vector most, int i) {
    const Vector variance = hn::Load(d, next + i * lanes);
    const Vector limit = hn::Min(hn::Mul(variance, hn::Load(d, tables.noise[Level][slot] + i * lanes)), most);
    const auto keep = hn::Gt(hn::Mul(value, value), limit);
    left = hn::Add(left, hn::IfThenElseZero(keep, variance));
    return hn::IfThenElseZero(keep, hn::Mul(value, hn::Load(d, tables.scale[Level][slot] + i * lanes)));
  }
};

struct ExactWienerFactors {
  const FilterTables& tables;
  const float* variances;
  int slot;
  Vector left;
  const float* next;

  HWY_INLINE void Begin(int of) {
    slot = of;
    next = variances + slot * row_floats;
  }

  template <int Level>
  HWY_INLINE Row Apply(const Row& value, const Row&) {
    Row result;
    for (int i = 0; i < parts; ++i) {
      const Vector energy = hn::Min(hn::Mul(value.part[i], value.part[i]), hn::Set(d, 1e36F));
      const Vector variance = hn::Load(d, next + i * lanes);
      const Vector noise = hn::Load(d, tables.noise[Level][slot] + i * lanes);
      const Vector kept = hn::Mul(energy, Reciprocal(hn::MulAdd(noise, variance, energy)));
      left = hn::MulAdd(hn::Mul(kept, kept), variance, left);
      result.part[i] = hn::Mul(kept, hn::Load(d, tables.scale[Level][slot] + i * lanes));
    }
    next += patch_floats;
    return result;
  }
};

struct TimesFactors {
  template <int Level>
  HWY_INLINE Row Apply(const Row& value, const Row& factor) {
    return Mul(value, factor);
  }
};

// ---- A group

template <class Transform, int Sets>
HWY_INLINE void TransformAll(const float* columns, const FilterCall& call, float* to) {
  for (int i = 0; i < Sets; ++i) {
    const float* first = columns + std::ptrdiff_t{call.places[i]} * filter_patch;
    // A group of one fills both halves; the second is not added.
    const float* second =
        columns + std::ptrdiff_t{call.places[i + Sets < call.count ? i + Sets : i]} * filter_patch;
    Patch p;
#pragma GCC unroll 8
    for (int x = 0; x < filter_patch; ++x) p.row[x] = LoadRow(first + 8 * x, second + 8 * x);
    Transform::Forward(p);
    Transform::ForwardRest(p);
#pragma GCC unroll 8
    for (int x = 0; x < filter_patch; ++x) Store(p.row[x], to + i * patch_floats + x * row_floats);
  }
}

template <class Transform, int Sets>
HWY_INLINE void AddAll(const FilterCall& call, const float* from, float weight) {
  Patch window;
  const Row of_group = Set(weight);
#pragma GCC unroll 8
  for (int x = 0; x < filter_patch; ++x) window.row[x] = Mul(Load(call.tables.window[x]), of_group);
  for (int i = 0; i < Sets; ++i) {
    Patch p;
#pragma GCC unroll 8
    for (int x = 0; x < filter_patch; ++x) p.row[x] = Load(from + i * patch_floats + x * row_floats);
    Transform::InverseRest(p);
    Transform::Inverse(p);
    float* first = call.values + std::ptrdiff_t{call.places[i]} * filter_patch;
    float* second = patches_at_once == 1 || i + Sets >= call.count
                        ? nullptr
                        : call.values + std::ptrdiff_t{call.places[i + Sets]} * filter_patch;
#pragma GCC unroll 8
    for (int x = 0; x < filter_patch; ++x) p.row[x] = Mul(p.row[x], window.row[x]);
    AddPatches(p, first, second);
  }
  for (int i = 0; i < call.count; ++i) call.weights[call.places[i]] += weight;
}

// Both halves of a vector have what a group of one has.
template <int Count>
HWY_INLINE float SumOver(Vector v) {
  const float sum = hn::GetLane(hn::SumOfLanes(d, v));
  return Count == 1 && patches_at_once == 2 ? sum / 2 : sum;
}

// The variance of a group's noise by its level, which its coefficients have if this is the plane that it was
// found in.
template <int Count>
double VarianceAtLevel(const FilterCall& call, const float* coefficients) {
  if (call.finds_level) {
    constexpr int sets = Count == 1 ? 1 : Count / patches_at_once;
    float sum = 0;
    for (int i = 0; i < sets; ++i) {
      sum += coefficients[i * patch_floats];
      if constexpr (sets < Count) sum += coefficients[i * patch_floats + filter_patch];
    }
    *call.level = sum / (filter_patch * filter_patch * Count);
  }
  return call.tables.model->variance(*call.level);
}

// ---- Variances where patches have noise in common
//
// The noise of a sum of patches has the variance of both halves' and twice what the halves have in common;
// that of their difference twice as much less. So every pair of patches is looked at once.

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

  // Of the patches [first, first + count) and as many from `other` on.
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
        found += (dy <= tables.reach_y) & (static_cast<unsigned>(dx) < static_cast<unsigned>(row)) ? 1 : 0;
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

  // (a + b + twice * common) / size in units of the variance, for one of the patches of a vector.
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

// The variances of all differences of `Size` patches from `first` on; their sum's to `sum`.
template <int Size>
HWY_INLINE void WriteDifferences(const GroupNoise& noise, int first, float*& to, float* sum) {
  if constexpr (Size == 1) {
    std::copy_n(noise.tables.common + noise.tables.reach_x * common_floats, common_floats, sum);
  } else {
    alignas(64) float right[common_floats];
    alignas(64) float common[common_floats];
    WriteDifferences<Size / 2>(noise, first, to, sum);
    WriteDifferences<Size / 2>(noise, first + Size / 2, to, right);
    noise.SumPairs(first, first + Size / 2, Size / 2, common);
    noise.Write(sum, right, common, -2, Size, to);
    to += patch_floats;
    for (int c = 0; c < common_floats; ++c) sum[c] += right[c] + 2 * common[c];
  }
}

// As many as coefficients, in the order in which they are shrunk.
template <int Count>
HWY_NOINLINE void WriteVariances(const FilterCall& call, double variance, float* to) {
  const GroupNoise noise(call, variance);
  alignas(64) static constexpr float nothing[common_floats] = {};
  alignas(64) float sum[common_floats];
  if constexpr (patches_at_once == 1) {
    WriteDifferences<Count>(noise, 0, to, sum);
    noise.Write(sum, nothing, nothing, 0, Count, to);
  } else if constexpr (Count == 1) {
    float* unused = to;
    WriteDifferences<1>(noise, 0, unused, sum);
    for (const int half : {0, 1}) noise.Write(sum, nothing, nothing, 0, 1, to + half * filter_patch);
  } else {
    constexpr int sets = Count / 2;
    alignas(64) float other[common_floats];
    alignas(64) float common[common_floats];
    float* second = to + filter_patch;
    WriteDifferences<sets>(noise, 0, to, sum);
    WriteDifferences<sets>(noise, sets, second, other);
    noise.SumPairs(0, sets, sets, common);
    noise.Write(sum, other, common, 2, Count, to);
    noise.Write(sum, other, common, -2, Count, second);
  }
}

template <int Count>
HWY_INLINE float WeightByVariances(const FilterTables& tables, Vector left, double variance) {
  return static_cast<float>(
      weight_of_varying(SumOver<Count>(left), tables.mean_share * variance, tables.mean_variance));
}

template <int Count>
HWY_INLINE float WeightByModel(const FilterTables& tables, Vector left, double variance) {
  return static_cast<float>(
      weight_of_varying(SumOver<Count>(left) * variance, tables.mean_share * variance, tables.mean_variance));
}

template <int Count, class Shrink>
HWY_INLINE void ThresholdAll(float* coefficients, Shrink& shrink) {
  constexpr int sets = Count == 1 ? 1 : Count / patches_at_once;
  for (int slot = 0; slot < filter_patch; ++slot) {
    shrink.Begin(slot);
    float* at = coefficients + slot * row_floats;
    Tree<sets> tree;
    Row mean = Analyse<sets>(at, tree, shrink);
    if constexpr (sets < Count) mean = AcrossHalves(mean);
    mean = shrink.template ApplyToMean<LevelOf(Count)>(mean);
    if constexpr (sets < Count) mean = AcrossHalves(mean);
    Synthesise<sets>(mean, tree, at);
  }
}

template <class Transform, int Count>
HWY_NOINLINE void FilterByThreshold(const FilterCall& call) {
  constexpr int sets = Count == 1 ? 1 : Count / patches_at_once;
  alignas(64) float coefficients[sets * patch_floats];
  TransformAll<Transform, sets>(call.noisy, call, coefficients);
  Threshold shrink{call.tables, 0, 0};
  ThresholdAll<Count>(coefficients, shrink);
  std::size_t kept = shrink.kept;
  if (Count == 1 && patches_at_once == 2) kept /= 2;
  AddAll<Transform, sets>(call, coefficients, 1.0F / static_cast<float>(std::max<std::size_t>(kept, 1)));
}

template <int Count>
HWY_NOINLINE void FilterByModelThreshold(const FilterCall& call) {
  constexpr int sets = Count == 1 ? 1 : Count / patches_at_once;
  alignas(64) float coefficients[sets * patch_floats];
  TransformAll<Dct, sets>(call.noisy, call, coefficients);
  const double variance = VarianceAtLevel<Count>(call, coefficients);
  ModelThreshold shrink{call.tables, hn::Set(d, static_cast<float>(std::sqrt(variance))), 0, hn::Zero(d)};
  ThresholdAll<Count>(coefficients, shrink);
  AddAll<Dct, sets>(call, coefficients, WeightByModel<Count>(call.tables, shrink.left, variance));
}

template <int Count>
HWY_NOINLINE void FilterByExactThreshold(const FilterCall& call) {
  constexpr int sets = Count == 1 ? 1 : Count / patches_at_once;
  alignas(64) float coefficients[sets * patch_floats];
  alignas(64) float variances[sets * patch_floats];
  TransformAll<Dct, sets>(call.noisy, call, coefficients);
  const double variance = VarianceAtLevel<Count>(call, coefficients);
  WriteVariances<Count>(call, variance, variances);
  ExactThreshold shrink{call.tables, variances, 0, hn::Zero(d), variances};
  ThresholdAll<Count>(coefficients, shrink);
  AddAll<Dct, sets>(call, coefficients, WeightByVariances<Count>(call.tables, shrink.left, variance));
}

template <int Count, class Factors>
HWY_INLINE void WienerAll(const float* basic, float* noisy, Factors& factors) {
  constexpr int sets = Count == 1 ? 1 : Count / patches_at_once;
  TimesFactors shrink;
  for (int slot = 0; slot < filter_patch; ++slot) {
    factors.Begin(slot);
    Tree<sets> tree;
    Row mean = Analyse<sets>(basic + slot * row_floats, tree, factors);
    if constexpr (sets < Count) mean = AcrossHalves(mean);
    const Row factor = factors.template Apply<LevelOf(Count)>(mean, mean);
    float* at = noisy + slot * row_floats;
    mean = Analyse<sets>(at, tree, shrink);
    if constexpr (sets < Count) mean = AcrossHalves(mean);
    mean = Mul(mean, factor);
    if constexpr (sets < Count) mean = AcrossHalves(mean);
    Synthesise<sets>(mean, tree, at);
  }
}

template <class Transform, int Count>
HWY_NOINLINE void FilterByWiener(const FilterCall& call) {
  constexpr int sets = Count == 1 ? 1 : Count / patches_at_once;
  alignas(64) float noisy[sets * patch_floats];
  alignas(64) float basic[sets * patch_floats];
  TransformAll<Transform, sets>(call.noisy, call, noisy);
  TransformAll<Transform, sets>(call.basic, call, basic);
  WienerFactors factors{call.tables, 0, hn::Zero(d)};
  WienerAll<Count>(basic, noisy, factors);
  AddAll<Transform, sets>(call, noisy, 1.0F / std::max(SumOver<Count>(factors.squares), 1.0F));
}

template <int Count>
HWY_NOINLINE void FilterByModelWiener(const FilterCall& call) {
  constexpr int sets = Count == 1 ? 1 : Count / patches_at_once;
  alignas(64) float noisy[sets * patch_floats];
  alignas(64) float basic[sets * patch_floats];
  TransformAll<Dct, sets>(call.noisy, call, noisy);
  TransformAll<Dct, sets>(call.basic, call, basic);
  const double variance = VarianceAtLevel<Count>(call, basic);
  ModelWienerFactors factors{call.tables, hn::Set(d, static_cast<float>(variance)), 0, hn::Zero(d)};
  WienerAll<Count>(basic, noisy, factors);
  AddAll<Dct, sets>(call, noisy, WeightByModel<Count>(call.tables, factors.left, variance));
}

template <int Count>
HWY_NOINLINE void FilterByExactWiener(const FilterCall& call) {
  constexpr int sets = Count == 1 ? 1 : Count / patches_at_once;
  alignas(64) float noisy[sets * patch_floats];
  alignas(64) float basic[sets * patch_floats];
  alignas(64) float variances[sets * patch_floats];
  TransformAll<Dct, sets>(call.noisy, call, noisy);
  TransformAll<Dct, sets>(call.basic, call, basic);
  const double variance = VarianceAtLevel<Count>(call, basic);
  WriteVariances<Count>(call, variance, variances);
  ExactWienerFactors factors{call.tables, variances, 0, hn::Zero(d), variances};
  WienerAll<Count>(basic, noisy, factors);
  AddAll<Dct, sets>(call, noisy, WeightByVariances<Count>(call.tables, factors.left, variance));
}

template <class Transform, int Count>
void FilterCount(const FilterCall& call) {
  if (call.count == Count) {
    if (call.basic == nullptr) {
      FilterByThreshold<Transform, Count>(call);
    } else {
      FilterByWiener<Transform, Count>(call);
    }
  } else if constexpr (Count > 1) {
    FilterCount<Transform, Count / 2>(call);
  }
}

template <int Count>
void FilterCountByModel(const FilterCall& call) {
  if (call.count == Count) {
    if (call.basic == nullptr) {
      FilterByModelThreshold<Count>(call);
    } else {
      FilterByModelWiener<Count>(call);
    }
  } else if constexpr (Count > 1) {
    FilterCountByModel<Count / 2>(call);
  }
}

template <int Count>
void FilterCountExactly(const FilterCall& call) {
  if (call.count == Count) {
    if (call.basic == nullptr) {
      FilterByExactThreshold<Count>(call);
    } else {
      FilterByExactWiener<Count>(call);
    }
  } else if constexpr (Count > 1) {
    FilterCountExactly<Count / 2>(call);
  }
}

void FilterGroup(const FilterCall& call) {
  if (call.tables.common != nullptr) {
    FilterCountExactly<most_filtered>(call);
  } else if (call.tables.model != nullptr) {
    FilterCountByModel<most_filtered>(call);
  } else if (call.transform == PatchTransform::dct) {
    FilterCount<Dct, most_filtered>(call);
  } else {
    FilterCount<Bior15, most_filtered>(call);
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
void AddColumnsBy(const ColumnTile& tile, const FilterTables& tables, const float* columns, float* image) {
  for (int y = 0; y + filter_patch <= tile.height; ++y) {
    for (int x = 0; x < tile.width; x += row_floats) {
      const float* from = columns + y * tile.column_pitch() + x * filter_patch;
      Patch p;
#pragma GCC unroll 8
      for (int i = 0; i < filter_patch; ++i) p.row[i] = LoadRow(from + 8 * i, from + 8 * (i + 8));
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

void AddColumns(PatchTransform transform, const ColumnTile& tile, const FilterTables& tables,
                const float* columns, float* image) {
  if (transform == PatchTransform::dct) {
    AddColumnsBy<Dct>(tile, tables, columns, image);
  } else {
    AddColumnsBy<Bior15>(tile, tables, columns, image);
  }
}

void SpreadWeights(const ColumnTile& tile, const FilterTables& tables, float* weights) {
  // Along rows from the right and down from the bottom, so that what is still needed is there.
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
        const double back = (dct ? Dct::Back(slot, other) : Bior15::Back(slot, other)) / size;
        double deviation = sigma;
        if (model != nullptr) {
          deviation = model->strength * std::sqrt(share(slot, other));
          tables.shares[slot][lane] = static_cast<float>(share(slot, other));
        }
        const bool exact = model != nullptr && model->covariances != nullptr;
        const double noise = step.strength * (exact ? 1 : deviation) / norm;
        tables.noise[level][slot][lane] = static_cast<float>(wiener || exact ? noise * noise : noise);
        tables.scale[level][slot][lane] = static_cast<float>(back);
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

HWY_EXPORT(FilterGroup);
HWY_EXPORT(FillTables);
HWY_EXPORT(TransformColumns);
HWY_EXPORT(AddColumns);
HWY_EXPORT(SpreadWeights);

bool filter_knows(const Bm3dStep& step) {
  return step.patch == filter_patch && step.group <= most_filtered && step.along == GroupTransform::haar &&
         (step.transform == PatchTransform::dct || step.transform == PatchTransform::bior15);
}

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

void fill_filter_tables(const Bm3dStep& step, bool wiener, double sigma, const PlaneNoise* model,
                        std::span<const double, filter_patch> window, FilterTables& tables) {
  HWY_DYNAMIC_DISPATCH(FillTables)(step, wiener, sigma, model, window, tables);
}

void transform_columns(PatchTransform transform, const ColumnTile& tile, const float* image, float* columns) {
  HWY_DYNAMIC_DISPATCH(TransformColumns)(transform, tile, image, columns);
}

void add_columns(PatchTransform transform, const ColumnTile& tile, const FilterTables& tables,
                 const float* columns, float* image) {
  HWY_DYNAMIC_DISPATCH(AddColumns)(transform, tile, tables, columns, image);
}

void spread_weights(const ColumnTile& tile, const FilterTables& tables, float* weights) {
  HWY_DYNAMIC_DISPATCH(SpreadWeights)(tile, tables, weights);
}

void filter_group(const FilterCall& call) { HWY_DYNAMIC_DISPATCH(FilterGroup)(call); }

}  // namespace ungrain
#endif
