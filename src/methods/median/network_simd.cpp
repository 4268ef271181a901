// Rows of minima and maxima.
#include <algorithm>

#include "methods/median/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "methods/median/network_simd.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h must come before what it includes again.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ungrain::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// One exchange over a row. Bound by loads and stores, as many as minima and maxima.
template <class T>
void Run(const MedianNetwork& network, T* const* values, std::ptrdiff_t width, int channels) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  for (const Exchange& step : network.exchanges) {
    const T* first = values[step.first] + step.first_shift * channels;
    const T* second = values[step.second] + step.second_shift * channels;
    const std::ptrdiff_t count = width + step.extent * channels;
    if (step.high == Exchange::unwanted) {
      T* low = values[step.low];
      for (std::ptrdiff_t i = 0; i < count; i += lanes) {
        hn::StoreU(hn::Min(hn::LoadU(d, first + i), hn::LoadU(d, second + i)), d, low + i);
      }
    } else if (step.low == Exchange::unwanted) {
      T* high = values[step.high];
      for (std::ptrdiff_t i = 0; i < count; i += lanes) {
        hn::StoreU(hn::Max(hn::LoadU(d, first + i), hn::LoadU(d, second + i)), d, high + i);
      }
    } else {
      T* low = values[step.low];
      T* high = values[step.high];
      for (std::ptrdiff_t i = 0; i < count; i += lanes) {
        const auto a = hn::LoadU(d, first + i);
        const auto b = hn::LoadU(d, second + i);
        hn::StoreU(hn::Min(a, b), d, low + i);
        hn::StoreU(hn::Max(a, b), d, high + i);
      }
    }
  }
}

void RunU8(const MedianNetwork& network, std::uint8_t* const* values, std::ptrdiff_t width, int channels) {
  Run(network, values, width, channels);
}
void RunU16(const MedianNetwork& network, std::uint16_t* const* values, std::ptrdiff_t width, int channels) {
  Run(network, values, width, channels);
}
void RunF32(const MedianNetwork& network, float* const* values, std::ptrdiff_t width, int channels) {
  Run(network, values, width, channels);
}

// Makes zeros positive: their sign must not depend on the order of exchanges.
template <class D, class V>
HWY_INLINE V OnlyOneZero(D d, V value) {
  if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
    return hn::Add(value, hn::Zero(d));
  } else {
    return value;
  }
}

// Calls step(i) for vectors that cover a row exactly: the last one overlaps the previous one. Rows shorter
// than a vector go through `tail`.
template <class T, class D, class Step>
HWY_INLINE void ForOutput(D d, std::ptrdiff_t width, T* out, Step step) {
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  if (width < lanes) {
    HWY_ALIGN T tail[median_slack / sizeof(T)];
    hn::StoreU(OnlyOneZero(d, step(0)), d, tail);
    std::copy_n(tail, width, out);
    return;
  }
  for (std::ptrdiff_t i = 0; i < width; i += lanes) {
    const std::ptrdiff_t at = std::min(i, width - lanes);
    hn::StoreU(OnlyOneZero(d, step(at)), d, out + at);
  }
}

template <class V>
HWY_INLINE void Order(V& a, V& b) {
  const V low = hn::Min(a, b);
  b = hn::Max(a, b);
  a = low;
}

template <class V>
HWY_INLINE V Middle(V a, V b, V c) {
  return hn::Max(hn::Min(a, b), hn::Min(hn::Max(a, b), c));
}

// The columns of three are sorted, the middle two rows once for both output rows. The median is the middle of
// three values: the largest of the columns' minima, the middle of their middles, the smallest of their
// maxima.
template <class T>
void Of9(const RowPair<T>& pair) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  const std::ptrdiff_t stride = pair.beside_stride;
  const int channels = pair.channels;
  for (std::ptrdiff_t i = 0; i < pair.width + 2 * channels; i += lanes) {
    auto low = hn::LoadU(d, pair.rows[1] + i);
    auto high = hn::LoadU(d, pair.rows[2] + i);
    Order(low, high);
    T* to = pair.beside + i;
    for (const T* other : {pair.rows[0], pair.rows[3]}) {
      const auto value = hn::LoadU(d, other + i);
      const auto rest = hn::Max(value, low);
      hn::StoreU(hn::Min(value, low), d, to);
      hn::StoreU(hn::Min(rest, high), d, to + stride);
      hn::StoreU(hn::Max(rest, high), d, to + 2 * stride);
      to += 3 * stride;
    }
  }
  for (int row = 0; row < 2; ++row) {
    if (pair.out[row] == nullptr) continue;
    const T* lows = pair.beside + 3 * row * stride;
    const T* middles = lows + stride;
    const T* highs = middles + stride;
    ForOutput(d, pair.width, pair.out[row], [=](std::ptrdiff_t i) HWY_ATTR {
      const auto load = [=](const T* from, int pixels)
                            HWY_ATTR { return hn::LoadU(d, from + i + pixels * channels); };
      const auto low = hn::Max(hn::Max(load(lows, 0), load(lows, 1)), load(lows, 2));
      const auto high = hn::Min(hn::Min(load(highs, 0), load(highs, 1)), load(highs, 2));
      return Middle(low, high, Middle(load(middles, 0), load(middles, 1), load(middles, 2)));
    });
  }
}

