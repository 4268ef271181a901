// Row by row, so that all but the tile itself stays in the first-level cache: squared differences of a row,
// their sums along the patch's rows, the sums of those along its columns, the weights, the pixels' sums. Two
// rows are taken at once, the upper one even in image coordinates, and their sums share pairs of rows that
// begin at odd distances: 2.5 additions a pixel for a patch of 7, in an order that the image's coordinates
// alone decide.
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
constexpr int any_reach = -1;  // known only when called

constexpr int up_to_vectors(int n) { return (n + longest_vector - 1) / longest_vector * longest_vector; }

// Behind a row of weights as wide as `widest` are the columns that its patches and its last vectors reach.
constexpr int row_floats(int reach, int widest) {
  return up_to_vectors(widest) + up_to_vectors(2 * reach) + 2 * longest_vector;
}

// Rows that are kept while later ones are computed; a row is found by its number.
struct RowRing {
  float* rows = nullptr;
  int count = 0;
  int pitch = 0;
  float* row(int number) const {
    const int place = number % count;
    return rows + static_cast<std::ptrdiff_t>(place < 0 ? place + count : place) * pitch;
  }
};

// The memory of one shift.
struct ShiftRows {
  RowRing patch_rows;  // sums along the rows of patches
  RowRing pairs;       // of those, for flat patches
  RowRing weights;
};

struct Lines {
  float* squares[2];  // squared differences of two rows
  float* pairs[2];    // of neighbours in those, for flat patches
};

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

// Two rows of a shift: the even row y and the one below.
struct RowPair {
  RowPair(const PatchKernel& kernel_, const PatchShift& shift_, const Lines& lines_)
      : kernel(kernel_), shift(shift_), lines(lines_) {}

  const PatchKernel& kernel;
  const PatchShift& shift;
  const Lines& lines;
  const float* above[2 * most_reach];  // sums along rows of patches, from row y - reach on
  float* found[2];                     // of rows y + reach and y + reach + 1
  const float* pairs_above[most_reach];
  float* pairs_found;
  float* weights[2];
  const float* still[2];  // the pixels themselves
  const float* moving[2];
  std::ptrdiff_t still_plane;
  std::ptrdiff_t moving_plane;
  float row_share[2];  // 1 / the share of the patch's rows that are compared
};

template <int Channels>
void SquareRow(const float* a, std::ptrdiff_t a_plane, const float* b, std::ptrdiff_t b_plane, int channels,
               int count, float* HWY_RESTRICT squares) {
  const int n = static_cast<int>(hn::Lanes(d));
  const int planes = Channels > 0 ? Channels : channels;
  for (int x = 0; x < count; x += n) {
    const auto first = hn::Sub(hn::LoadU(d, a + x), hn::LoadU(d, b + x));
    auto sum = hn::Mul(first, first);
    for (int c = 1; c < planes; ++c) {
      const auto next = hn::Sub(hn::LoadU(d, a + c * a_plane + x), hn::LoadU(d, b + c * b_plane + x));
      sum = hn::MulAdd(next, next, sum);
    }
    hn::Store(sum, d, squares + x);
  }
}

// Squared differences of row y, from the first column that a patch of `weights` has.
void Squares(const PatchKernel& kernel, const PatchShift& shift, const ConstPlanes& still,
             const ConstPlanes& moving, int y, int count, float* squares) {
  const Rect& compared = shift.compared;
  if (y < compared.y0 || y >= compared.y1) {
    std::fill_n(squares, count, 0.0F);
    return;
  }
  const int x = shift.weights.x0 - kernel.reach;
  const float* a = &still.at(0, x, y);
  const float* b = &moving.at(0, x + shift.dx, y + shift.dy);
  const auto square_row = kernel.channels == 1   ? SquareRow<1>
                          : kernel.channels == 3 ? SquareRow<3>
                                                 : SquareRow<0>;
  square_row(a, still.plane_stride, b, moving.plane_stride, kernel.channels, count, squares);
  if (x < compared.x0) std::fill_n(squares, std::min(count, compared.x0 - x), 0.0F);
  if (x + count > compared.x1) {
    const int end = std::max(0, compared.x1 - x);
    std::fill_n(squares + end, count - end, 0.0F);
  }
}

