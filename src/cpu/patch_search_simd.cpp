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

constexpr int weight_pairs(int farthest) { return (farthest + 1) / 2 + 1; }
constexpr int most_pairs = std::max(most_reach + 1, weight_pairs(farthest_pair));

constexpr int up_to_vectors(int n) { return (n + longest_vector - 1) / longest_vector * longest_vector; }

// Rows of the memory: as wide as the widest rectangle of weights, with the columns that its patches and its
// last vectors reach. A constant, so that neighbouring rows need no pointers of their own.
constexpr int pitch = up_to_vectors(widest_weights) + up_to_vectors(2 * most_reach) + 3 * longest_vector;

// Pairs of rows that are kept while later ones are computed.
class PairRing {
 public:
  void lay_out(float* memory, int count) {
    count_ = count;
    latest_ = count - 1;
    for (int k = 0; k < 2 * count; ++k)
      places_[k] = memory + static_cast<std::ptrdiff_t>(k % count) * 2 * pitch;
  }
  std::ptrdiff_t floats() const { return static_cast<std::ptrdiff_t>(count_) * 2 * pitch; }
  void advance() { latest_ = latest_ + 1 == count_ ? 0 : latest_ + 1; }
  // All of them, the oldest first and the latest last.
  float* const* rows() const { return places_ + latest_ + 1; }
  float* latest() const { return places_[latest_]; }
  float* back(int steps) const { return places_[latest_ + count_ - steps]; }

 private:
  int count_ = 0;
  int latest_ = 0;
  float* places_[2 * most_pairs];
};

// Lines of one shift, a pitch apart: squared differences of two rows, and for flat patches the sums of
// neighbours in those.
constexpr int lines_of_shift = 4;
constexpr int line_of_pairs = 2;

constexpr std::ptrdiff_t weights_of_shift =
    static_cast<std::ptrdiff_t>(weight_pairs(farthest_pair)) * 2 * pitch;

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

// Two rows of a shift: the even row y and the one below. Pointers are to the upper of two rows.
struct RowPair {
  const PatchKernel* kernel;
  const PatchShift* shift;
  const float* lines;
  float* const*
      patch_rows;        // sums along rows of patches: from row y - reach on, then those that are computed
  float* const* shared;  // for flat patches: sums of a pair's lower and the next one's upper row
  float* weights;
  const float* still[2];  // the pixels themselves
  const float* moving[2];
  std::ptrdiff_t still_plane;
  std::ptrdiff_t moving_plane;
  float row_share[2];  // 1 / the share of the patch's rows that are compared
};

// Squared differences of one row.
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

using SquareRowFunction = decltype(&SquareRow<0>);

SquareRowFunction ChooseSquareRow(int channels) {
  return channels == 1 ? SquareRow<1> : channels == 3 ? SquareRow<3> : SquareRow<0>;
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
      : reach_(Reach == any_reach ? rows.kernel->reach : Reach), lines_(rows.lines) {
    if (reach_ == 0) return;
    first_above_ = rows.patch_rows[0];
    last_above_ = rows.patch_rows[reach_ - 1] + pitch;
    shared_found_ = rows.shared[reach_ - 1];
    for (int k = 0; k + 1 < reach_; ++k) shared_[k] = rows.shared[k];
  }

  HWY_INLINE Vector AlongRow(int line, int x) const {
    const float* squares = lines_ + line * pitch + x;
    if (reach_ == 0) return hn::Load(d, squares);
    const float* pairs = squares + line_of_pairs * pitch;
    auto sum = hn::Load(d, pairs);
    for (int k = 1; k < reach_; ++k) sum = hn::Add(sum, hn::LoadU(d, pairs + 2 * k));
    return hn::Add(sum, hn::LoadU(d, squares + 2 * reach_));
  }

  // The last row above and the upper one, which later rows take as one.
  HWY_INLINE Vector AddPair(int x, Vector upper) const {
    if (reach_ == 0) return upper;
    const auto pair = hn::Add(hn::Load(d, last_above_ + x), upper);
    hn::Store(pair, d, shared_found_ + x);
    return pair;
  }

  HWY_INLINE void AlongColumns(int x, Vector upper, Vector lower, Vector& sum0, Vector& sum1) const {
    auto shared = AddPair(x, upper);
    for (int k = reach_ - 2; k >= 0; --k) shared = hn::Add(shared, hn::Load(d, shared_[k] + x));
    sum0 = reach_ == 0 ? upper : hn::Add(shared, hn::Load(d, first_above_ + x));
    sum1 = reach_ == 0 ? lower : hn::Add(shared, lower);
  }

 private:
  int reach_;
  const float* lines_;
  const float* first_above_ = nullptr;
  const float* last_above_ = nullptr;
  const float* shared_[Reach == any_reach ? most_reach : Reach];
  float* shared_found_ = nullptr;
};