// The fifth smallest value of two sorted lists: c0 to c4, a part of a longer list, and d0 to d3.
template <class V>
HWY_INLINE V Fifth(V c0, V c1, V c2, V c3, V c4, V d0, V d1, V d2, V d3) {
  return hn::Min(hn::Min(c4, hn::Max(c3, d0)),
                 hn::Min(hn::Max(c2, d1), hn::Min(hn::Max(c1, d2), hn::Max(c0, d3))));
}

// The two windows share four rows of five columns, which are sorted as far as they may hold a median: columns
// of four, pairs of columns, all. Then each window's own row of five is sorted, and the median selected from
// both.
template <class T>
void Of25(const RowPair<T>& pair) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  const std::ptrdiff_t stride = pair.beside_stride;
  const int channels = pair.channels;
  T* const fours = pair.beside;
  T* const eights = pair.beside + 4 * stride;
  for (std::ptrdiff_t i = 0; i < pair.width + 4 * channels; i += lanes) {
    auto a = hn::LoadU(d, pair.rows[1] + i);
    auto b = hn::LoadU(d, pair.rows[2] + i);
    auto c = hn::LoadU(d, pair.rows[3] + i);
    auto e = hn::LoadU(d, pair.rows[4] + i);
    Order(a, b);
    Order(c, e);
    Order(a, c);
    Order(b, e);
    Order(b, c);
    hn::StoreU(a, d, fours + i);
    hn::StoreU(b, d, fours + i + stride);
    hn::StoreU(c, d, fours + i + 2 * stride);
    hn::StoreU(e, d, fours + i + 3 * stride);
  }
  for (std::ptrdiff_t i = 0; i < pair.width + 2 * channels; i += lanes) {
    const T* left = fours + i;
    const T* right = left + channels;
    auto v0 = hn::LoadU(d, left);
    auto v1 = hn::LoadU(d, left + stride);
    auto v2 = hn::LoadU(d, left + 2 * stride);
    auto v3 = hn::LoadU(d, left + 3 * stride);
    auto v4 = hn::LoadU(d, right);
    auto v5 = hn::LoadU(d, right + stride);
    auto v6 = hn::LoadU(d, right + 2 * stride);
    auto v7 = hn::LoadU(d, right + 3 * stride);
    Order(v0, v4);
    Order(v1, v5);
    Order(v2, v6);
    Order(v3, v7);
    Order(v2, v4);
    Order(v3, v5);
    Order(v1, v2);
    Order(v3, v4);
    Order(v5, v6);
    T* to = eights + i;
    hn::StoreU(v0, d, to);
    hn::StoreU(v1, d, to + stride);
    hn::StoreU(v2, d, to + 2 * stride);
    hn::StoreU(v3, d, to + 3 * stride);
    hn::StoreU(v4, d, to + 4 * stride);
    hn::StoreU(v5, d, to + 5 * stride);
    hn::StoreU(v6, d, to + 6 * stride);
    hn::StoreU(v7, d, to + 7 * stride);
  }
  // Of four columns, 16 values, three on either side are too small or too large; of five columns, four more.
  for (std::ptrdiff_t i = 0; i < pair.width; i += lanes) {
    const T* left = eights + i;
    const T* right = left + 2 * channels;
    auto v0 = hn::LoadU(d, left);
    auto v1 = hn::LoadU(d, left + stride);
    auto v2 = hn::LoadU(d, left + 2 * stride);
    auto v3 = hn::LoadU(d, left + 3 * stride);
    auto v4 = hn::LoadU(d, left + 4 * stride);
    auto v5 = hn::LoadU(d, left + 5 * stride);
    auto v6 = hn::LoadU(d, left + 6 * stride);
    auto v7 = hn::LoadU(d, left + 7 * stride);
    auto v8 = hn::LoadU(d, right);
    auto v9 = hn::LoadU(d, right + stride);
    auto v10 = hn::LoadU(d, right + 2 * stride);
    auto v11 = hn::LoadU(d, right + 3 * stride);
    auto v12 = hn::LoadU(d, right + 4 * stride);
    auto v13 = hn::LoadU(d, right + 5 * stride);
    auto v14 = hn::LoadU(d, right + 6 * stride);
    auto v15 = hn::LoadU(d, right + 7 * stride);
    Order(v0, v8);
    Order(v1, v9);
    Order(v2, v10);
    Order(v3, v11);
    Order(v4, v12);
    Order(v5, v13);
    Order(v6, v14);
    Order(v7, v15);
    Order(v4, v8);
    Order(v5, v9);
    Order(v6, v10);
    Order(v7, v11);
    Order(v2, v4);
    Order(v3, v5);
    Order(v6, v8);
    Order(v7, v9);
    Order(v10, v12);
    Order(v11, v13);
    Order(v3, v4);
    Order(v5, v6);
    Order(v7, v8);
    Order(v9, v10);
    Order(v11, v12);
    const T* last = fours + i + 4 * channels;
    const auto d0 = hn::LoadU(d, last);
    const auto d1 = hn::LoadU(d, last + stride);
    const auto d2 = hn::LoadU(d, last + 2 * stride);
    const auto d3 = hn::LoadU(d, last + 3 * stride);
    // Overwrites what was read: later vectors read only to the right.
    T* to = eights + i;
    hn::StoreU(Fifth(v3, v4, v5, v6, v7, d0, d1, d2, d3), d, to);
    hn::StoreU(Fifth(v4, v5, v6, v7, v8, d0, d1, d2, d3), d, to + stride);
    hn::StoreU(Fifth(v5, v6, v7, v8, v9, d0, d1, d2, d3), d, to + 2 * stride);
    hn::StoreU(Fifth(v6, v7, v8, v9, v10, d0, d1, d2, d3), d, to + 3 * stride);
    hn::StoreU(Fifth(v7, v8, v9, v10, v11, d0, d1, d2, d3), d, to + 4 * stride);
    hn::StoreU(Fifth(v8, v9, v10, v11, v12, d0, d1, d2, d3), d, to + 5 * stride);
  }
  for (int row = 0; row < 2; ++row) {
    if (pair.out[row] == nullptr) continue;
    const T* own = pair.rows[row == 0 ? 0 : 5];
    ForOutput(d, pair.width, pair.out[row], [=](std::ptrdiff_t i) HWY_ATTR {
      auto e0 = hn::LoadU(d, own + i);
      auto e1 = hn::LoadU(d, own + i + channels);
      auto e2 = hn::LoadU(d, own + i + 2 * channels);
      auto e3 = hn::LoadU(d, own + i + 3 * channels);
      auto e4 = hn::LoadU(d, own + i + 4 * channels);
      Order(e0, e3);
      Order(e1, e4);
      Order(e0, e2);
      Order(e1, e3);
      Order(e0, e1);
      Order(e2, e4);
      Order(e1, e2);
      Order(e3, e4);
      Order(e2, e3);
      const T* shared = eights + i;
      const auto first =
          hn::Min(hn::Max(hn::LoadU(d, shared), e4), hn::Max(hn::LoadU(d, shared + stride), e3));
      const auto second = hn::Min(hn::Max(hn::LoadU(d, shared + 2 * stride), e2),
                                  hn::Max(hn::LoadU(d, shared + 3 * stride), e1));
      const auto third =
          hn::Min(hn::Max(hn::LoadU(d, shared + 4 * stride), e0), hn::LoadU(d, shared + 5 * stride));
      return hn::Min(first, hn::Min(second, third));
    });
  }
}

