// The bilateral grid's blur and read-back.
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

// Lanes are positions on one or several lines: what lies beyond a line's end must not be read, so that whole
// vectors do where all taps are inside, and single numbers elsewhere.
template <class D>
HWY_INLINE hn::Vec<D> Blurred(D d, const float* taps, int first, int last, const float* at,
                              std::ptrdiff_t step) {
  auto sum = hn::Zero(d);
  for (int k = first; k <= last; ++k) sum = hn::MulAdd(hn::Set(d, taps[k]), hn::LoadU(d, at + k * step), sum);
  return sum;
}

void Blur(const float* taps, int reach, const float* in, float* out, std::ptrdiff_t lines, int length,
          std::ptrdiff_t step) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  const float* centre = taps + reach;
  for (std::ptrdiff_t line = 0; line < lines; ++line, in += length * step, out += length * step) {
    if (step >= lanes) {
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
      continue;
    }
    const auto blur_one = [&](std::ptrdiff_t i) HWY_ATTR {
      const int position = static_cast<int>(i / step);
      const int first = std::max(-reach, -position);
      const int last = std::min(reach, length - 1 - position);
      hn::StoreU(Blurred(one, centre, first, last, in + i, step), one, out + i);
    };
    std::ptrdiff_t i = 0;
    const std::ptrdiff_t inside_begin = std::min<std::ptrdiff_t>(reach, length) * step;
    const std::ptrdiff_t inside_end = std::max<std::ptrdiff_t>(0, length - reach) * step;
    for (; i < inside_begin; ++i) blur_one(i);
    for (; i + lanes <= inside_end; i += lanes) {
      hn::StoreU(Blurred(d, centre, -reach, reach, in + i, step), d, out + i);
    }
    for (; i < length * step; ++i) blur_one(i);
  }
}

// Four cells around a pixel, two levels of each: four loads of four floats.
void ReadRow(const GridRow& row, const BetweenColumns* columns, const float* values, int width, float* out) {
  const hn::CappedTag<float, 4> d;  // fewer where there is no vector of four
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  HWY_ALIGN float sums[4];
  for (int x = 0; x < width; ++x) {
    const float value = values[x];
    out[x] = value;
    if (!(value >= row.lowest && value <= row.highest)) continue;
    const float position = value * row.inverse_level;
    const float first = std::floor(position);
    const float after = position - first;
    const BetweenColumns& column = columns[x];
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
HWY_EXPORT(ReadRow);

}  // namespace

void blur_cells(const float* taps, int reach, const float* in, float* out, std::ptrdiff_t lines, int length,
                std::ptrdiff_t step) {
  HWY_DYNAMIC_DISPATCH(Blur)(taps, reach, in, out, lines, length, step);
}
void read_grid_row(const GridRow& row, const BetweenColumns* columns, const float* values, int width,
                   float* out) {
  HWY_DYNAMIC_DISPATCH(ReadRow)(row, columns, values, width, out);
}

}  // namespace ungrain

#endif
