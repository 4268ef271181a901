// Flatness of windows. Bound by memory if the image is not in a cache.
#include "noise/window_sums_simd.h"

#include <algorithm>
#include <cmath>

#include "core/convert.h"
#include "core/samples.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "noise/window_sums_simd.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h must come before what it includes again.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ungrain::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR
// Sums of neighbouring samples, as integers of twice the width.
template <class D, class V>
HWY_ATTR auto PairSums(D wide, V samples) {
  constexpr int bits = 8 * sizeof(hn::TFromV<V>);
  const auto both = hn::BitCast(wide, samples);
  const auto low = hn::Set(wide, static_cast<hn::TFromD<D>>((1U << bits) - 1));
  return hn::Add(hn::And(both, low), hn::template ShiftRight<bits>(both));
}

// One row's pairs, of the first `used` of `channels` interleaved channels.
template <class D, class T>
HWY_ATTR auto PixelPairs(D wide, const T* pixels, int channels, int used) {
  const hn::Repartition<T, D> d;
  auto v0 = hn::Zero(d);
  auto v1 = v0;
  auto v2 = v0;
  auto v3 = v0;
  if (channels == 1) {
    v0 = hn::LoadU(d, pixels);
  } else if (channels == 2) {
    hn::LoadInterleaved2(d, pixels, v0, v1);
  } else if (channels == 3) {
    hn::LoadInterleaved3(d, pixels, v0, v1, v2);
  } else {
    hn::LoadInterleaved4(d, pixels, v0, v1, v2, v3);
  }
  auto sum = PairSums(wide, v0);
  if (used == 3) sum = hn::Add(sum, hn::Add(PairSums(wide, v1), PairSums(wide, v2)));
  return sum;
}

void StoreAsFloats(hn::Vec<hn::ScalableTag<std::uint32_t>> sums, float* out) {
  const hn::ScalableTag<std::int32_t> di;
  const hn::ScalableTag<float> df;
  hn::StoreU(hn::ConvertTo(df, hn::BitCast(di, sums)), df, out);
}
void StoreAsFloats(hn::Vec<hn::ScalableTag<std::uint16_t>> sums, float* out) {
  const hn::ScalableTag<std::uint32_t> d;
  const hn::ScalableTag<std::int32_t> di;
  const hn::ScalableTag<float> df;
  const auto both = hn::BitCast(d, sums);
  const auto even = hn::BitCast(di, hn::And(both, hn::Set(d, 0xffffU)));
  const auto odd = hn::BitCast(di, hn::ShiftRight<16>(both));
  hn::StoreInterleaved2(hn::ConvertTo(df, even), hn::ConvertTo(df, odd), df, out);
}
#endif

// `used` is 1 or 3 of the first channels.
template <class T>
void QuadsOfPixels(const T* above, const T* below, int channels, int used, int count, float* out) {
  int i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<std::conditional_t<sizeof(T) == 1, std::uint16_t, std::uint32_t>> wide;
  const auto lanes = static_cast<int>(hn::Lanes(wide));
  for (; i + lanes <= count; i += lanes) {
    const std::ptrdiff_t at = std::ptrdiff_t{2} * i * channels;
    StoreAsFloats(
        hn::Add(PixelPairs(wide, above + at, channels, used), PixelPairs(wide, below + at, channels, used)),
        out + i);
  }
#endif
  for (; i < count; ++i) {
    std::uint32_t sum = 0;
    for (int x = 2 * i; x < 2 * i + 2; ++x) {
      for (int c = 0; c < used; ++c) {
        const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(x) * channels + c;
        sum += std::uint32_t{above[at]} + std::uint32_t{below[at]};
      }
    }
    out[i] = static_cast<float>(sum);
  }
}

void PixelQuads(PixelType type, const void* above, const void* below, int channels, int used, int count,
                float* out) {
  if (type == PixelType::u8) {
    QuadsOfPixels(static_cast<const std::uint8_t*>(above), static_cast<const std::uint8_t*>(below), channels,
                  used, count, out);
  } else {
    QuadsOfPixels(static_cast<const std::uint16_t*>(above), static_cast<const std::uint16_t*>(below),
                  channels, used, count, out);
  }
}

