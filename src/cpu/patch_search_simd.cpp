// Three passes over a tile. Down each column of vectors: squared differences, and their sums along the
// patch's columns. Along each row: the sums of those along the patch's rows, which are the exponents, and the
// weights. Then each pixel adds the contributions of a few shifts at once. The image's coordinates alone
// decide the order of every sum; where two rows share a part of their sums, the upper row is even.
#include "cpu/patch_search_simd.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/patch_search_simd.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h must come before what it includes again.
#include <hwy/highway.h>

#include "cpu/exp2-inl.h"

#ifndef UNGRAIN_CPU_PATCH_SEARCH_SIMD_CPP_
#define UNGRAIN_CPU_PATCH_SEARCH_SIMD_CPP_
namespace ungrain {
namespace {

constexpr int most_reach = 15;
constexpr int any_reach = -1;  // known only at run time

constexpr int up_to(int step, int n) { return (n + step - 1) / step * step; }

// Row pitch of sums and weights: the widest rectangle of weights and the columns that its patches and its
// last vectors reach. 21 cache lines: with 17 to 20 or 25 a tile takes up to a seventh longer, because rows
// in use at the same time alias in a page (Sapphire Rapids).
constexpr int pitch = 336;
static_assert(pitch >= up_to(longest_vector, widest_weights + 2 * most_reach) + longest_vector);

// Sums along columns are computed for this many rows at once.
constexpr int row_step = 4;
// All passes run over this many rows before the next ones, so that their intermediate results stay in the
// first-level cache.
constexpr int block_rows = 16;
// Rows of squared differences down one column of vectors; the first block includes the rows above the tile.
constexpr int column_rows = up_to(row_step, highest_weights + 1) + 2 * most_reach;

// Distance from the weights of one shift to those of the next. The same memory first holds sums along
// columns, from an even row on and for a multiple of row_step rows.
constexpr std::ptrdiff_t weights_of_shift =
    static_cast<std::ptrdiff_t>(highest_weights + 1 + row_step) * pitch;
// The same where each block of rows overwrites the previous one.
constexpr std::ptrdiff_t block_of_shift = static_cast<std::ptrdiff_t>(block_rows + 1 + row_step) * pitch;
static_assert(most_shifts_at_once * block_of_shift <= shifts_at_once * weights_of_shift);

// The first row of weights; the row above it exists too.
constexpr float* first_weight(float* memory) { return memory + column_rows * longest_vector + pitch; }

}  // namespace
}  // namespace ungrain
#endif

HWY_BEFORE_NAMESPACE();
namespace ungrain::HWY_NAMESPACE {
namespace {

using Floats = hn::CappedTag<float, longest_vector>;
using Vector = hn::Vec<Floats>;
constexpr Floats d;
constexpr int exp_degree = 4;

HWY_INLINE int Lanes() { return static_cast<int>(hn::Lanes(d)); }

// Hides the value from GCC: it then neither reloads it from memory for each use nor calls memset for a few
// zeros.
HWY_INLINE Vector InRegister(Vector v) {
#if HWY_ARCH_X86 && HWY_COMPILER_GCC && HWY_TARGET != HWY_EMU128 && HWY_TARGET != HWY_SCALAR
  asm("" : "+x"(v.raw));
#endif
  return v;
}

// Where sums along columns are computed, from the first row and column of the patches on. `rows` is a
// multiple of row_step, and the first row of sums is even.
struct Columns {
  const PatchKernel& kernel;
  const float* still;
  std::ptrdiff_t still_pitch;
  std::ptrdiff_t still_plane;
  const float* moving;
  std::ptrdiff_t moving_pitch;
  std::ptrdiff_t moving_plane;
  int columns;
  int rows;
  int compared_begin;  // of the rows + 2 reach
  int compared_end;
  float* squares;  // down one column of vectors, a longest vector a row
  float* sums;
};

// Squared differences, row by row down one column of vectors.
template <int Channels>
class SquareColumn {
 public:
  SquareColumn(const Columns& columns, int x)
      : a_(columns.still + x),
        a_pitch_(columns.still_pitch),
        a_plane_(columns.still_plane),
        b_(columns.moving + x),
        b_pitch_(columns.moving_pitch),
        b_plane_(columns.moving_plane),
        channels_(Channels > 0 ? Channels : columns.kernel.channels) {}

  void Skip(int rows) {
    a_ += rows * a_pitch_;
    b_ += rows * b_pitch_;
  }

  HWY_INLINE Vector Next() {
    const auto first = hn::Sub(hn::LoadU(d, a_), hn::LoadU(d, b_));
    auto sum = hn::Mul(first, first);
    for (int c = 1; c < channels_; ++c) {
      const auto next = hn::Sub(hn::LoadU(d, a_ + c * a_plane_), hn::LoadU(d, b_ + c * b_plane_));
      sum = hn::MulAdd(next, next, sum);
    }
    Skip(1);
    return sum;
  }

