// Line by line of a tile: squared differences summed along the patches' z, for each shift; those of several
// lines summed along y, then along x, which are the exponents; the weights; then the voxels of two lines take
// them: those of the line itself and those they are compared with. Sums over a patch are added in the order
// of the coordinates, so that no result depends on where a tile begins.
#include "methods/nlm3d/search_simd.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "methods/nlm3d/search_simd.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h must come before what it includes again.
#include <hwy/highway.h>

#include "core/patches.h"
#include "cpu/exp2-inl.h"
#include "methods/nlm3d/settings.h"

#ifndef UNGRAIN_NLM3D_SEARCH_SIMD_CPP_
#define UNGRAIN_NLM3D_SEARCH_SIMD_CPP_
namespace ungrain {
namespace {

// Floats from one line of squared differences or weights to the next: cache lines, an odd number of them.
constexpr int pitch_for(int radius, int around) {
  const int floats = widest_volume_tile + 2 * radius + 2 * around + 2 * volume_vector_slack;
  return ((floats + 15) / 16 | 1) * 16;
}

}  // namespace
}  // namespace ungrain
#endif

HWY_BEFORE_NAMESPACE();
namespace ungrain::HWY_NAMESPACE {
namespace {

using Floats = hn::CappedTag<float, volume_vector_slack>;
using Vector = hn::Vec<Floats>;
constexpr Floats d;
constexpr int exp_degree = 4;

HWY_INLINE int Lanes() { return static_cast<int>(hn::Lanes(d)); }

// Squared differences of two lines, summed over SideZ slices.
template <int SideZ>
void SumSlices(const float* HWY_RESTRICT a, std::ptrdiff_t a_slice, const float* HWY_RESTRICT b,
               std::ptrdiff_t b_slice, int count, float* HWY_RESTRICT sums) {
  const int n = Lanes();
  for (int x = 0; x < count; x += n) {
    const auto first = hn::Sub(hn::LoadU(d, a + x), hn::LoadU(d, b + x));
    auto sum = hn::Mul(first, first);
    for (int z = 1; z < SideZ; ++z) {
      const auto next = hn::Sub(hn::LoadU(d, a + z * a_slice + x), hn::LoadU(d, b + z * b_slice + x));
      sum = hn::MulAdd(next, next, sum);
    }
    hn::StoreU(sum, d, sums + x);
  }
}

// Weights of a line from the sums of Side lines, the topmost first; `line` is memory for one.
template <int Side>
void FindWeights(const float* const* rows, int count, float noise, float* HWY_RESTRICT line,
                 float* HWY_RESTRICT weights) {
  const int n = Lanes();
  const auto offset = hn::Set(d, noise);
  const float* from = rows[0];
  if constexpr (Side > 1) {
    for (int x = 0; x < count + Side - 1; x += n) {
      auto sum = hn::Add(hn::LoadU(d, rows[0] + x), hn::LoadU(d, rows[1] + x));
      for (int y = 2; y < Side; ++y) sum = hn::Add(sum, hn::LoadU(d, rows[y] + x));
      hn::StoreU(sum, d, line + x);
    }
    from = line;
  }
  for (int x = 0; x < count; x += n) {
    auto sum = hn::LoadU(d, from + x);
    for (int k = 1; k < Side; ++k) sum = hn::Add(sum, hn::LoadU(d, from + x + k));
    const auto exponent = hn::Min(hn::Sub(offset, sum), hn::Zero(d));
    hn::StoreU(Exp2OrZero<exp_degree>(d, exponent), d, weights + x);
  }
}

// What a line's voxels take from several shifts: weights, and differences from the voxel itself times these,
// so that a constant stays exactly as it is. The k-th one's weights and values lie at `weights` and
// `values` plus k times a step.
struct TakenLine {
  const float* weights;
  std::ptrdiff_t weights_step;
  const float* values;
  std::ptrdiff_t values_step;
  int shifts = 0;
  int count = 0;
  const float* own = nullptr;  // the voxels themselves
  float* weight_sums = nullptr;
  float* value_sums = nullptr;
  float* largest = nullptr;
};

template <bool Largest>
void TakeLine(const TakenLine& line) {
  const int n = Lanes();
  // Two vectors at once: sums of one wait for each other.
  for (int x = 0; x < line.count; x += 2 * n) {
    auto weights0 = hn::LoadU(d, line.weight_sums + x);
    auto weights1 = hn::LoadU(d, line.weight_sums + x + n);
    auto values0 = hn::LoadU(d, line.value_sums + x);
    auto values1 = hn::LoadU(d, line.value_sums + x + n);
    auto largest0 = Largest ? hn::LoadU(d, line.largest + x) : weights0;
    auto largest1 = Largest ? hn::LoadU(d, line.largest + x + n) : weights1;
    const auto own0 = hn::LoadU(d, line.own + x);
    const auto own1 = hn::LoadU(d, line.own + x + n);
    const float* from = line.weights + x;
    const float* value = line.values + x;
    for (int k = 0; k < line.shifts; ++k, from += line.weights_step, value += line.values_step) {
      const auto w0 = hn::LoadU(d, from);
      const auto w1 = hn::LoadU(d, from + n);
      weights0 = hn::Add(weights0, w0);
      weights1 = hn::Add(weights1, w1);
      values0 = hn::MulAdd(w0, hn::Sub(hn::LoadU(d, value), own0), values0);
      values1 = hn::MulAdd(w1, hn::Sub(hn::LoadU(d, value + n), own1), values1);
      if (Largest) {
        largest0 = hn::Max(largest0, w0);
        largest1 = hn::Max(largest1, w1);
      }
    }
    hn::StoreU(weights0, d, line.weight_sums + x);
    hn::StoreU(weights1, d, line.weight_sums + x + n);
    hn::StoreU(values0, d, line.value_sums + x);
    hn::StoreU(values1, d, line.value_sums + x + n);
    if (Largest) {
      hn::StoreU(largest0, d, line.largest + x);
      hn::StoreU(largest1, d, line.largest + x + n);
    }
  }
}

class Shifts {
 public:
  Shifts(const VolumeTile& tile, const RowRange& dx, int dy, int dz)
      : tile_(tile),
        dx_(dx),
        dy_(dy),
        dz_(dz),
        radius_(tile.out.x.begin - tile.values.box.x.begin),
        side_(2 * tile.around + 1),
        pitch_(pitch_for(radius_, tile.around)),
        sums_(tile.memory),
        line_(sums_ + static_cast<std::ptrdiff_t>(side_) * volume_shifts_at_once * pitch_),
        weights_(line_ + pitch_),
        sum_slices_(tile.around_z == 0   ? SumSlices<1>
                    : tile.around_z == 1 ? SumSlices<3>
                    : tile.around_z == 2 ? SumSlices<5>
                                         : SumSlices<7>),
        find_weights_(tile.around == 0   ? FindWeights<1>
                      : tile.around == 1 ? FindWeights<3>
                      : tile.around == 2 ? FindWeights<5>
                                         : FindWeights<7>) {}