void AddNeighbours(const float* HWY_RESTRICT squares, int count, float* HWY_RESTRICT pairs) {
  const int n = static_cast<int>(hn::Lanes(d));
  for (int x = 0; x < count; x += n) {
    hn::Store(hn::Add(hn::Load(d, squares + x), hn::LoadU(d, squares + x + 1)), d, pairs + x);
  }
}

// Patches whose pixels all count the same.
template <int Reach>
class FlatPatch {
 public:
  explicit FlatPatch(const RowPair& rows)
      : rows_(rows), reach_(Reach == any_reach ? rows.kernel.reach : Reach) {}

  HWY_INLINE Vector AlongRow(int line, int x) const {
    const float* squares = rows_.lines.squares[line] + x;
    if (reach_ == 0) return hn::Load(d, squares);
    const float* pairs = rows_.lines.pairs[line] + x;
    auto sum = hn::Load(d, pairs);
    for (int k = 1; k < reach_; ++k) sum = hn::Add(sum, hn::LoadU(d, pairs + 2 * k));
    return hn::Add(sum, hn::LoadU(d, squares + 2 * reach_));
  }

  // The last row above and the upper one, which later rows take as one.
  HWY_INLINE Vector AddPair(int x, Vector upper) const {
    if (reach_ == 0) return upper;
    const auto pair = hn::Add(hn::Load(d, rows_.above[2 * reach_ - 1] + x), upper);
    hn::Store(pair, d, rows_.pairs_found + x);
    return pair;
  }

  HWY_INLINE void AlongColumns(int x, Vector upper, Vector lower, Vector& sum0, Vector& sum1) const {
    auto shared = AddPair(x, upper);
    for (int k = reach_ - 2; k >= 0; --k) shared = hn::Add(shared, hn::Load(d, rows_.pairs_above[k] + x));
    sum0 = reach_ == 0 ? upper : hn::Add(shared, hn::Load(d, rows_.above[0] + x));
    sum1 = reach_ == 0 ? lower : hn::Add(shared, lower);
  }

 private:
  const RowPair& rows_;
  int reach_;
};

// Patches whose weights are products of one weight along each axis, the same to both sides.
template <int Reach>
class WeightedPatch {
 public:
  explicit WeightedPatch(const RowPair& rows)
      : rows_(rows), reach_(Reach == any_reach ? rows.kernel.reach : Reach) {
    for (int k = 0; k <= reach_; ++k) weight_[k] = rows.kernel.patch[static_cast<std::size_t>(k)];
  }

  HWY_INLINE Vector AlongRow(int line, int x) const {
    const float* squares = rows_.lines.squares[line] + x;
    auto sum = hn::Mul(Weight(0), hn::Load(d, squares));
    for (int k = 1; k <= 2 * reach_; ++k) sum = hn::MulAdd(Weight(k), hn::LoadU(d, squares + k), sum);
    return sum;
  }

  HWY_INLINE Vector AddPair(int, Vector upper) const { return upper; }

  HWY_INLINE void AlongColumns(int x, Vector upper, Vector lower, Vector& sum0, Vector& sum1) const {
    sum0 = hn::Mul(Weight(0), upper);
    sum1 = hn::Mul(Weight(0), lower);
    if (reach_ == 0) return;
    sum1 = hn::MulAdd(Weight(1), upper, sum1);
    for (int k = 2 * reach_ - 1; k > 0; --k) {
      const auto row = hn::Load(d, rows_.above[k] + x);
      sum0 = hn::MulAdd(Weight(k), row, sum0);
      sum1 = hn::MulAdd(Weight(k - 1), row, sum1);
    }
    sum0 = hn::MulAdd(Weight(0), hn::Load(d, rows_.above[0] + x), sum0);
  }

 private:
  HWY_INLINE Vector Weight(int k) const { return hn::Set(d, weight_[k <= reach_ ? k : 2 * reach_ - k]); }

