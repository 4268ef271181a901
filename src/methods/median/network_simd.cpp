// Rows of minima and maxima.
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

// One exchange over a row. Bound by loads and stores, of which there are as many as minima and maxima.
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

// The columns of three are sorted, the middle two rows once for both output rows. Of the columns' minima the
// largest, of their middles the middle, of their maxima the smallest: the middle of these is the median.
template <class T>
void Nines(const FourRows<T>& at, std::ptrdiff_t width, int channels) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  const std::ptrdiff_t stride = at.room_stride;
  for (std::ptrdiff_t i = 0; i < width + 2 * channels; i += lanes) {
    const auto second = hn::LoadU(d, at.rows[1] + i);
    const auto third = hn::LoadU(d, at.rows[2] + i);
    const auto low = hn::Min(second, third);
    const auto high = hn::Max(second, third);
    T* to = at.room + i;
    for (const T* other : {at.rows[0], at.rows[3]}) {
      const auto value = hn::LoadU(d, other + i);
      const auto rest = hn::Max(value, low);
      hn::StoreU(hn::Min(value, low), d, to);
      hn::StoreU(hn::Min(rest, high), d, to + stride);
      hn::StoreU(hn::Max(rest, high), d, to + 2 * stride);
      to += 3 * stride;
    }
  }
  const auto middle = [](auto a, auto b, auto c) {
    return hn::Max(hn::Min(a, b), hn::Min(hn::Max(a, b), c));
  };
  for (int row = 0; row < 2; ++row) {
    const T* lows = at.room + 3 * row * stride;
    const T* middles = lows + stride;
    const T* highs = middles + stride;
    for (std::ptrdiff_t i = 0; i < width; i += lanes) {
      const auto load = [&](const T* from, int pixels) { return hn::LoadU(d, from + i + pixels * channels); };
      const auto low = hn::Max(hn::Max(load(lows, 0), load(lows, 1)), load(lows, 2));
      const auto high = hn::Min(hn::Min(load(highs, 0), load(highs, 1)), load(highs, 2));
      const auto mid = middle(load(middles, 0), load(middles, 1), load(middles, 2));
      hn::StoreU(middle(low, high, mid), d, at.out[row] + i);
    }
  }
}

void NinesU8(const FourRows<std::uint8_t>& at, std::ptrdiff_t width, int channels) {
  Nines(at, width, channels);
}
void NinesU16(const FourRows<std::uint16_t>& at, std::ptrdiff_t width, int channels) {
  Nines(at, width, channels);
}
void NinesF32(const FourRows<float>& at, std::ptrdiff_t width, int channels) { Nines(at, width, channels); }

}  // namespace
}  // namespace ungrain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace ungrain {
namespace {

HWY_EXPORT(RunU8);
HWY_EXPORT(RunU16);
HWY_EXPORT(RunF32);
HWY_EXPORT(NinesU8);
HWY_EXPORT(NinesU16);
HWY_EXPORT(NinesF32);

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

void medians_of_nine(const FourRows<std::uint8_t>& at, std::ptrdiff_t width, int channels) {
  HWY_DYNAMIC_DISPATCH(NinesU8)(at, width, channels);
}
void medians_of_nine(const FourRows<std::uint16_t>& at, std::ptrdiff_t width, int channels) {
  HWY_DYNAMIC_DISPATCH(NinesU16)(at, width, channels);
}
void medians_of_nine(const FourRows<float>& at, std::ptrdiff_t width, int channels) {
  HWY_DYNAMIC_DISPATCH(NinesF32)(at, width, channels);
}

}  // namespace ungrain

#endif