// Patches whose weights are products of one weight along each axis, the same to both sides.
template <int Reach>
class WeightedPatch {
 public:
  explicit WeightedPatch(const RowPair& rows)
      : reach_(Reach == any_reach ? rows.kernel->reach : Reach), lines_(rows.lines) {
    for (int k = 0; k <= reach_; ++k) weight_[k] = rows.kernel->patch[static_cast<std::size_t>(k)];
    for (int k = 0; k < reach_; ++k) above_[k] = rows.patch_rows[k];
  }

  HWY_INLINE Vector AlongRow(int line, int x) const {
    const float* squares = lines_ + line * pitch + x;
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
    for (int k = reach_ - 1; k >= 0; --k) {
      const auto odd = hn::Load(d, above_[k] + pitch + x);
      sum0 = hn::MulAdd(Weight(2 * k + 1), odd, sum0);
      sum1 = hn::MulAdd(Weight(2 * k), odd, sum1);
      const auto even = hn::Load(d, above_[k] + x);
      sum0 = hn::MulAdd(Weight(2 * k), even, sum0);
      if (k > 0) sum1 = hn::MulAdd(Weight(2 * k - 1), even, sum1);
    }
  }

 private:
  HWY_INLINE Vector Weight(int k) const { return hn::Set(d, weight_[k <= reach_ ? k : 2 * reach_ - k]); }

  int reach_;
  const float* lines_;
  const float* above_[Reach == any_reach ? most_reach : Reach];
  float weight_[(Reach == any_reach ? most_reach : Reach) + 1];
};

// The exponent of 2 of a weight, for nlm.
class PatchesAlone {
 public:
  explicit PatchesAlone(const RowPair& rows) : scale_(rows.kernel->scale), noise_(rows.kernel->noise) {}

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
      : still_{rows.still[0], rows.still[1]},
        moving_{rows.moving[0], rows.moving[1]},
        still_plane_(rows.still_plane),
        moving_plane_(rows.moving_plane),
        channels_(rows.kernel->channels),
        scale_(rows.kernel->scale),
        pixel_scale_(rows.kernel->pixel_scale),
        of_shift_(-rows.shift->exponent) {}

  HWY_INLINE Vector Exponent(int row, int x, Vector distance) const {
    auto exponent = hn::NegMulAdd(distance, hn::Set(d, scale_), hn::Set(d, of_shift_));
    const float* a = still_[row] + x;
    const float* b = moving_[row] + x;
    for (int c = 0; c < channels_; ++c, a += still_plane_, b += moving_plane_) {
      const auto difference = hn::Sub(hn::LoadU(d, a), hn::LoadU(d, b));
      exponent = hn::NegMulAdd(hn::Mul(difference, difference), hn::Set(d, pixel_scale_), exponent);
    }
    return exponent;
  }

 private:
  const float* still_[2];
  const float* moving_[2];
  std::ptrdiff_t still_plane_;
  std::ptrdiff_t moving_plane_;
  int channels_;
  float scale_;
  float pixel_scale_;
  float of_shift_;
};