  const RowPair& rows_;
  int reach_;
  float weight_[(Reach == any_reach ? most_reach : Reach) + 1];
};

// The exponent of 2 of a weight, for nlm.
class PatchesAlone {
 public:
  explicit PatchesAlone(const RowPair& rows) : scale_(rows.kernel.scale), noise_(rows.kernel.noise) {}

  HWY_INLINE Vector Exponent(int, int, Vector distance) const {
    const auto above_noise = hn::NegMulAdd(distance, hn::Set(d, scale_), hn::Set(d, noise_));
    return hn::Min(above_noise, hn::Zero(d));
  }

 private:
  float scale_;
  float noise_;
};

// For nlm-bilateral.
class PatchesAndPixels {
 public:
  explicit PatchesAndPixels(const RowPair& rows)
      : rows_(rows),
        channels_(rows.kernel.channels),
        scale_(rows.kernel.scale),
        pixel_scale_(rows.kernel.pixel_scale),
        of_shift_(-rows.shift.exponent) {}

  HWY_INLINE Vector Exponent(int row, int x, Vector distance) const {
    auto exponent = hn::NegMulAdd(distance, hn::Set(d, scale_), hn::Set(d, of_shift_));
    const float* a = rows_.still[row] + x;
    const float* b = rows_.moving[row] + x;
    for (int c = 0; c < channels_; ++c, a += rows_.still_plane, b += rows_.moving_plane) {
      const auto difference = hn::Sub(hn::LoadU(d, a), hn::LoadU(d, b));
      exponent = hn::NegMulAdd(hn::Mul(difference, difference), hn::Set(d, pixel_scale_), exponent);
    }
    return exponent;
  }

 private:
  const RowPair& rows_;
  int channels_;
  float scale_;
  float pixel_scale_;
  float of_shift_;
};

template <class Patch>
void SumAlongRows(const RowPair& rows) {
  const int n = static_cast<int>(hn::Lanes(d));
  const Patch patch(rows);
  for (int x = 0; x < rows.shift.weights.width(); x += n) {
    const auto upper = patch.AlongRow(0, x);
    hn::Store(upper, d, rows.found[0] + x);
    hn::Store(patch.AlongRow(1, x), d, rows.found[1] + x);
    patch.AddPair(x, upper);
  }
}

template <class Patch, class Terms, bool Shares>
void FindWeights(const RowPair& rows) {
  const int n = static_cast<int>(hn::Lanes(d));
  const int width = rows.shift.weights.width();
  const Patch patch(rows);
  const Terms terms(rows);
  for (int x = 0; x < width; x += n) {
    const auto upper = patch.AlongRow(0, x);
    const auto lower = patch.AlongRow(1, x);
    hn::Store(upper, d, rows.found[0] + x);
    hn::Store(lower, d, rows.found[1] + x);
    auto sum0 = upper;
    auto sum1 = lower;
    patch.AlongColumns(x, upper, lower, sum0, sum1);
    if (Shares) {
      const auto share = hn::LoadU(d, rows.shift.inverse_shares + x);
      sum0 = hn::Mul(sum0, hn::Mul(share, hn::Set(d, rows.row_share[0])));
      sum1 = hn::Mul(sum1, hn::Mul(share, hn::Set(d, rows.row_share[1])));
    }
    hn::Store(Exp2OrZero<exp_degree>(d, terms.Exponent(0, x, sum0)), d, rows.weights[0] + x);
    hn::Store(Exp2OrZero<exp_degree>(d, terms.Exponent(1, x, sum1)), d, rows.weights[1] + x);
  }
}

struct RowSteps {
  void (*sum_along_rows)(const RowPair&);
  void (*find_weights)(const RowPair&);
};

template <class Patch, class Terms>
constexpr RowSteps StepsFor() {
  return {SumAlongRows<Patch>, FindWeights<Patch, Terms, false>};
}