// Adds to `out` unless this is the first channel.
void PlaneQuads(const float* above, const float* below, bool first, int count, float* out) {
  int i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int>(hn::Lanes(d));
  for (; i + lanes <= count; i += lanes) {
    const std::ptrdiff_t at = std::ptrdiff_t{2} * i;
    const auto low = hn::Add(hn::LoadU(d, above + at), hn::LoadU(d, below + at));
    const auto high = hn::Add(hn::LoadU(d, above + at + lanes), hn::LoadU(d, below + at + lanes));
    const auto sum = hn::Add(hn::ConcatEven(d, high, low), hn::ConcatOdd(d, high, low));
    hn::StoreU(first ? sum : hn::Add(hn::LoadU(d, out + i), sum), d, out + i);
  }
#endif
  for (; i < count; ++i) {
    const float sum = (above[2 * i] + below[2 * i]) + (above[2 * i + 1] + below[2 * i + 1]);
    out[i] = first ? sum : out[i] + sum;
  }
}

void CellSums(const float* above, const float* below, int pixels_apart, int count, float* out) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int>(hn::Lanes(d));
  int i = 0;
  if (pixels_apart == 2) {
    for (; i + lanes <= count; i += lanes) {
      const auto left = hn::Add(hn::LoadU(d, above + i), hn::LoadU(d, below + i));
      const auto right = hn::Add(hn::LoadU(d, above + i + 1), hn::LoadU(d, below + i + 1));
      hn::StoreU(hn::Add(left, right), d, out + i);
    }
    for (; i < count; ++i) out[i] = (above[i] + below[i]) + (above[i + 1] + below[i + 1]);
    return;
  }
#if HWY_TARGET != HWY_SCALAR
  for (; i + lanes <= count; i += lanes) {
    auto above_left = hn::Zero(d);
    auto above_right = above_left;
    auto below_left = above_left;
    auto below_right = above_left;
    hn::LoadInterleaved2(d, above + 2 * i, above_left, above_right);
    hn::LoadInterleaved2(d, below + 2 * i, below_left, below_right);
    hn::StoreU(hn::Add(hn::Add(above_left, below_left), hn::Add(above_right, below_right)), d, out + i);
  }
#endif
  for (; i < count; ++i) {
    out[i] = (above[2 * i] + below[2 * i]) + (above[2 * i + 1] + below[2 * i + 1]);
  }
}

// Sums over a column of a window's cells, of all four and of the inner two; and of their squares.
struct ColumnSums {
  double* sum;
  double* squares;
  double* inner;
  double* inner_squares;
};

template <class D>
HWY_ATTR void SumColumn(D d, const float* const* cells, int i, const ColumnSums& to) {
  const hn::Rebind<float, D> narrow;
  const auto c0 = hn::PromoteTo(d, hn::LoadU(narrow, cells[0] + i));
  const auto c1 = hn::PromoteTo(d, hn::LoadU(narrow, cells[1] + i));
  const auto c2 = hn::PromoteTo(d, hn::LoadU(narrow, cells[2] + i));
  const auto c3 = hn::PromoteTo(d, hn::LoadU(narrow, cells[3] + i));
  const auto inner = hn::Add(c1, c2);
  const auto inner_squares = hn::Add(hn::Mul(c1, c1), hn::Mul(c2, c2));
  hn::StoreU(inner, d, to.inner + i);
  hn::StoreU(inner_squares, d, to.inner_squares + i);
  hn::StoreU(hn::Add(inner, hn::Add(c0, c3)), d, to.sum + i);
  hn::StoreU(hn::Add(inner_squares, hn::Add(hn::Mul(c0, c0), hn::Mul(c3, c3))), d, to.squares + i);
}