void Of9U8(const RowPair<std::uint8_t>& pair) { Of9(pair); }
void Of9U16(const RowPair<std::uint16_t>& pair) { Of9(pair); }
void Of9F32(const RowPair<float>& pair) { Of9(pair); }
void Of25U8(const RowPair<std::uint8_t>& pair) { Of25(pair); }
void Of25U16(const RowPair<std::uint16_t>& pair) { Of25(pair); }
void Of25F32(const RowPair<float>& pair) { Of25(pair); }

}  // namespace
}  // namespace ungrain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace ungrain {
namespace {

HWY_EXPORT(RunU8);
HWY_EXPORT(RunU16);
HWY_EXPORT(RunF32);
HWY_EXPORT(Of9U8);
HWY_EXPORT(Of9U16);
HWY_EXPORT(Of9F32);
HWY_EXPORT(Of25U8);
HWY_EXPORT(Of25U16);
HWY_EXPORT(Of25F32);

}  // namespace

void run_network(const MedianNetwork& network, std::uint8_t* const* values, std::ptrdiff_t width,
                 int channels) {
  HWY_DYNAMIC_DISPATCH(RunU8)(network, values, width, channels);
}
void run_network(const MedianNetwork& network, std::uint16_t* const* values, std::ptrdiff_t width,
                 int channels) {
  HWY_DYNAMIC_DISPATCH(RunU16)(network, values, width, channels);
}
void run_network(const MedianNetwork& network, float* const* values, std::ptrdiff_t width, int channels) {
  HWY_DYNAMIC_DISPATCH(RunF32)(network, values, width, channels);
}

void medians_of_9(const RowPair<std::uint8_t>& pair) { HWY_DYNAMIC_DISPATCH(Of9U8)(pair); }
void medians_of_9(const RowPair<std::uint16_t>& pair) { HWY_DYNAMIC_DISPATCH(Of9U16)(pair); }
void medians_of_9(const RowPair<float>& pair) { HWY_DYNAMIC_DISPATCH(Of9F32)(pair); }
void medians_of_25(const RowPair<std::uint8_t>& pair) { HWY_DYNAMIC_DISPATCH(Of25U8)(pair); }
void medians_of_25(const RowPair<std::uint16_t>& pair) { HWY_DYNAMIC_DISPATCH(Of25U16)(pair); }
void medians_of_25(const RowPair<float>& pair) { HWY_DYNAMIC_DISPATCH(Of25F32)(pair); }

}  // namespace ungrain

#endif