 private:
  const float* a_;
  std::ptrdiff_t a_pitch_;
  std::ptrdiff_t a_plane_;
  const float* b_;
  std::ptrdiff_t b_pitch_;
  std::ptrdiff_t b_plane_;
  int channels_;
};

// Sums of 2 reach + 1 rows. Two rows share the sum of pairs of rows, and each pair is added once: 2.5
// additions a row for a reach of 3.
template <int Channels, int Reach>
void SumFlatColumns(const Columns& columns) {
  static_assert(Reach >= 1 && Reach <= 3);
  const int n = Lanes();
  for (int x = 0; x < columns.columns; x += n) {
    SquareColumn<Channels> squares(columns, x);
    float* sums = columns.sums + x;
    // Holds every other square until its row is the first of a sum, and the pairs between.
    auto old0 = squares.Next();
    auto last = squares.Next();
    auto old1 = old0;
    auto old2 = old0;
    auto pair0 = last;
    auto pair1 = last;
    if (Reach > 1) {
      old1 = squares.Next();
      pair0 = hn::Add(last, old1);
      last = squares.Next();
    }
    if (Reach > 2) {
      old2 = squares.Next();
      pair1 = hn::Add(last, old2);
      last = squares.Next();
    }
    for (int y = 0; y < columns.rows; y += 2, sums += 2 * pitch) {
      const auto upper = squares.Next();
      const auto lower = squares.Next();
      const auto pair = hn::Add(last, upper);
      last = lower;
      auto shared = pair;
      if (Reach == 2) shared = hn::Add(pair0, pair);
      if (Reach == 3) shared = hn::Add(hn::Add(pair0, pair1), pair);
      hn::Store(hn::Add(shared, old0), d, sums);
      hn::Store(hn::Add(shared, lower), d, sums + pitch);
      old0 = Reach == 1 ? upper : old1;
      old1 = Reach == 2 ? upper : old2;
      old2 = upper;
      pair0 = Reach == 2 ? pair : pair1;
      pair1 = pair;
    }
  }
}

// The same for any reach, from squares in memory; for an even number of rows.
void SumFlatColumn(const PatchKernel& kernel, const float* HWY_RESTRICT squares, int rows,
                   float* HWY_RESTRICT sums) {
  const int reach = kernel.reach;
  const auto square = [&](int row) HWY_ATTR { return hn::Load(d, squares + row * longest_vector); };
  const auto pair = [&](int row) HWY_ATTR { return hn::Add(square(row), square(row + 1)); };
  for (int y = 0; y < rows; y += 2, sums += 2 * pitch) {
    if (reach == 0) {
      hn::Store(square(y), d, sums);
      hn::Store(square(y + 1), d, sums + pitch);
      continue;
    }
    auto shared = pair(y + 1);
    for (int k = 1; k < reach; ++k) shared = hn::Add(shared, pair(y + 2 * k + 1));
    hn::Store(hn::Add(shared, square(y)), d, sums);
    hn::Store(hn::Add(shared, square(y + 2 * reach + 1)), d, sums + pitch);
  }
}

// Loops over vectors that must stay in registers.
#undef UNGRAIN_UNROLL
#if HWY_COMPILER_CLANG
#define UNGRAIN_UNROLL _Pragma("unroll")
#else
#define UNGRAIN_UNROLL _Pragma("GCC unroll 16")
#endif

#if !HWY_HAVE_SCALABLE
// With weights, row_step rows at once: a square is added to all sums that it belongs to, which are held in
// registers. A sum's terms are added from the top down, as below.
template <int Channels, int Reach>
void SumWeightedColumns(const Columns& columns) {
  constexpr int side = 2 * Reach + 1;
  const int n = Lanes();
  Vector weights[side];
  for (int k = 0; k < side; ++k) weights[k] = hn::Set(d, columns.kernel.patch[static_cast<std::size_t>(k)]);
  for (int x = 0; x < columns.columns; x += n) {
    SquareColumn<Channels> squares(columns, x);
    float* sums = columns.sums + x;
    Vector waiting[side - 1];  // of the rows begun so far, the next one first
    UNGRAIN_UNROLL
    for (int row = 0; row < side - 1; ++row) {
      const auto square = squares.Next();
      UNGRAIN_UNROLL
      for (int j = 0; j < row; ++j) waiting[j] = hn::MulAdd(weights[row - j], square, waiting[j]);
      waiting[row] = hn::Mul(weights[0], square);
    }
    for (int y = 0; y < columns.rows; y += row_step, sums += row_step * pitch) {
      Vector square[row_step];
      UNGRAIN_UNROLL
      for (int i = 0; i < row_step; ++i) square[i] = squares.Next();
      UNGRAIN_UNROLL
      for (int j = 0; j < side - 1 + row_step; ++j) {
        const int begin = j < side ? 0 : j - side + 1;  // of the squares that belong to this sum
        auto sum = j < side - 1 ? hn::MulAdd(weights[side - 1 - j], square[0], waiting[j])
                                : hn::Mul(weights[0], square[j - side + 1]);
        const int next = j < side - 1 ? 1 : begin + 1;
        UNGRAIN_UNROLL
        for (int i = next; i <= j && i < row_step; ++i) {
          sum = hn::MulAdd(weights[side - 1 + i - j], square[i], sum);
        }
        if (j < row_step) {
          hn::Store(sum, d, sums + j * pitch);
        } else {
          waiting[j - row_step] = sum;
        }
      }
    }
  }
}
#endif

// The same with weights.
void SumWeightedColumn(const PatchKernel& kernel, const float* HWY_RESTRICT squares, int rows,
                       float* HWY_RESTRICT sums) {
  static_assert(row_step == 4);
  const int side = 2 * kernel.reach + 1;
  const float* HWY_RESTRICT weights = kernel.patch.data();
  for (int y = 0; y < rows; y += row_step, squares += row_step * longest_vector, sums += row_step * pitch) {
    auto sum0 = hn::Zero(d);
    auto sum1 = sum0;
    auto sum2 = sum0;
    auto sum3 = sum0;
    const float* row = squares;
    for (int k = 0; k < side; ++k, row += longest_vector) {
      const auto weight = hn::Set(d, weights[k]);
      sum0 = hn::MulAdd(weight, hn::Load(d, row), sum0);
      sum1 = hn::MulAdd(weight, hn::Load(d, row + longest_vector), sum1);
      sum2 = hn::MulAdd(weight, hn::Load(d, row + 2 * longest_vector), sum2);
      sum3 = hn::MulAdd(weight, hn::Load(d, row + 3 * longest_vector), sum3);
    }
    hn::Store(sum0, d, sums);
    hn::Store(sum1, d, sums + pitch);
    hn::Store(sum2, d, sums + 2 * pitch);
    hn::Store(sum3, d, sums + 3 * pitch);
  }
}

// Any patch; rows that are not compared are zero.
template <int Channels>
void SumColumns(const Columns& columns) {
  const int n = Lanes();
  const int begin = columns.compared_begin;
  const int end = columns.compared_end;
  const int count = columns.rows + 2 * columns.kernel.reach;
  const auto sum_column = columns.kernel.flat ? SumFlatColumn : SumWeightedColumn;
  std::fill_n(columns.squares, begin * longest_vector, 0.0F);
  std::fill_n(columns.squares + end * longest_vector, (count - end) * longest_vector, 0.0F);
  for (int x = 0; x < columns.columns; x += n) {
    SquareColumn<Channels> squares(columns, x);
    squares.Skip(begin);
    float* square = columns.squares + begin * longest_vector;
    for (int y = begin; y < end; ++y, square += longest_vector) hn::Store(squares.Next(), d, square);
    sum_column(columns.kernel, columns.squares, columns.rows, columns.sums + x);
  }
}

using SumColumnsFunction = void (*)(const Columns&);

template <int Channels>
SumColumnsFunction ChooseSumColumns(const PatchKernel& kernel, bool all_compared) {
  if (kernel.flat && all_compared) {
    if (kernel.reach == 1) return SumFlatColumns<Channels, 1>;
    if (kernel.reach == 2) return SumFlatColumns<Channels, 2>;
    if (kernel.reach == 3) return SumFlatColumns<Channels, 3>;
  }
#if !HWY_HAVE_SCALABLE
  if (!kernel.flat && all_compared) {
    if (kernel.reach == 1) return SumWeightedColumns<Channels, 1>;
    if (kernel.reach == 2) return SumWeightedColumns<Channels, 2>;
    if (kernel.reach == 3) return SumWeightedColumns<Channels, 3>;
    if (kernel.reach == 4) return SumWeightedColumns<Channels, 4>;
    if (kernel.reach == 5) return SumWeightedColumns<Channels, 5>;
  }
#endif
  return SumColumns<Channels>;
}

SumColumnsFunction ChooseSumColumns(const PatchKernel& kernel, bool all_compared) {
  if (kernel.channels == 1) return ChooseSumColumns<1>(kernel, all_compared);
  if (kernel.channels == 3) return ChooseSumColumns<3>(kernel, all_compared);
  return ChooseSumColumns<0>(kernel, all_compared);
}

// Sums along the rows of patches whose pixels all count the same.
template <int Reach>
class FlatPatch {
 public:
  explicit FlatPatch(const PatchKernel& kernel) : reach_(Reach == any_reach ? kernel.reach : Reach) {}