template <class D>
HWY_ATTR void LookAtWindow(D d, const WindowRow& row, const ColumnSums& from, int i,
                           const WindowStatistics& to) {
  const hn::Rebind<float, D> df;
  const hn::RebindToSigned<decltype(df)> di;
  const int next = row.apart;
  const double* sums = from.sum + i;
  const double* all_squares = from.squares + i;
  const auto sum = hn::Add(hn::Add(hn::LoadU(d, sums), hn::LoadU(d, sums + next)),
                           hn::Add(hn::LoadU(d, sums + 2 * next), hn::LoadU(d, sums + 3 * next)));
  const auto squares =
      hn::Add(hn::Add(hn::LoadU(d, all_squares), hn::LoadU(d, all_squares + next)),
              hn::Add(hn::LoadU(d, all_squares + 2 * next), hn::LoadU(d, all_squares + 3 * next)));
  const auto inner = hn::Add(hn::LoadU(d, from.inner + i + next), hn::LoadU(d, from.inner + i + 2 * next));
  const auto inner_squares =
      hn::Add(hn::LoadU(d, from.inner_squares + i + next), hn::LoadU(d, from.inner_squares + i + 2 * next));
  const auto outer = hn::Sub(sum, inner);
  const auto outer_squares = hn::Sub(squares, inner_squares);
  hn::StoreU(hn::Sub(hn::Mul(hn::Set(d, 16.0), squares), hn::Mul(sum, sum)), d, to.texture + i);
  hn::StoreU(hn::Sub(hn::Mul(hn::Set(d, 12.0), outer_squares), hn::Mul(outer, outer)), d, to.ring + i);
  const auto square = hn::Max(hn::Mul(sum, hn::Set(d, row.level_scale)), hn::Zero(d));
  const auto place = hn::Sqrt(hn::DemoteTo(df, square));
  const auto last = hn::Set(df, static_cast<float>(row.level_count - 1));
  hn::StoreU(hn::ConvertTo(di, hn::Min(place, last)), di, to.level + i);
}

void LookAtWindows(const WindowRow& row, double* scratch, const WindowStatistics& out) {
  const hn::ScalableTag<double> d;
  const hn::CappedTag<double, 1> one;
  const auto lanes = static_cast<int>(hn::Lanes(d));
  const ColumnSums columns{scratch, scratch + row.cell_count, scratch + 2 * row.cell_count,
                           scratch + 3 * row.cell_count};
  int i = 0;
  for (; i + lanes <= row.cell_count; i += lanes) SumColumn(d, row.cells, i, columns);
  for (; i < row.cell_count; ++i) SumColumn(one, row.cells, i, columns);
  i = 0;
  for (; i + lanes <= row.count(); i += lanes) LookAtWindow(d, row, columns, i, out);
  for (; i < row.count(); ++i) LookAtWindow(one, row, columns, i, out);
}

}  // namespace
}  // namespace ungrain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace ungrain {
namespace {

HWY_EXPORT(PixelQuads);
HWY_EXPORT(PlaneQuads);
HWY_EXPORT(CellSums);
HWY_EXPORT(LookAtWindows);

void load(const ConstImageView& row, int first, int channels, float* const* out) {
  if (first == 0) return load_channels(row, 0, channels, out);
  for (int c = 0; c < channels; ++c) load_row(row, 0, first + c, out[c]);
}

bool has_whole_pixels(const ConstImageView& row) { return !is_float(row.spec.type) && lies_interleaved(row); }

}  // namespace

void QuadSums::operator()(const ConstImageView& above, const ConstImageView& below, float* scratch,
                          float* out) const {
  const int count = width_ / 2;
  if (first_ == 0 && has_whole_pixels(above) && has_whole_pixels(below)) {
    return HWY_DYNAMIC_DISPATCH(PixelQuads)(above.spec.type, above.data, below.data, above.spec.channels,
                                            channels_, count, out);
  }
  float* rows[2][max_channels] = {};
  for (int c = 0; c < channels_; ++c) {
    rows[0][c] = scratch + static_cast<std::ptrdiff_t>(2 * c) * width_;
    rows[1][c] = scratch + static_cast<std::ptrdiff_t>(2 * c + 1) * width_;
  }
  load(above, first_, channels_, rows[0]);
  load(below, first_, channels_, rows[1]);
  for (int c = 0; c < channels_; ++c) {
    HWY_DYNAMIC_DISPATCH(PlaneQuads)(rows[0][c], rows[1][c], c == 0, count, out);
  }
}

void cell_sums(const float* above, const float* below, int pixels_apart, int count, float* out) {
  HWY_DYNAMIC_DISPATCH(CellSums)(above, below, pixels_apart, count, out);
}

void measure_windows(const WindowRow& row, double* scratch, const WindowStatistics& out) {
  HWY_DYNAMIC_DISPATCH(LookAtWindows)(row, scratch, out);
}

}  // namespace ungrain

#endif