// Any reach, where the border may cut patches off.
template <class Patch, class Terms>
constexpr RowSteps StepsFor(bool shares) {
  return {SumAlongRows<Patch>, shares ? FindWeights<Patch, Terms, true> : FindWeights<Patch, Terms, false>};
}

template <class Terms>
RowSteps ChooseFlatSteps(int reach, bool shares) {
  if (reach == 1 && !shares) return StepsFor<FlatPatch<1>, Terms>();
  if (reach == 2 && !shares) return StepsFor<FlatPatch<2>, Terms>();
  if (reach == 3 && !shares) return StepsFor<FlatPatch<3>, Terms>();
  return StepsFor<FlatPatch<any_reach>, Terms>(shares);
}

RowSteps ChooseWeightedSteps(int reach, bool shares) {
  if (reach == 2 && !shares) return StepsFor<WeightedPatch<2>, PatchesAlone>();
  if (reach == 3 && !shares) return StepsFor<WeightedPatch<3>, PatchesAlone>();
  if (reach == 4 && !shares) return StepsFor<WeightedPatch<4>, PatchesAlone>();
  if (reach == 5 && !shares) return StepsFor<WeightedPatch<5>, PatchesAlone>();
  return StepsFor<WeightedPatch<any_reach>, PatchesAlone>(shares);
}

// The usual sides of patches are compiled each for itself.
RowSteps ChooseSteps(const PatchKernel& kernel, bool shares) {
  if (kernel.compares_pixels) return ChooseFlatSteps<PatchesAndPixels>(kernel.reach, shares);
  if (kernel.flat) return ChooseFlatSteps<PatchesAlone>(kernel.reach, shares);
  return ChooseWeightedSteps(kernel.reach, shares);
}

// What one row takes from each shift.
struct TakenRow {
  const float* weights[shifts_at_once];  // of p for p + shift
  const float* values[shifts_at_once];
  const float* back_weights[shifts_at_once];  // of p - shift for p
  const float* back_values[shifts_at_once];
  std::ptrdiff_t plane;  // of the values
  int width;
  int channels;
  float* sums;
  std::ptrdiff_t sums_plane;
};

template <int Shifts, bool Pairs, bool Largest>
void TakeRow(const TakenRow& row) {
  const int n = static_cast<int>(hn::Lanes(d));
  float* weights = row.sums + PatchSums::weights * row.sums_plane;
  float* largest = row.sums + PatchSums::largest * row.sums_plane;
  for (int x = 0; x < row.width; x += n) {
    auto sum = hn::LoadU(d, weights + x);
    for (int s = 0; s < Shifts; ++s) {
      const auto weight = hn::LoadU(d, row.weights[s] + x);
      sum = hn::Add(sum, Pairs ? hn::Add(weight, hn::LoadU(d, row.back_weights[s] + x)) : weight);
    }
    hn::StoreU(sum, d, weights + x);
    if (Largest) {
      auto most = hn::LoadU(d, largest + x);
      for (int s = 0; s < Shifts; ++s) {
        most = hn::Max(most, hn::LoadU(d, row.weights[s] + x));
        if (Pairs) most = hn::Max(most, hn::LoadU(d, row.back_weights[s] + x));
      }
      hn::StoreU(most, d, largest + x);
    }
    for (int c = 0; c < row.channels; ++c) {
      float* values = row.sums + (PatchSums::values + c) * row.sums_plane + x;
      auto value = hn::LoadU(d, values);
      for (int s = 0; s < Shifts; ++s) {
        const std::ptrdiff_t place = c * row.plane + x;
        value = hn::MulAdd(hn::LoadU(d, row.weights[s] + x), hn::LoadU(d, row.values[s] + place), value);
        if (Pairs) {
          value = hn::MulAdd(hn::LoadU(d, row.back_weights[s] + x), hn::LoadU(d, row.back_values[s] + place),
                             value);
        }
      }
      hn::StoreU(value, d, values);
    }
  }
}

template <int Shifts>
auto ChooseTakeRow(bool pairs, bool largest) {
  if (pairs) return largest ? TakeRow<Shifts, true, true> : TakeRow<Shifts, true, false>;
  return largest ? TakeRow<Shifts, false, true> : TakeRow<Shifts, false, false>;
}

