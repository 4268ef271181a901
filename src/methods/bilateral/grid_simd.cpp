// The bilateral grid's blur and interpolation.
#include "methods/bilateral/grid_kernels.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "methods/bilateral/grid_simd.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h must come before what it includes again.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ungrain::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE hn::Vec<D> Blurred(D d, const float* taps, int first, int last, const float* at,
                              std::ptrdiff_t step) {
  auto sum = hn::Zero(d);
  for (int k = first; k <= last; ++k) sum = hn::MulAdd(hn::Set(d, taps[k]), hn::LoadU(d, at + k * step), sum);
  return sum;
}

// Neighbours at least a vector apart: the numbers of a position fill vectors.
void BlurWideSteps(const float* centre, int reach, const float* in, float* out, int length,
                   std::ptrdiff_t step) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  for (int position = 0; position < length; ++position) {
    const int first = std::max(-reach, -position);
    const int last = std::min(reach, length - 1 - position);
    const float* from = in + position * step;
    float* to = out + position * step;
    for (std::ptrdiff_t i = 0; i < step; i += lanes) {
      const std::ptrdiff_t at = std::min(i, step - lanes);
      hn::StoreU(Blurred(d, centre, first, last, from + at, step), d, to + at);
    }
  }
}

// Neighbours nearer than that: the line is copied between zeros, which add nothing. Writes up to a vector too
// much, which the next line overwrites.
void BlurNarrowSteps(const float* centre, int reach, const float* in, float* out, std::ptrdiff_t count,
                     std::ptrdiff_t step, float* padded) {
  const hn::ScalableTag<float> d;
  float* const line = padded + reach * step;
  std::copy_n(in, count, line);
  for (std::ptrdiff_t i = 0; i < count; i += static_cast<std::ptrdiff_t>(hn::Lanes(d))) {
    hn::StoreU(Blurred(d, centre, -reach, reach, line + i, step), d, out + i);
  }
}

void Blur(const float* taps, int reach, const float* in, float* out, std::ptrdiff_t lines, int length,
          std::ptrdiff_t step, float* padded) {
  const bool wide = step >= static_cast<std::ptrdiff_t>(hn::Lanes(hn::ScalableTag<float>()));
  const std::ptrdiff_t count = length * step;
  if (!wide) std::fill_n(padded, count + 2 * reach * step + blur_slack, 0.0F);
  for (std::ptrdiff_t line = 0; line < lines; ++line, in += count, out += count) {
    if (wide) {
      BlurWideSteps(taps + reach, reach, in, out, length, step);
    } else {
      BlurNarrowSteps(taps + reach, reach, in, out, count, step, padded);
    }
  }
}

void Extend(const float* values, std::ptrdiff_t count, const HeldValues& held, float& low, float& high) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  auto least = hn::Set(d, low);
  auto most = hn::Set(d, high);
  std::ptrdiff_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto value = hn::LoadU(d, values + i);
    const auto holds =
        hn::And(hn::Ge(value, hn::Set(d, held.lowest)), hn::Le(value, hn::Set(d, held.highest)));
    least = hn::IfThenElse(holds, hn::Min(least, value), least);
    most = hn::IfThenElse(holds, hn::Max(most, value), most);
  }
  low = hn::GetLane(hn::MinOfLanes(d, least));
  high = hn::GetLane(hn::MaxOfLanes(d, most));
  for (; i < count; ++i) {
    if (!held.holds(values[i])) continue;
    low = std::min(low, values[i]);
    high = std::max(high, values[i]);
  }
}

// Vectorised only for floor(), which is one instruction on newer processors.
void CountRow(const float* values, int count, const HeldValues& held, float inverse_level, int level0,
              float* cell) {
  for (int i = 0; i < count; ++i) {
    const float value = values[i];
    if (!held.holds(value)) continue;
    const float position = value * inverse_level;
    const float first = std::floor(position);
    const float after = position - first;
    float* at = cell + 2 * static_cast<std::ptrdiff_t>(static_cast<int>(first) - level0);
    at[0] += 1 - after;
    at[1] += (1 - after) * value;
    at[2] += after;
    at[3] += after * value;
  }
}

// Interpolates between the four cells around a pixel, two levels of each: four loads of four floats.
void ReadRow(const GridRow& row, const ColumnPosition* columns, const float* values, int width, float* out) {
  const hn::CappedTag<float, 4> d;  // fewer where there is no vector of four
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  HWY_ALIGN float sums[4];
  for (int x = 0; x < width; ++x) {
    const float value = values[x];
    out[x] = value;
    if (!row.held.holds(value)) continue;
    const float position = value * row.inverse_level;
    const float first = std::floor(position);
    const float after = position - first;
    const ColumnPosition& column = columns[x];
    const std::ptrdiff_t at = column.offset + 2 * (static_cast<int>(first) - row.level0);
    const float lower_right = row.lower_share * column.after;
    const auto share00 = hn::Set(d, (1 - row.lower_share) * (1 - column.after));
    const auto share01 = hn::Set(d, (1 - row.lower_share) * column.after);
    const auto share10 = hn::Set(d, row.lower_share * (1 - column.after));
    const auto share11 = hn::Set(d, lower_right);
    for (std::ptrdiff_t i = 0; i < 4; i += lanes) {
      auto sum = hn::Mul(share00, hn::LoadU(d, row.upper + at + i));
      sum = hn::MulAdd(share01, hn::LoadU(d, row.upper + at + row.column_step + i), sum);
      sum = hn::MulAdd(share10, hn::LoadU(d, row.lower + at + i), sum);
      sum = hn::MulAdd(share11, hn::LoadU(d, row.lower + at + row.column_step + i), sum);
      hn::Store(sum, d, sums + i);
    }
    const float weights = (1 - after) * sums[0] + after * sums[2];
    out[x] = ((1 - after) * sums[1] + after * sums[3]) / weights;
  }
}

}  // namespace
}  // namespace ungrain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace ungrain {
namespace {

HWY_EXPORT(Blur);
HWY_EXPORT(Extend);
HWY_EXPORT(CountRow);
HWY_EXPORT(ReadRow);

}  // namespace

void blur_cells(const float* taps, int reach, const float* in, float* out, std::ptrdiff_t lines, int length,
                std::ptrdiff_t step, float* padded) {
  HWY_DYNAMIC_DISPATCH(Blur)(taps, reach, in, out, lines, length, step, padded);
}
void extend_range(const float* values, std::ptrdiff_t count, const HeldValues& held, float& low,
                  float& high) {
  HWY_DYNAMIC_DISPATCH(Extend)(values, count, held, low, high);
}
void count_in_cell(const float* values, int count, const HeldValues& held, float inverse_level, int level0,
                   float* cell) {
  HWY_DYNAMIC_DISPATCH(CountRow)(values, count, held, inverse_level, level0, cell);
}
void read_grid_row(const GridRow& row, const ColumnPosition* columns, const float* values, int width,
                   float* out) {
  HWY_DYNAMIC_DISPATCH(ReadRow)(row, columns, values, width, out);
}

}  // namespace ungrain

#endif