  HWY_INLINE Vector AlongRow(const float* sums) const {
    if (reach_ == 0) return hn::LoadU(d, sums);
    auto sum = Pair(sums);
    for (int k = 1; k < reach_; ++k) sum = hn::Add(sum, Pair(sums + 2 * k));
    return hn::Add(sum, hn::LoadU(d, sums + 2 * reach_));
  }

 private:
  static HWY_INLINE Vector Pair(const float* sums) {
    return hn::Add(hn::LoadU(d, sums), hn::LoadU(d, sums + 1));
  }

  int reach_;
};

// The same for patches with weights, which are symmetric.
template <int Reach>
class WeightedPatch {
 public:
  explicit WeightedPatch(const PatchKernel& kernel) : reach_(Reach == any_reach ? kernel.reach : Reach) {
    for (int k = 0; k <= reach_; ++k) weight_[k] = kernel.patch[static_cast<std::size_t>(k)];
  }

  HWY_INLINE Vector AlongRow(const float* sums) const {
    auto sum = hn::Mul(Weight(0), hn::LoadU(d, sums));
    for (int k = 1; k <= 2 * reach_; ++k) sum = hn::MulAdd(Weight(k), hn::LoadU(d, sums + k), sum);
    return sum;
  }

 private:
  HWY_INLINE Vector Weight(int k) const { return hn::Set(d, weight_[k <= reach_ ? k : 2 * reach_ - k]); }