template <class Patch>
void SumAlongRows(const RowPair& rows) {
  const int n = static_cast<int>(hn::Lanes(d));
  const int width = rows.shift->weights.width();
  const Patch patch(rows);
  float* found = rows.patch_rows[rows.kernel->reach];
  for (int x = 0; x < width; x += n) {
    const auto upper = patch.AlongRow(0, x);
    hn::Store(upper, d, found + x);
    hn::Store(patch.AlongRow(1, x), d, found + pitch + x);
    patch.AddPair(x, upper);
  }
}

template <class Patch, class Terms, bool Shares>
void FindWeights(const RowPair& rows) {
  const int n = static_cast<int>(hn::Lanes(d));
  const int width = rows.shift->weights.width();
  const Patch patch(rows);
  const Terms terms(rows);
  float* found = rows.patch_rows[rows.kernel->reach];
  float* weights = rows.weights;
  for (int x = 0; x < width; x += n) {
    const auto upper = patch.AlongRow(0, x);
    const auto lower = patch.AlongRow(1, x);
    hn::Store(upper, d, found + x);
    hn::Store(lower, d, found + pitch + x);
    auto sum0 = upper;
    auto sum1 = lower;
    patch.AlongColumns(x, upper, lower, sum0, sum1);
    if (Shares) {
      const auto share = hn::LoadU(d, rows.shift->inverse_shares + x);
      sum0 = hn::Mul(sum0, hn::Mul(share, hn::Set(d, rows.row_share[0])));
      sum1 = hn::Mul(sum1, hn::Mul(share, hn::Set(d, rows.row_share[1])));
    }
    hn::Store(Exp2OrZero<exp_degree>(d, terms.Exponent(0, x, sum0)), d, weights + x);
    hn::Store(Exp2OrZero<exp_degree>(d, terms.Exponent(1, x, sum1)), d, weights + pitch + x);
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

// What one row takes from the shifts: the first one's, from which the next ones' lie at constant distances.
struct TakenRow {
  const float* weights;  // of p for p + shift
  const float* values;
  const float* back_weights;  // of p - shift for p
  const float* back_values;
  std::ptrdiff_t plane;  // of the values
  int width;
  int channels;
  float* sums;
  std::ptrdiff_t sums_plane;
};

// Weights of shift s in one row, and one channel's values.
HWY_INLINE Vector Forth(const float* weights, int s, int x) {
  return hn::LoadU(d, weights + s * weights_of_shift + x);
}
HWY_INLINE Vector Back(const float* weights, int s, int x) {
  return hn::LoadU(d, weights + s * (weights_of_shift - 1) + x);
}

// Nothing is stored before all is read, so that each weight is read once; weights have names, not places in
// an array, so that vectors of unknown length stay possible.
template <int Shifts, bool Pairs, bool Largest>
void TakeRow(const TakenRow& row) {
  static_assert(shifts_at_once == 3);
  const int n = static_cast<int>(hn::Lanes(d));
  const int width = row.width;
  const float* forth = row.weights;
  const float* back = row.back_weights;
  float* weight_sums = row.sums + PatchSums::weights * row.sums_plane;
  float* largest = row.sums + PatchSums::largest * row.sums_plane;
  float* sums = row.sums + PatchSums::values * row.sums_plane;
  const float* values = row.values;
  const float* back_values = row.back_values;
  for (int x = 0; x < width; x += n) {
    auto weight_sum = hn::LoadU(d, weight_sums + x);
    auto most = Largest ? hn::LoadU(d, largest + x) : weight_sum;
    auto sum = hn::LoadU(d, sums + x);
    const auto take = [&](int s) HWY_ATTR {
      const auto w = Forth(forth, s, x);
      sum = hn::MulAdd(w, hn::LoadU(d, values + s + x), sum);
      if (!Pairs) {
        weight_sum = hn::Add(weight_sum, w);
        if (Largest) most = hn::Max(most, w);
        return;
      }
      const auto v = Back(back, s, x);
      sum = hn::MulAdd(v, hn::LoadU(d, back_values - s + x), sum);
      weight_sum = hn::Add(weight_sum, hn::Add(w, v));
      if (Largest) most = hn::Max(most, hn::Max(w, v));
    };
    take(0);
    if (Shifts > 1) take(1);
    if (Shifts > 2) take(2);
    hn::StoreU(weight_sum, d, weight_sums + x);
    if (Largest) hn::StoreU(most, d, largest + x);
    hn::StoreU(sum, d, sums + x);
  }
  for (int c = 1; c < row.channels; ++c) {
    sums += row.sums_plane;
    values += row.plane;
    back_values += row.plane;
    for (int x = 0; x < width; x += n) {
      auto sum = hn::LoadU(d, sums + x);
      for (int s = 0; s < Shifts; ++s) {
        sum = hn::MulAdd(Forth(forth, s, x), hn::LoadU(d, values + s + x), sum);
        if (Pairs) sum = hn::MulAdd(Back(back, s, x), hn::LoadU(d, back_values - s + x), sum);
      }
      hn::StoreU(sum, d, sums + x);
    }
  }
}

using TakeRowFunction = void (*)(const TakenRow&);

template <int Shifts>
TakeRowFunction ChooseTakeRow(int shifts, bool pairs, bool largest) {
  if constexpr (Shifts > 1) {
    if (shifts < Shifts) return ChooseTakeRow<Shifts - 1>(shifts, pairs, largest);
  }
  if (pairs) return largest ? TakeRow<Shifts, true, true> : TakeRow<Shifts, true, false>;
  return largest ? TakeRow<Shifts, false, true> : TakeRow<Shifts, false, false>;
}

// One shift of a call of add_patch_shifts.
class ShiftRows {
 public:
  // Returns the memory that is left.
  float* prepare(const PatchKernel& kernel, const PatchShift& shift, const ConstPlanes& still,
                 const ConstPlanes& moving, int back, float* memory, float* weights_memory) {
    kernel_ = &kernel;
    shift_ = &shift;
    square_row_ = ChooseSquareRow(kernel.channels);
    columns_ = up_to_vectors(shift.weights.width()) + 2 * kernel.reach;
    first_column_ = shift.weights.x0 - kernel.reach;
    cuts_columns_ = first_column_ < shift.compared.x0 || first_column_ + columns_ > shift.compared.x1;
    all_count_ = shift.counted.contains(
        {shift.weights.x0, shift.weights.y0 - 1, shift.weights.x0 + columns_, shift.weights.y1 + 1});
    still_ = &still;
    moving_ = &moving;
    lines_ = memory;
    memory += lines_of_shift * pitch;
    patch_rows_.lay_out(memory, kernel.reach + 1);
    memory += patch_rows_.floats();
    shared_.lay_out(memory, std::max(1, kernel.reach));
    memory += shared_.floats();
    weights_.lay_out(weights_memory, weight_pairs(back));
    pair_ = {};
    pair_.kernel = &kernel;
    pair_.shift = &shift;
    pair_.lines = lines_;
    pair_.still_plane = still.plane_stride;
    pair_.moving_plane = moving.plane_stride;
    return memory;
  }

  // Of the rows y and y + 1.
  void find_squares(int y) const {
    for (int line = 0; line < 2; ++line) find_squares_of_row(y + line, lines_ + line * pitch);
  }

  void add_neighbours() const {
    for (int line = 0; line < 2; ++line) {
      AddNeighbours(lines_ + line * pitch, columns_ - 2, lines_ + (line_of_pairs + line) * pitch);
    }
  }

  // The sums along the rows y + reach and y + reach + 1 of patches, whose squares are there.
  void sum_along_rows(const RowSteps& steps) {
    next_rows();
    steps.sum_along_rows(pair_);
  }

  // These and, as all that they need is there, the weights of rows y and y + 1.
  void find_weights(const RowSteps& steps, int y) {
    next_rows();
    weights_.advance();
    pair_.weights = weights_.latest();
    if (kernel_->compares_pixels) find_pixels(y);
    if (shift_->inverse_shares != nullptr) {
      for (int line = 0; line < 2; ++line) pair_.row_share[line] = inverse_row_share(y + line);
    }
    steps.find_weights(pair_);
    if (all_count_) return;
    for (int line = 0; line < 2; ++line) clear_uncounted(y + line, pair_.weights + line * pitch);
  }

  // The upper of two rows of weights.
  const float* weights_back(int steps) const { return weights_.back(steps); }

 private:
  void find_squares_of_row(int y, float* squares) const {
    const Rect& compared = shift_->compared;
    if (y < compared.y0 || y >= compared.y1) {
      std::fill_n(squares, columns_, 0.0F);
      return;
    }
    square_row_(&still_->at(0, first_column_, y), still_->plane_stride,
                &moving_->at(0, first_column_ + shift_->dx, y + shift_->dy), moving_->plane_stride,
                kernel_->channels, columns_, squares);
    if (!cuts_columns_) return;
    const int begin = std::clamp(compared.x0 - first_column_, 0, columns_);
    const int end = std::clamp(compared.x1 - first_column_, begin, columns_);
    std::fill_n(squares, begin, 0.0F);
    std::fill_n(squares + end, columns_ - end, 0.0F);
  }

  void next_rows() {
    patch_rows_.advance();
    shared_.advance();
    pair_.patch_rows = patch_rows_.rows();
    pair_.shared = shared_.rows();
  }

  void find_pixels(int y) {
    for (int line = 0; line < 2; ++line) {
      // A row that only fills up the pair has no pixels of its own.
      const int row = std::clamp(y + line, shift_->weights.y0, shift_->weights.y1 - 1);
      pair_.still[line] = &still_->at(0, shift_->weights.x0, row);
      pair_.moving[line] = &moving_->at(0, shift_->weights.x0 + shift_->dx, row + shift_->dy);
    }
  }

  float inverse_row_share(int y) const {
    const int side = 2 * kernel_->reach + 1;
    const int begin = std::max(0, shift_->compared.y0 - (y - kernel_->reach));
    const int end = std::min(side, shift_->compared.y1 - (y - kernel_->reach));
    if (begin == 0 && end == side) return 1;
    float share = 0;
    for (int k = begin; k < end; ++k) share += kernel_->patch[static_cast<std::size_t>(k)];
    return share > 0 ? 1 / share : 0;
  }

  void clear_uncounted(int y, float* weights) const {
    const Rect& counted = shift_->counted;
    const int x = shift_->weights.x0;
    const int width = up_to_vectors(shift_->weights.width());
    const bool row_counts = y >= counted.y0 && y < counted.y1;
    const int begin = row_counts ? std::clamp(counted.x0 - x, 0, width) : width;
    const int end = row_counts ? std::clamp(counted.x1 - x, begin, width) : width;
    std::fill_n(weights, begin, 0.0F);
    std::fill_n(weights + end, width - end, 0.0F);
  }

  const PatchKernel* kernel_;
  const PatchShift* shift_;
  const ConstPlanes* still_;
  const ConstPlanes* moving_;
  SquareRowFunction square_row_;
  int columns_;  // with those that patches reach
  int first_column_;
  bool cuts_columns_;  // some are not compared
  bool all_count_;     // every weight
  float* lines_;
  PairRing patch_rows_;
  PairRing shared_;
  PairRing weights_;
  RowPair pair_;
};

// One call of add_patch_shifts.
class Group {
 public:
  Group(const PatchKernel& kernel, const ConstPlanes& still, const ConstPlanes& moving,
        const PatchShifts& shifts, const Rect& area, const Planes& sums, float* memory)
      : kernel_(kernel),
        moving_(moving),
        shifts_(shifts),
        area_(area),
        sums_(sums),
        steps_(ChooseSteps(kernel, shifts.shift[0].inverse_shares != nullptr)),
        take_row_(ChooseTakeRow<shifts_at_once>(shifts.count, shifts.pairs, kernel.largest)),
        back_(shifts.pairs ? shifts.shift[0].dy : 0) {
    float* weights = memory;
    memory += shifts_at_once * weights_of_shift;
    for (int s = 0; s < shifts.count; ++s, weights += weights_of_shift) {
      memory = rows_[s].prepare(kernel, shifts.shift[s], still, moving, back_, memory, weights);
    }
  }

  void add() {
    const int first_row = area_.y0 - back_;
    const int even = first_row - (first_row & 1);
    const int reach = kernel_.reach;
    for (int y = even - 2 * reach; y < area_.y1; y += 2) {
      // All shifts' at once: what was just stored is read at other places.
      for (int s = 0; s < shifts_.count; ++s) rows_[s].find_squares(y + reach);
      if (kernel_.flat && reach > 0) {
        for (int s = 0; s < shifts_.count; ++s) rows_[s].add_neighbours();
      }
      if (y < even) {
        for (int s = 0; s < shifts_.count; ++s) rows_[s].sum_along_rows(steps_);
        continue;
      }
      for (int s = 0; s < shifts_.count; ++s) rows_[s].find_weights(steps_, y);
      if (y >= area_.y0) take_row(y, y);
      if (y + 1 >= area_.y0 && y + 1 < area_.y1) take_row(y + 1, y);
    }
  }

 private:
  // Row y, while the latest rows of weights are `upper` and the one below.
  void take_row(int y, int upper) {
    const PatchShift& shift = shifts_.shift[0];
    const int left = area_.x0 - shift.weights.x0;
    const auto weights_of_row = [&](int row) {
      return rows_[0].weights_back((upper - (row - (row & 1))) / 2) + (row & 1) * pitch;
    };
    TakenRow row;
    row.weights = weights_of_row(y) + left;
    row.values = &moving_.at(0, area_.x0 + shift.dx, y + shift.dy);
    row.back_weights = row.weights;
    row.back_values = row.values;
    if (shifts_.pairs) {
      row.back_weights = weights_of_row(y - shift.dy) + (left - shift.dx);
      row.back_values = &moving_.at(0, area_.x0 - shift.dx, y - shift.dy);
    }
    row.plane = moving_.plane_stride;
    row.width = area_.width();
    row.channels = kernel_.channels;
    row.sums = &sums_.at(0, area_.x0, y);
    row.sums_plane = sums_.plane_stride;
    take_row_(row);
  }

  const PatchKernel& kernel_;
  const ConstPlanes& moving_;
  const PatchShifts& shifts_;
  const Rect& area_;
  const Planes& sums_;
  RowSteps steps_;
  TakeRowFunction take_row_;
  int back_;  // rows above a pixel's that it takes weights from
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

std::size_t patch_shifts_floats(int reach) {
  const int of_shift = lines_of_shift + 2 * (reach + 1) + 2 * std::max(1, reach);
  return static_cast<std::size_t>(shifts_at_once) *
         (static_cast<std::size_t>(of_shift) * pitch + static_cast<std::size_t>(weights_of_shift));
}

void add_patch_shifts(const PatchKernel& kernel, const ConstPlanes& still, const ConstPlanes& moving,
                      const PatchShifts& shifts, const Rect& area, const Planes& sums, float* memory) {
  HWY_DYNAMIC_DISPATCH(AddPatchShifts)(kernel, still, moving, shifts, area, sums, memory);
}

}  // namespace ungrain

#endif
