// Shared by the filters of all kinds of noise: rows of vectors, the transforms of patches and along the
// group. Included once for each set of instructions, as Highway's own -inl.h files.
//
// Columns are transformed once for all patches that share them, rows for each patch. Vectors of sixteen hold
// two patches, which are half a group apart. Filtered patches are added before their columns are transformed
// back. Transforms of patches do not normalise: the tables of thresholds and the windows correct for it. The
// transform along the group is Haar's, depth first, from memory to memory: a difference is shrunk as soon as
// it is computed. Forward it adds and subtracts, back it returns means.
//
// Only the shrinkage of coefficients is a template of the group's size and unrolled over it. It is most of
// the code, so each kind of noise has its own source, which compile in parallel.
#include <hwy/highway.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "cpu/vector_targets.h"
#include "methods/bm3d/filter_simd.h"

#if defined(UNGRAIN_METHODS_BM3D_FILTER_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef UNGRAIN_METHODS_BM3D_FILTER_SIMD_INL_H_
#undef UNGRAIN_METHODS_BM3D_FILTER_SIMD_INL_H_
#else
#define UNGRAIN_METHODS_BM3D_FILTER_SIMD_INL_H_
#endif

#if UNGRAIN_HAS_VECTORS

HWY_BEFORE_NAMESPACE();
namespace ungrain::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int lanes = static_cast<int>(HWY_MIN(HWY_LANES(float), std::size_t{16}));
using Floats = hn::CappedTag<float, 16>;
constexpr Floats d;
using Vector = hn::Vec<Floats>;

// A row of eight floats: of two patches in one vector, of one patch in one vector, or of one patch in two.
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