  void Add() {
    const RowRange& out = tile_.out.z;
    const RowRange& held = tile_.candidates.z;
    for (int z = std::max(held.begin, out.begin - dz_); z < std::min(out.end, held.end - dz_); ++z) {
      const bool forth = contains(out, z);
      const bool back = contains(out, z + dz_);
      if (forth || back) AddSlice(z, forth, back);
    }
  }

 private:
  static bool contains(const RowRange& range, int at) { return range.begin <= at && at < range.end; }

  // The part of an axis whose weights for a distance are wanted, and exist.
  static RowRange Wanted(const RowRange& out, const RowRange& held, int distance, bool forth, bool back) {
    const int begin = !back ? out.begin : !forth ? out.begin - distance : out.begin - std::max(distance, 0);
    const int end = !back ? out.end : !forth ? out.end - distance : out.end - std::min(distance, 0);
    return {std::max(begin, held.begin - std::min(distance, 0)),
            std::min(end, held.end - std::max(distance, 0))};
  }

  void AddSlice(int z, bool forth, bool back) {
    const RowRange& out = tile_.out.y;
    const RowRange rows = Wanted(out, tile_.candidates.y, dy_, forth, back);
    if (rows.count() <= 0) return;
    for (int y = rows.begin - tile_.around; y < rows.begin + tile_.around; ++y) SumLines(y, z);
    for (int y = rows.begin; y < rows.end; ++y) {
      SumLines(y + tile_.around, z);
      const bool takes = forth && contains(out, y);
      const bool gives = back && contains(out, y + dy_);
      if (!takes && !gives) continue;
      for (int k = 0; k < dx_.count(); ++k) FindLine(y, k);
      if (takes) Take(y, z);
      if (gives) Give(y, z);
    }
  }

  // Where the weights of a shift are wanted; those that do not exist are 0.
  RowRange Columns(int dx) const {
    return {tile_.out.x.begin - std::max(dx, 0), tile_.out.x.end - std::min(dx, 0)};
  }