  int reach_;
  float weight_[(Reach == any_reach ? most_reach : Reach) + 1];
};

// Where weights are computed: a row of sums at a time.
struct WeightRows {
  const PatchKernel& kernel;
  const PatchShift& shift;
  float* weights;      // overwrite the sums along columns, which start at the first column of patches
  const float* still;  // the pixels themselves
  std::ptrdiff_t still_pitch;
  std::ptrdiff_t still_plane;
  const float* moving;
  std::ptrdiff_t moving_pitch;
  std::ptrdiff_t moving_plane;
};

// The exponent of 2 of a weight, for nlm.
class PatchExponent {
 public:
  explicit PatchExponent(const WeightRows& rows) : scale_(rows.kernel.scale), noise_(rows.kernel.noise) {}

  void NextRow() {}
  HWY_INLINE Vector Exponent(int, Vector distance) const {
    const auto above_noise = hn::NegMulAdd(distance, hn::Set(d, scale_), hn::Set(d, noise_));
    return hn::Min(above_noise, hn::Zero(d));
  }

 private:
  float scale_;
  float noise_;
};

// For nlm-bilateral.
class PatchPixelExponent {
 public:
  explicit PatchPixelExponent(const WeightRows& rows)
      : still_(rows.still),
        still_pitch_(rows.still_pitch),
        still_plane_(rows.still_plane),
        moving_(rows.moving),
        moving_pitch_(rows.moving_pitch),
        moving_plane_(rows.moving_plane),
        channels_(rows.kernel.channels),
        scale_(rows.kernel.scale),
        pixel_scale_(rows.kernel.pixel_scale),
        of_shift_(-rows.shift.exponent) {}

  void NextRow() {
    still_ += still_pitch_;
    moving_ += moving_pitch_;
  }

  HWY_INLINE Vector Exponent(int x, Vector distance) const {
    const auto first = hn::Sub(hn::LoadU(d, still_ + x), hn::LoadU(d, moving_ + x));
    auto squares = hn::Mul(first, first);
    for (int c = 1; c < channels_; ++c) {
      const auto next =
          hn::Sub(hn::LoadU(d, still_ + c * still_plane_ + x), hn::LoadU(d, moving_ + c * moving_plane_ + x));
      squares = hn::MulAdd(next, next, squares);
    }
    const auto of_patch = hn::NegMulAdd(distance, hn::Set(d, scale_), hn::Set(d, of_shift_));
    return hn::NegMulAdd(squares, hn::Set(d, pixel_scale_), of_patch);
  }