// Adds patches times the window's rows. The two patches may overlap, so they are added in turn.
HWY_INLINE void AddPatches(const Patch& p, const Patch& window, float* first, float* second) {
#if HWY_TARGET == HWY_AVX3
  const hn::Half<Floats> half;
#pragma GCC unroll 8
  for (int x = 0; x < filter_patch; ++x) {
    const auto of_row = hn::LowerHalf(half, window.row[x].part[0]);
    const auto value = hn::LowerHalf(half, p.row[x].part[0]);
    hn::StoreU(hn::MulAdd(value, of_row, hn::LoadU(half, first + 8 * x)), half, first + 8 * x);
  }
  if (second == nullptr) return;
#pragma GCC unroll 8
  for (int x = 0; x < filter_patch; ++x) {
    const auto of_row = hn::LowerHalf(half, window.row[x].part[0]);
    const auto value = hn::UpperHalf(half, p.row[x].part[0]);
    hn::StoreU(hn::MulAdd(value, of_row, hn::LoadU(half, second + 8 * x)), half, second + 8 * x);
  }
#else
  (void)second;
#pragma GCC unroll 8
  for (int x = 0; x < filter_patch; ++x) {
#pragma GCC unroll 2
    for (int i = 0; i < parts; ++i) {
      float* to = first + 8 * x + 4 * i;
      hn::StoreU(hn::MulAdd(p.row[x].part[i], window.row[x].part[i], hn::LoadU(d, to)), d, to);
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

// As many neighbouring floats as a row holds.
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

// Transposes blocks of 4 x 4.
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

// Exchanges the second block of a with the first of b, for each patch.
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

// The DCT of Arai, Agui and Nakajima. The tables contain the scales that it omits.
struct Dct {
  static constexpr bool same_back = true;  // Back() is the same for all coefficients

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
  // Factor from Forward()'s coefficients to orthonormal ones.
  static double Norm(int x, int y) { return Along(x) * Along(y); }
  // Factor from Forward()'s coefficients to Inverse()'s input.
  static double Back(int, int) { return 1.0 / 64; }
};

// bior1.5 in the Mallat form: the finest level on all coefficients, the others on the low-low quadrant. With
// four periodic pairs the outer taps cancel, with fewer the inner ones too, which leaves Haar.
struct Bior15 {
  static constexpr bool same_back = false;
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

  // Levels 2 and 3 in place: the sum of a pair replaces its first, the difference its second.
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

  // Mask of low-pass lanes: the first four of a row, or every other of these.
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

// Returns the sum; shrinks the differences on the way up.
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

// From the mean of `Size` patches, and the differences of sums.
template <int Size>
HWY_INLINE void Synthesise(const Row& mean, const Tree<Size>& tree, float* to) {
  if constexpr (Size == 1) {
    Store(mean, to);
  } else {
    const Row share = Set(1.0F / Size);
#if HWY_NATIVE_FMA
    const Row left = MulAdd(tree.difference, share, mean);
    const Row right = NegMulAdd(tree.difference, share, mean);
#else
    const Row difference = Mul(tree.difference, share);
    const Row left = Add(mean, difference);
    const Row right = Sub(mean, difference);
#endif
    Synthesise<Size / 2>(left, tree.left, to);
    Synthesise<Size / 2>(right, tree.right, to + Size / 2 * patch_floats);
  }
}

// The two patches of a vector are the last pair: turns them into their sum and their difference, and back.
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

// From the sum of all `Count` patches, or from the sums of both halves of a vector and their difference.
template <int Count, int Sets>
HWY_INLINE void SynthesiseAll(const Row& sum, const Tree<Sets>& tree, float* to) {
  Row mean = Mul(sum, Set(1.0F / Count));
  if constexpr (Sets < Count) mean = AcrossHalves(mean);
  Synthesise<Sets>(mean, tree, to);
}

// The share of the signal in a coefficient's energy: 1 - noise / (energy + noise). So written, a guess of the
// reciprocal of 14 bits is good enough: its error counts where there is little signal, and is then small
// beside the noise.
HWY_INLINE Vector SignalShare(Vector coefficient, Vector noise) {
  const Vector total = hn::MulAdd(coefficient, coefficient, noise);
#if HWY_TARGET == HWY_AVX3
  return hn::NegMulAdd(noise, hn::ApproximateReciprocal(total), hn::Set(d, 1.0F));
#elif HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4
  // Bounded, because a guess for infinity is 0, and 0 times infinity is not a number.
  const Vector bounded = hn::Min(total, hn::Set(d, 1e36F));
  const Vector guess = hn::ApproximateReciprocal(bounded);
  const Vector reciprocal = hn::Mul(guess, hn::NegMulAdd(bounded, guess, hn::Set(d, 2.0F)));
  return hn::NegMulAdd(noise, reciprocal, hn::Set(d, 1.0F));
#else
  return hn::Sub(hn::Set(d, 1.0F), hn::Div(noise, total));
#endif
}

struct TimesFactors {
  template <int Level>
  HWY_INLINE Row Apply(const Row& value, const Row& factor) {
    return Mul(value, factor);
  }
};

// ---- A group

// Number of vectors for `count` patches: two patches in each; a group of one fills both halves.
constexpr int SetsOf(int count) { return count == 1 ? 1 : count / patches_at_once; }

// The coefficients of the largest group.
constexpr int group_floats = SetsOf(most_filtered) * patch_floats;

// Not a template of the group's size, because its loops are over whole patches.
template <class Transform>
HWY_NOINLINE void TransformAll(const float* columns, const FilterCall& call, float* to) {
  const std::int32_t* places = call.places;
  const int count = call.count;
  const int sets = SetsOf(count);
  for (int i = 0; i < sets; ++i) {
    const float* first = columns + std::ptrdiff_t{places[i]} * filter_patch;
    // A group of one fills both halves; the second half is not added.
    const float* second = columns + std::ptrdiff_t{places[i + sets < count ? i + sets : i]} * filter_patch;
    Patch p;
#pragma GCC unroll 8
    for (int x = 0; x < filter_patch; ++x) p.row[x] = LoadRow(first + 8 * x, second + 8 * x);
    Transform::Forward(p);
    Transform::ForwardRest(p);
#pragma GCC unroll 8
    for (int x = 0; x < filter_patch; ++x) Store(p.row[x], to + i * patch_floats + x * row_floats);
  }
}

template <class Transform>
HWY_NOINLINE void AddAll(const FilterCall& call, const float* from, float weight) {
  const std::int32_t* places = call.places;
  const int count = call.count;
  const int sets = SetsOf(count);
  Patch window;
  const Row of_group = Set(Transform::same_back ? weight * call.tables.back[0][0] : weight);
#pragma GCC unroll 8
  for (int x = 0; x < filter_patch; ++x) window.row[x] = Mul(Load(call.tables.window[x]), of_group);
  for (int i = 0; i < sets; ++i) {
    Patch p;
#pragma GCC unroll 8
    for (int x = 0; x < filter_patch; ++x) {
      p.row[x] = Load(from + i * patch_floats + x * row_floats);
      if constexpr (!Transform::same_back) p.row[x] = Mul(p.row[x], Load(call.tables.back[x]));
    }
    Transform::InverseRest(p);
    Transform::Inverse(p);
    float* first = call.values + std::ptrdiff_t{places[i]} * filter_patch;
    float* second = patches_at_once == 1 || i + sets >= count
                        ? nullptr
                        : call.values + std::ptrdiff_t{places[i + sets]} * filter_patch;
    AddPatches(p, window, first, second);
  }
  for (int i = 0; i < count; ++i) call.weights[places[i]] += weight;
}

// The sum over the lanes; a group of one is in both halves of a vector and counts once.
template <int Count>
HWY_INLINE float SumOver(Vector v) {
  const float sum = hn::GetLane(hn::SumOfLanes(d, v));
  return Count == 1 && patches_at_once == 2 ? sum / 2 : sum;
}

// The variance of a group's noise at its level. In the plane in which the group was found, the coefficients
// give the level.
inline double VarianceAtLevel(const FilterCall& call, const float* coefficients) {
  if (call.finds_level) {
    const int sets = SetsOf(call.count);
    float sum = 0;
    for (int i = 0; i < sets; ++i) {
      sum += coefficients[i * patch_floats];
      if (sets < call.count) sum += coefficients[i * patch_floats + filter_patch];
    }
    *call.level = sum / static_cast<float>(filter_patch * filter_patch * call.count);
  }
  return call.tables.model->variance(*call.level);
}

template <int Count, class Shrink>
HWY_INLINE void ThresholdAll(float* coefficients, Shrink& shrink) {
  constexpr int sets = SetsOf(Count);
  for (int slot = 0; slot < filter_patch; ++slot) {
    shrink.Begin(slot);
    float* at = coefficients + slot * row_floats;
    Tree<sets> tree;
    Row mean = Analyse<sets>(at, tree, shrink);
    if constexpr (sets < Count) mean = AcrossHalves(mean);
    mean = shrink.template ApplyToMean<LevelOf(Count)>(mean);
    SynthesiseAll<Count>(mean, tree, at);
  }
}

template <int Count, class Factors>
HWY_INLINE void WienerAll(const float* basic, float* noisy, Factors& factors) {
  constexpr int sets = SetsOf(Count);
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
    SynthesiseAll<Count>(Mul(mean, factor), tree, at);
  }
}

// Shrinkage::Run<Count>() for the group's count: shrinks the coefficients and returns the group's weight.
template <class Shrinkage, int Count = most_filtered, class... Arguments>
HWY_INLINE float ShrinkGroup(const FilterCall& call, Arguments... arguments) {
  if constexpr (Count > 1) {
    if (call.count < Count) return ShrinkGroup<Shrinkage, Count / 2>(call, arguments...);
  }
  return Shrinkage::template Run<Count>(call, arguments...);
}

}  // namespace
}  // namespace ungrain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // UNGRAIN_HAS_VECTORS

#endif  // include guard