// One call of add_patch_shifts.
class Group {
 public:
  Group(const PatchKernel& kernel, const ConstPlanes& still, const ConstPlanes& moving,
        const PatchShifts& shifts, const Rect& area, const Planes& sums, float* memory)
      : kernel_(kernel),
        still_(still),
        moving_(moving),
        shifts_(shifts),
        area_(area),
        sums_(sums),
        steps_(ChooseSteps(kernel, shifts.shift[0].inverse_shares != nullptr)),
        back_(shifts.pairs ? shifts.shift[0].dy : 0) {
    int widest = 0;
    for (int s = 0; s < shifts.count; ++s) widest = std::max(widest, shifts.shift[s].weights.width());
    lay_out(memory, row_floats(kernel.reach, widest));
  }

  void add() {
    const int first_row = area_.y0 - back_;
    const int even = first_row - (first_row & 1);
    for (int y = even - 2 * kernel_.reach; y < area_.y1; y += 2) {
      for (int s = 0; s < shifts_.count; ++s) add_row_pair(s, y, y >= even);
      if (y < even) continue;
      if (y >= area_.y0) take_row(y);
      if (y + 1 >= area_.y0 && y + 1 < area_.y1) take_row(y + 1);
    }
  }

 private:
  void lay_out(float* memory, int pitch) {
    const auto take = [&memory, pitch](int rows) {
      float* part = memory;
      memory += static_cast<std::ptrdiff_t>(rows) * pitch;
      return RowRing{part, rows, pitch};
    };
    for (int line = 0; line < 2; ++line) {
      lines_.squares[line] = take(1).rows;
      lines_.pairs[line] = take(1).rows;
    }
    for (int s = 0; s < shifts_.count; ++s) {
      rows_[s].patch_rows = take(2 * kernel_.reach + 2);
      rows_[s].pairs = take(std::max(1, kernel_.reach));
      rows_[s].weights = take(back_ + 2);
    }
  }

  // Computes the sums along the rows y + reach and y + reach + 1 of patches, and where all that they need is
  // there, the weights of rows y and y + 1.
  void add_row_pair(int s, int y, bool complete) {
    const PatchShift& shift = shifts_.shift[s];
    const int reach = kernel_.reach;
    const int width = up_to_vectors(shift.weights.width());
    for (int line = 0; line < 2; ++line) {
      Squares(kernel_, shift, still_, moving_, y + reach + line, width + 2 * reach, lines_.squares[line]);
      if (kernel_.flat && reach > 0) {
        AddNeighbours(lines_.squares[line], width + 2 * reach - 2, lines_.pairs[line]);
      }
    }
    const ShiftRows& rows = rows_[s];
    RowPair pair(kernel_, shift, lines_);
    for (int k = 0; k < 2 * reach; ++k) pair.above[k] = rows.patch_rows.row(y - reach + k);
    for (int line = 0; line < 2; ++line) pair.found[line] = rows.patch_rows.row(y + reach + line);
    const int step = y >> 1;
    for (int k = 0; k < reach; ++k) pair.pairs_above[k] = rows.pairs.row(step + 1 + k);
    pair.pairs_found = rows.pairs.row(step);
    if (!complete) {
      steps_.sum_along_rows(pair);
      return;
    }
    pair.still_plane = still_.plane_stride;
    pair.moving_plane = moving_.plane_stride;
    for (int line = 0; line < 2; ++line) {
      // A row that only fills up the pair has no pixels of its own.
      const int pixels = std::clamp(y + line, shift.weights.y0, shift.weights.y1 - 1);
      pair.weights[line] = rows.weights.row(y + line);
      pair.still[line] = &still_.at(0, shift.weights.x0, pixels);
      pair.moving[line] = &moving_.at(0, shift.weights.x0 + shift.dx, pixels + shift.dy);
      pair.row_share[line] = inverse_row_share(shift, y + line);
    }
    steps_.find_weights(pair);
    for (int line = 0; line < 2; ++line) clear_uncounted(shift, y + line, pair.weights[line]);
  }