 private:
  const float* still_;
  std::ptrdiff_t still_pitch_;
  std::ptrdiff_t still_plane_;
  const float* moving_;
  std::ptrdiff_t moving_pitch_;
  std::ptrdiff_t moving_plane_;
  int channels_;
  float scale_;
  float pixel_scale_;
  float of_shift_;
};

// 1 / the compared share of the patch's rows.
float InverseRowShare(const PatchKernel& kernel, const PatchShift& shift, int y) {
  const int side = 2 * kernel.reach + 1;
  const int begin = std::max(0, shift.compared.y0 - (y - kernel.reach));
  const int end = std::min(side, shift.compared.y1 - (y - kernel.reach));
  if (begin == 0 && end == side) return 1;
  float share = 0;
  for (int k = begin; k < end; ++k) share += kernel.patch[static_cast<std::size_t>(k)];
  return share > 0 ? 1 / share : 0;
}

template <class Patch, class Terms, bool Shares>
void FindWeights(const WeightRows& rows) {
  const int n = Lanes();
  const int width = rows.shift.weights.width();
  const Patch patch(rows.kernel);
  Terms terms(rows);
  float* weights = rows.weights;
  for (int y = rows.shift.weights.y0; y < rows.shift.weights.y1; ++y, weights += pitch) {
    const float row_share = Shares ? InverseRowShare(rows.kernel, rows.shift, y) : 1;
    for (int x = 0; x < width; x += n) {
      auto sum = patch.AlongRow(weights + x);
      if (Shares) {
        sum = hn::Mul(sum, hn::Mul(hn::LoadU(d, rows.shift.inverse_shares + x), hn::Set(d, row_share)));
      }
      hn::Store(Exp2OrZero<exp_degree>(d, terms.Exponent(x, sum)), d, weights + x);
    }
    terms.NextRow();
  }
}

using FindWeightsFunction = void (*)(const WeightRows&);

template <class Terms>
FindWeightsFunction ChooseFlatWeights(int reach, bool shares) {
  if (shares) return FindWeights<FlatPatch<any_reach>, Terms, true>;
  if (reach == 1) return FindWeights<FlatPatch<1>, Terms, false>;
  if (reach == 2) return FindWeights<FlatPatch<2>, Terms, false>;
  if (reach == 3) return FindWeights<FlatPatch<3>, Terms, false>;
  return FindWeights<FlatPatch<any_reach>, Terms, false>;
}

FindWeightsFunction ChooseWeightedWeights(int reach, bool shares) {
  if (shares) return FindWeights<WeightedPatch<any_reach>, PatchExponent, true>;
  if (reach == 2) return FindWeights<WeightedPatch<2>, PatchExponent, false>;
  if (reach == 3) return FindWeights<WeightedPatch<3>, PatchExponent, false>;
  if (reach == 4) return FindWeights<WeightedPatch<4>, PatchExponent, false>;
  if (reach == 5) return FindWeights<WeightedPatch<5>, PatchExponent, false>;
  return FindWeights<WeightedPatch<any_reach>, PatchExponent, false>;
}

// The usual patch sides each have code compiled for them.
FindWeightsFunction ChooseFindWeights(const PatchKernel& kernel, bool shares) {
  if (kernel.compares_pixels) return ChooseFlatWeights<PatchPixelExponent>(kernel.reach, shares);
  if (kernel.flat) return ChooseFlatWeights<PatchExponent>(kernel.reach, shares);
  return ChooseWeightedWeights(kernel.reach, shares);
}

// What the pixels of a rectangle read and sum: pointers for the first shift, from which the others lie at
// constant distances.
struct ShiftRows {
  const float* weights;  // of p for p + shift
  const float* values;
  const float* back_weights;  // of p - shift for p
  const float* back_values;
  std::ptrdiff_t values_pitch;
  std::ptrdiff_t values_plane;
  float* sums;
  std::ptrdiff_t sums_pitch;
  std::ptrdiff_t sums_plane;
  int width;
  int height;
  int channels;
};

// Which weights a pixel uses.
enum class WeightDirection {
  forth,  // its own for p + shift
  back,   // those of p - shift
  both
};

// Distance from the weights of one shift to those of the next.
constexpr std::ptrdiff_t to_next_shift(WeightDirection which) {
  return which == WeightDirection::both ? weights_of_shift : block_of_shift;
}
template <WeightDirection Which>
HWY_INLINE Vector Forth(const float* weights, int s) {
  return hn::LoadU(d, weights + s * to_next_shift(Which));
}
template <WeightDirection Which>
HWY_INLINE Vector Back(const float* weights, int s) {
  return hn::LoadU(d, weights + s * (to_next_shift(Which) - 1));
}

// Sums the weights and the first channel. All loads come before the first store, so that each weight is read
// once.
template <int Shifts, WeightDirection Which, bool Largest>
void TakeFirst(const ShiftRows& rows, int y) {
  const int n = Lanes();
  const int width = rows.width;
  const float* forth = rows.weights + y * pitch;
  const float* back = rows.back_weights + y * pitch;
  const float* values = rows.values + y * rows.values_pitch;
  const float* back_values = rows.back_values + y * rows.values_pitch;
  float* weight_sums = rows.sums + y * rows.sums_pitch + PatchSums::weights * rows.sums_plane;
  float* largest = rows.sums + y * rows.sums_pitch + PatchSums::largest * rows.sums_plane;
  float* sums = rows.sums + y * rows.sums_pitch + PatchSums::values * rows.sums_plane;
  for (int x = 0; x < width; x += n) {
    auto weight_sum = hn::LoadU(d, weight_sums + x);
    auto most = Largest ? hn::LoadU(d, largest + x) : weight_sum;
    auto sum = hn::LoadU(d, sums + x);
    const auto take = [&](int s) HWY_ATTR {
      if (Which != WeightDirection::both) {
        const bool goes = Which == WeightDirection::forth;
        const auto w = InRegister(goes ? Forth<Which>(forth + x, s) : Back<Which>(back + x, s));
        weight_sum = hn::Add(weight_sum, w);
        if (Largest) most = hn::Max(most, w);
        sum = hn::MulAdd(w, hn::LoadU(d, goes ? values + s + x : back_values - s + x), sum);
        return;
      }
      const auto w = InRegister(Forth<Which>(forth + x, s));
      const auto v = InRegister(Back<Which>(back + x, s));
      weight_sum = hn::Add(weight_sum, hn::Add(w, v));
      if (Largest) most = hn::Max(most, hn::Max(w, v));
      sum = hn::MulAdd(w, hn::LoadU(d, values + s + x), sum);
      sum = hn::MulAdd(v, hn::LoadU(d, back_values - s + x), sum);
    };
    UNGRAIN_UNROLL
    for (int s = 0; s < Shifts; ++s) take(s);
    hn::StoreU(weight_sum, d, weight_sums + x);
    if (Largest) hn::StoreU(most, d, largest + x);
    hn::StoreU(sum, d, sums + x);
  }
}

template <int Shifts, WeightDirection Which>
void TakeChannel(const ShiftRows& rows, int y, int c) {
  const int n = Lanes();
  const int width = rows.width;
  const float* forth = rows.weights + y * pitch;
  const float* back = rows.back_weights + y * pitch;
  const float* values = rows.values + y * rows.values_pitch + c * rows.values_plane;
  const float* back_values = rows.back_values + y * rows.values_pitch + c * rows.values_plane;
  float* sums = rows.sums + y * rows.sums_pitch + (PatchSums::values + c) * rows.sums_plane;
  for (int x = 0; x < width; x += n) {
    auto sum = hn::LoadU(d, sums + x);
    UNGRAIN_UNROLL
    for (int s = 0; s < Shifts; ++s) {
      if (Which != WeightDirection::back)
        sum = hn::MulAdd(Forth<Which>(forth + x, s), hn::LoadU(d, values + s + x), sum);
      if (Which != WeightDirection::forth)
        sum = hn::MulAdd(Back<Which>(back + x, s), hn::LoadU(d, back_values - s + x), sum);
    }
    hn::StoreU(sum, d, sums + x);
  }
}

template <int Shifts, WeightDirection Which, bool Largest>
void TakeRows(const ShiftRows& rows) {
  for (int y = 0; y < rows.height; ++y) {
    TakeFirst<Shifts, Which, Largest>(rows, y);
    for (int c = 1; c < rows.channels; ++c) TakeChannel<Shifts, Which>(rows, y, c);
  }
}

using TakeRowsFunction = void (*)(const ShiftRows&);

template <int Shifts, WeightDirection Which>
TakeRowsFunction ChooseTakeRows(int shifts, bool largest) {
  if constexpr (Shifts > 1) {
    if (shifts < Shifts) return ChooseTakeRows<Shifts - 1, Which>(shifts, largest);
  }
  return largest ? TakeRows<Shifts, Which, true> : TakeRows<Shifts, Which, false>;
}

// Compiled for the largest number of shifts, and for few.
template <WeightDirection Which>
TakeRowsFunction ChooseTakeRows(int shifts, bool largest) {
  if constexpr (Which != WeightDirection::both) {
    if (shifts > shifts_at_once) {
      return largest ? TakeRows<most_shifts_at_once, Which, true>
                     : TakeRows<most_shifts_at_once, Which, false>;
    }
  }
  return ChooseTakeRows<shifts_at_once, Which>(shifts, largest);
}

// The weights of one shift. Their first row is even, or the tile's first.
class Shift {
 public:
  Shift(const PatchKernel& kernel, const ConstPlanes& still, const ConstPlanes& moving,
        const PatchShift& shift, float* weights, float* squares)
      : kernel_(kernel),
        still_(still),
        moving_(moving),
        shift_(shift),
        weights_(weights),
        squares_(squares),
        even_(shift.weights.y0 - (shift.weights.y0 & 1)),
        rows_(up_to(row_step, shift.weights.y1 - even_)),
        x_(shift.weights.x0 - kernel.reach),
        columns_(up_to(longest_vector, shift.weights.width()) + 2 * kernel.reach) {}