  float* SumsOf(int y, int k) const {
    const int slot = (y + 2 * largest_volume_patch) % side_;
    return sums_ + static_cast<std::ptrdiff_t>(k * side_ + slot) * pitch_;
  }

  void SumLines(int y, int z) {
    for (int k = 0; k < dx_.count(); ++k) {
      const int dx = dx_.begin + k;
      const RowRange columns = Columns(dx);
      const int x = columns.begin - tile_.around;
      sum_slices_(tile_.guide.at(x, y, z - tile_.around_z), tile_.guide.slice,
                  tile_.guide.at(x + dx, y + dy_, z + dz_ - tile_.around_z), tile_.guide.slice,
                  columns.count() + 2 * tile_.around, SumsOf(y, k));
    }
  }

  // The weight of the voxel x for the shift k.
  float* WeightAt(int x, int k) const { return weights_ + k * pitch_ + radius_ + (x - tile_.out.x.begin); }

  void FindLine(int y, int k) {
    const int dx = dx_.begin + k;
    const RowRange columns = Columns(dx);
    const float* rows[largest_volume_patch];
    for (int i = 0; i < side_; ++i) rows[i] = SumsOf(y - tile_.around + i, k);
    find_weights_(rows, columns.count(), tile_.noise_exponent, line_, WeightAt(columns.begin, k));
    const RowRange& held = tile_.candidates.x;
    const int begin = std::clamp(held.begin - std::min(dx, 0), columns.begin, columns.end);
    const int end = std::clamp(held.end - std::max(dx, 0), begin, columns.end);
    std::fill(WeightAt(columns.begin, k), WeightAt(begin, k), 0.0F);
    std::fill(WeightAt(end, k), WeightAt(columns.end, k), 0.0F);
  }

  void Take(int y, int z) const {
    const int x = tile_.out.x.begin;
    AddLine({.weights = WeightAt(x, 0),
             .weights_step = pitch_,
             .values = tile_.values.at(x + dx_.begin, y + dy_, z + dz_),
             .values_step = 1},
            y, z);
  }

  // The voxels that this line's are compared with.
  void Give(int y, int z) const {
    const int x = tile_.out.x.begin;
    AddLine({.weights = WeightAt(x - dx_.begin, 0),
             .weights_step = pitch_ - 1,
             .values = tile_.values.at(x - dx_.begin, y, z),
             .values_step = -1},
            y + dy_, z + dz_);
  }

  void AddLine(TakenLine line, int y, int z) const {
    const int x = tile_.out.x.begin;
    line.shifts = dx_.count();
    line.count = tile_.out.x.count();
    line.own = tile_.values.at(x, y, z);
    line.weight_sums = tile_.weight_sums.at(x, y, z);
    line.value_sums = tile_.value_sums.at(x, y, z);
    if (tile_.largest.data != nullptr) {
      line.largest = tile_.largest.at(x, y, z);
      TakeLine<true>(line);
    } else {
      TakeLine<false>(line);
    }
  }

  const VolumeTile& tile_;
  RowRange dx_;
  int dy_;
  int dz_;
  int radius_;
  int side_;
  int pitch_;
  float* sums_;     // [shift][line of a patch][voxel]
  float* line_;     // of one shift, summed along y
  float* weights_;  // [shift][voxel]
  void (*sum_slices_)(const float*, std::ptrdiff_t, const float*, std::ptrdiff_t, int, float*);
  void (*find_weights_)(const float* const*, int, float, float*, float*);
};

void AddVolumeShifts(const VolumeTile& tile, const RowRange& dx, int dy, int dz) {
  Shifts(tile, dx, dy, dz).Add();
}

}  // namespace
}  // namespace ungrain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace ungrain {
namespace {

HWY_EXPORT(AddVolumeShifts);

}  // namespace

std::size_t volume_search_floats(int radius, int around) {
  const auto lines =
      static_cast<std::size_t>((2 * around + 1) * volume_shifts_at_once + 1 + volume_shifts_at_once);
  return lines * static_cast<std::size_t>(pitch_for(radius, around));
}

void add_volume_shifts(const VolumeTile& tile, const RowRange& dx, int dy, int dz) {
  HWY_DYNAMIC_DISPATCH(AddVolumeShifts)(tile, dx, dy, dz);
}

void finish_volume_line(const float* values, const float* value_sums, const float* weight_sums,
                        const float* largest, int count, float* out) {
  for (int x = 0; x < count; ++x) {
    const float self =
        largest != nullptr ? std::max(largest[x], static_cast<float>(least_self_weight)) : 1.0F;
    out[x] = values[x] + value_sums[x] / (weight_sums[x] + self);
  }
}

}  // namespace ungrain

#endif