  float inverse_row_share(const PatchShift& shift, int y) const {
    const int begin = std::max(0, shift.compared.y0 - (y - kernel_.reach));
    const int end = std::min(2 * kernel_.reach + 1, shift.compared.y1 - (y - kernel_.reach));
    if (shift.inverse_shares == nullptr || (begin == 0 && end == 2 * kernel_.reach + 1)) return 1;
    float share = 0;
    for (int k = begin; k < end; ++k) share += kernel_.patch[static_cast<std::size_t>(k)];
    return share > 0 ? 1 / share : 0;
  }

  static void clear_uncounted(const PatchShift& shift, int y, float* weights) {
    const Rect& counted = shift.counted;
    const int x = shift.weights.x0;
    const int width = up_to_vectors(shift.weights.width());
    const bool row_counts = y >= counted.y0 && y < counted.y1;
    const int begin = row_counts ? std::clamp(counted.x0 - x, 0, width) : width;
    const int end = row_counts ? std::clamp(counted.x1 - x, begin, width) : width;
    std::fill_n(weights, begin, 0.0F);
    std::fill_n(weights + end, width - end, 0.0F);
  }

  void take_row(int y) {
    TakenRow row;
    row.plane = moving_.plane_stride;
    row.width = area_.width();
    row.channels = kernel_.channels;
    row.sums = &sums_.at(0, area_.x0, y);
    row.sums_plane = sums_.plane_stride;
    for (int s = 0; s < shifts_.count; ++s) {
      const PatchShift& shift = shifts_.shift[s];
      const RowRing& weights = rows_[s].weights;
      const int left = area_.x0 - shift.weights.x0;
      row.weights[s] = weights.row(y) + left;
      row.values[s] = &moving_.at(0, area_.x0 + shift.dx, y + shift.dy);
      if (!shifts_.pairs) continue;
      row.back_weights[s] = weights.row(y - shift.dy) + (left - shift.dx);
      row.back_values[s] = &moving_.at(0, area_.x0 - shift.dx, y - shift.dy);
    }
    static_assert(shifts_at_once == 3);
    const auto take = shifts_.count == 1   ? ChooseTakeRow<1>(shifts_.pairs, kernel_.largest)
                      : shifts_.count == 2 ? ChooseTakeRow<2>(shifts_.pairs, kernel_.largest)
                                           : ChooseTakeRow<3>(shifts_.pairs, kernel_.largest);
    take(row);
  }

  const PatchKernel& kernel_;
  const ConstPlanes& still_;
  const ConstPlanes& moving_;
  const PatchShifts& shifts_;
  const Rect& area_;
  const Planes& sums_;
  RowSteps steps_;
  int back_;  // rows above a pixel's that it takes weights from
  Lines lines_;
  ShiftRows rows_[shifts_at_once];
};

void AddPatchShifts(const PatchKernel& kernel, const ConstPlanes& still, const ConstPlanes& moving,
                    const PatchShifts& shifts, const Rect& area, const Planes& sums, float* memory) {
  Group(kernel, still, moving, shifts, area, sums, memory).add();
}

}  // namespace
}  // namespace ungrain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace ungrain {
namespace {

HWY_EXPORT(AddPatchShifts);

}  // namespace

std::size_t patch_shifts_floats(int reach, int widest, int farthest) {
  const int lines = 4;
  const int of_shift = (2 * reach + 2) + std::max(1, reach) + (farthest + 2);
  return static_cast<std::size_t>(lines + shifts_at_once * of_shift) *
         static_cast<std::size_t>(row_floats(reach, widest));
}

void add_patch_shifts(const PatchKernel& kernel, const ConstPlanes& still, const ConstPlanes& moving,
                      const PatchShifts& shifts, const Rect& area, const Planes& sums, float* memory) {
  HWY_DYNAMIC_DISPATCH(AddPatchShifts)(kernel, still, moving, shifts, area, sums, memory);
}

}  // namespace ungrain

#endif