  // Writes zeros behind each row, in `behind` columns and to the end of the last one's vector.
  void find_weights(int behind) const {
    sum_columns();
    const Rect& area = shift_.weights;
    ChooseFindWeights(kernel_, shift_.inverse_shares != nullptr)(
        {.kernel = kernel_,
         .shift = shift_,
         .weights = weights_,
         .still = &still_.at(0, area.x0, area.y0),
         .still_pitch = still_.row_stride,
         .still_plane = still_.plane_stride,
         .moving = &moving_.at(0, area.x0 + shift_.dx, area.y0 + shift_.dy),
         .moving_pitch = moving_.row_stride,
         .moving_plane = moving_.plane_stride});
    clear_uncounted();
    if (behind > 0) clear_behind(behind);
  }

 private:
  void sum_columns() const {
    const int y = even_ - kernel_.reach;
    const int count = rows_ + 2 * kernel_.reach;
    const int begin = std::clamp(shift_.compared.y0 - y, 0, count);
    const int end = std::clamp(shift_.compared.y1 - y, begin, count);
    float* sums = weights_ - (shift_.weights.y0 - even_) * pitch;
    const bool all_compared = begin == 0 && end == count;
    ChooseSumColumns(kernel_, all_compared)({.kernel = kernel_,
                                             .still = &still_.at(0, x_, y),
                                             .still_pitch = still_.row_stride,
                                             .still_plane = still_.plane_stride,
                                             .moving = &moving_.at(0, x_ + shift_.dx, y + shift_.dy),
                                             .moving_pitch = moving_.row_stride,
                                             .moving_plane = moving_.plane_stride,
                                             .columns = columns_,
                                             .rows = rows_,
                                             .compared_begin = begin,
                                             .compared_end = end,
                                             .squares = squares_,
                                             .sums = sums});
    clear(sums, rows_, columns_, shift_.compared.x0 - x_, shift_.compared.x1 - x_);
  }

  void clear_behind(int columns) const {
    const int n = Lanes();
    const int width = shift_.weights.width();
    const int end = up_to(n, width + columns);
    const auto zero = InRegister(hn::Zero(d));
    float* row = weights_;
    for (int y = shift_.weights.y0; y < shift_.weights.y1; ++y, row += pitch) {
      for (int x = width; x < end; x += n) hn::StoreU(zero, d, row + x);
    }
  }

  void clear_uncounted() const {
    const Rect& area = shift_.weights;
    const Rect& counted = shift_.counted;
    const int width = up_to(longest_vector, area.width());
    const int begin = std::clamp(counted.y0 - area.y0, 0, area.height());
    const int end = std::clamp(counted.y1 - area.y0, begin, area.height());
    clear(weights_, begin, width, 0, 0);
    clear(weights_ + begin * pitch, end - begin, width, counted.x0 - area.x0, counted.x1 - area.x0);
    clear(weights_ + end * pitch, area.height() - end, width, 0, 0);
  }

  // Clears the columns outside [begin, end), up to a vector's length behind them.
  static void clear(float* rows, int height, int width, int begin, int end) {
    begin = std::clamp(begin, 0, width);
    end = std::clamp(end, begin, width);
    if (begin == 0 && end == width) return;
    const int n = Lanes();
    const auto zero = InRegister(hn::Zero(d));
    for (int y = 0; y < height; ++y, rows += pitch) {
      for (int x = 0; x < begin; x += n) {
        const auto before = hn::FirstN(d, static_cast<std::size_t>(begin - x));
        hn::StoreU(hn::IfThenZeroElse(before, hn::LoadU(d, rows + x)), d, rows + x);
      }
      for (int x = end; x < width; x += n) hn::StoreU(zero, d, rows + x);
    }
  }

  const PatchKernel& kernel_;
  const ConstPlanes& still_;
  const ConstPlanes& moving_;
  const PatchShift& shift_;
  float* weights_;
  float* squares_;  // down one column of vectors
  int even_;        // the first row of the sums along columns
  int rows_;
  int x_;  // their first column
  int columns_;
};

// The pixels of two images over the same area, each with sums of its own. Weights serve at once, so that
// blocks of rows overwrite each other.
void AddShiftsAcross(const PatchKernel& kernel, const ConstPlanes& still, const ConstPlanes& moving,
                     const PatchShifts& shifts, const Rect& area, const Planes& sums, float* memory,
                     const Planes& back) {
  const PatchShift& first = shifts.shift[0];
  const Rect& found = first.weights;
  float* const weights = first_weight(memory);
  const auto take_forth = ChooseTakeRows<WeightDirection::forth>(shifts.count, kernel.largest);
  const auto take_back = ChooseTakeRows<WeightDirection::back>(shifts.count, kernel.largest);
  // Adds for the rows [begin, end) of the area.
  const auto take = [&](auto take_rows, const Planes& to, int first_row, int begin, int end) {
    if (begin >= end) return;
    const auto weight = [&](int x, int y) {
      return weights + static_cast<std::ptrdiff_t>(y - first_row) * pitch + (x - found.x0);
    };
    const ConstPlanes& from = &to == &sums ? moving : still;
    take_rows({.weights = weight(area.x0, begin),
               .values = &from.at(0, area.x0 + first.dx, begin + first.dy),
               .back_weights = weight(area.x0 - first.dx, begin - first.dy),
               .back_values = &from.at(0, area.x0 - first.dx, begin - first.dy),
               .values_pitch = from.row_stride,
               .values_plane = from.plane_stride,
               .sums = &to.at(0, area.x0, begin),
               .sums_pitch = to.row_stride,
               .sums_plane = to.plane_stride,
               .width = area.width(),
               .height = end - begin,
               .channels = kernel.channels});
  };
  for (int row = found.y0; row < found.y1;) {
    const int next = std::min(found.y1, row + block_rows - (row & 1));
    for (int s = 0; s < shifts.count; ++s) {
      PatchShift part = shifts.shift[s];
      part.weights.y0 = row;
      part.weights.y1 = next;
      Shift(kernel, still, moving, part, weights + s * block_of_shift, memory).find_weights(0);
    }
    take(take_forth, sums, row, std::max(row, area.y0), std::min(next, area.y1));
    take(take_back, back, row, std::max(row + first.dy, area.y0), std::min(next + first.dy, area.y1));
    row = next;
  }
}

void AddPatchShifts(const PatchKernel& kernel, const ConstPlanes& still, const ConstPlanes& moving,
                    const PatchShifts& shifts, const Rect& area, const Planes& sums, float* memory,
                    const Planes& back) {
  if (shifts.use == WeightUse::across) {
    AddShiftsAcross(kernel, still, moving, shifts, area, sums, memory, back);
    return;
  }
  const PatchShift& first = shifts.shift[0];
  const bool around = shifts.use == WeightUse::around;
  const int dx = around ? first.dx : 0;
  const int dy = around ? first.dy : 0;
  const Rect& found = first.weights;
  float* weights = first_weight(memory);
  // With `both`, p - shift of several shifts reads this many columns before and behind the weights.
  const int beside = shifts.use == WeightUse::both ? shifts.count - 1 : 0;
  // Blocks of rows overwrite each other, unless rows below still use them.
  const auto weight = [&](int x, int y, int first_row) {
    return weights + static_cast<std::ptrdiff_t>(y - (around ? found.y0 : first_row)) * pitch +
           (x - found.x0);
  };
  const auto take_rows = around ? ChooseTakeRows<WeightDirection::both>(shifts.count, kernel.largest)
                                : ChooseTakeRows<WeightDirection::forth>(shifts.count, kernel.largest);
  const auto take_rows_back = ChooseTakeRows<WeightDirection::back>(shifts.count, kernel.largest);
  const std::ptrdiff_t next_shift = to_next_shift(around ? WeightDirection::both : WeightDirection::forth);
  for (int y = area.y0, row = found.y0; y < area.y1;) {
    const int next = std::min(area.y1, y + block_rows - (y & 1));
    for (int s = 0; s < shifts.count; ++s) {
      PatchShift part = shifts.shift[s];
      part.weights.y0 = row;
      part.weights.y1 = next;
      Shift(kernel, still, moving, part, weight(found.x0, row, row) + s * next_shift, memory)
          .find_weights(beside);
    }
    ShiftRows taken{.weights = weight(area.x0, y, row),
                    .values = &moving.at(0, area.x0 + first.dx, y + first.dy),
                    .back_weights = weight(area.x0 - dx, y - dy, row),
                    .back_values = &moving.at(0, area.x0 - dx, y - dy),
                    .values_pitch = moving.row_stride,
                    .values_plane = moving.plane_stride,
                    .sums = &sums.at(0, area.x0, y),
                    .sums_pitch = sums.row_stride,
                    .sums_plane = sums.plane_stride,
                    .width = area.width(),
                    .height = next - y,
                    .channels = kernel.channels};
    take_rows(taken);
    if (shifts.use == WeightUse::both) {
      taken.back_values = &still.at(0, area.x0, y);
      taken.values_pitch = still.row_stride;
      taken.values_plane = still.plane_stride;
      taken.sums = &back.at(0, area.x0 + first.dx, y + first.dy);
      taken.sums_pitch = back.row_stride;
      taken.sums_plane = back.plane_stride;
      taken.width = area.width() + beside;
      take_rows_back(taken);
    }
    y = next;
    row = next;
  }
}

}  // namespace
}  // namespace ungrain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace ungrain {
namespace {

HWY_EXPORT(AddPatchShifts);

}  // namespace

void prepare_patch_shifts(float* memory) {
  // Zeros for the columns before the weights, in the rows of one block. Nothing else is written there.
  for (int s = 0; s < most_shifts_at_once; ++s) {
    float* weights = first_weight(memory) + s * block_of_shift;
    for (int y = 0; y < block_rows; ++y) {
      for (int x = 1; x < most_shifts_at_once; ++x) weights[y * pitch - x] = 0;
    }
  }
}

std::size_t patch_shifts_floats() {
  return static_cast<std::size_t>(column_rows * longest_vector + shifts_at_once * weights_of_shift);
}

void add_patch_shifts(const PatchKernel& kernel, const ConstPlanes& still, const ConstPlanes& moving,
                      const PatchShifts& shifts, const Rect& area, const Planes& sums, float* memory,
                      const Planes& back) {
  HWY_DYNAMIC_DISPATCH(AddPatchShifts)(kernel, still, moving, shifts, area, sums, memory, back);
}

}  // namespace ungrain

#endif
