// Sums of rows and along rows.
#include <algorithm>
#include <limits>

#include "cpu/separable_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/separable_simd.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h must come before what it includes again.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ungrain::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Numbers on their way out: as they are, or multiplied, rounded half to even and saturated.
template <class D>
HWY_INLINE void StoreAs(D d, hn::Vec<D> value, hn::Vec<D> factor, float* out) {
  hn::StoreU(hn::Mul(value, factor), d, out);
}
template <class D, class T>
HWY_INLINE void StoreAs(D d, hn::Vec<D> value, hn::Vec<D> factor, T* out) {
  const hn::Rebind<T, D> narrow;
  const auto top = hn::Set(d, static_cast<float>(std::numeric_limits<T>::max()));
  const auto bounded = hn::Min(hn::Max(hn::Mul(value, factor), hn::Zero(d)), top);
  hn::StoreU(hn::DemoteTo(narrow, hn::NearestInt(bounded)), narrow, out);
}

// One vector of sums. From the ends to the centre, small weights first, and not too many in one sum: many
// weights then cost little accuracy.
constexpr int most_in_a_sum = 32;

template <class D>
HWY_INLINE hn::Vec<D> WeightedVector(D d, const float* from, std::ptrdiff_t step, const float* half,
                                     int radius) {
  auto total = hn::Mul(hn::LoadU(d, from), hn::Set(d, half[0]));
  for (int last = radius; last > 0; last -= most_in_a_sum) {
    auto sum = hn::Zero(d);
    for (int k = last; k > 0 && k > last - most_in_a_sum; --k) {
      const auto pair = hn::Add(hn::LoadU(d, from - k * step), hn::LoadU(d, from + k * step));
      sum = hn::MulAdd(pair, hn::Set(d, half[k]), sum);
    }
    total = hn::Add(total, sum);
  }
  return total;
}

// Four vectors at a time hide the multiply-adds' latency. What is left at the end is done again with the
// numbers before it, or one by one where there are fewer than a vector.
template <class T>
void WeightedSum(const float* at, std::ptrdiff_t step, const float* half, int radius, std::ptrdiff_t count,
                 float factor, T* out) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  const auto by = hn::Set(d, factor);
  std::ptrdiff_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    const float* from = at + i;
    const auto centre = hn::Set(d, half[0]);
    auto total0 = hn::Mul(hn::LoadU(d, from), centre);
    auto total1 = hn::Mul(hn::LoadU(d, from + lanes), centre);
    auto total2 = hn::Mul(hn::LoadU(d, from + 2 * lanes), centre);
    auto total3 = hn::Mul(hn::LoadU(d, from + 3 * lanes), centre);
    for (int last = radius; last > 0; last -= most_in_a_sum) {
      auto sum0 = hn::Zero(d);
      auto sum1 = sum0;
      auto sum2 = sum0;
      auto sum3 = sum0;
      for (int k = last; k > 0 && k > last - most_in_a_sum; --k) {
        const auto weight = hn::Set(d, half[k]);
        const float* before = from - k * step;
        const float* after = from + k * step;
        sum0 = hn::MulAdd(hn::Add(hn::LoadU(d, before), hn::LoadU(d, after)), weight, sum0);
        sum1 = hn::MulAdd(hn::Add(hn::LoadU(d, before + lanes), hn::LoadU(d, after + lanes)), weight, sum1);
        sum2 = hn::MulAdd(hn::Add(hn::LoadU(d, before + 2 * lanes), hn::LoadU(d, after + 2 * lanes)), weight,
                          sum2);
        sum3 = hn::MulAdd(hn::Add(hn::LoadU(d, before + 3 * lanes), hn::LoadU(d, after + 3 * lanes)), weight,
                          sum3);
      }
      total0 = hn::Add(total0, sum0);
      total1 = hn::Add(total1, sum1);
      total2 = hn::Add(total2, sum2);
      total3 = hn::Add(total3, sum3);
    }
    StoreAs(d, total0, by, out + i);
    StoreAs(d, total1, by, out + i + lanes);
    StoreAs(d, total2, by, out + i + 2 * lanes);
    StoreAs(d, total3, by, out + i + 3 * lanes);
  }
  if (count >= lanes) {
    for (; i < count; i += lanes) {
      const std::ptrdiff_t last = std::min(i, count - lanes);
      StoreAs(d, WeightedVector(d, at + last, step, half, radius), by, out + last);
    }
    return;
  }
  const hn::CappedTag<float, 1> one;
  for (; i < count; ++i) {
    StoreAs(one, WeightedVector(one, at + i, step, half, radius), hn::Set(one, factor), out + i);
  }
}

void WeightedSumF32(const float* at, std::ptrdiff_t step, const float* half, int radius, std::ptrdiff_t count,
                    float factor, float* out) {
  WeightedSum(at, step, half, radius, count, factor, out);
}
void WeightedSumU8(const float* at, std::ptrdiff_t step, const float* half, int radius, std::ptrdiff_t count,
                   float factor, std::uint8_t* out) {
  WeightedSum(at, step, half, radius, count, factor, out);
}
void WeightedSumU16(const float* at, std::ptrdiff_t step, const float* half, int radius, std::ptrdiff_t count,
                    float factor, std::uint16_t* out) {
  WeightedSum(at, step, half, radius, count, factor, out);
}

void AddRows(const float* first, const float* second, std::ptrdiff_t count, float* out) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  for (std::ptrdiff_t i = 0; i < count; i += lanes) {
    hn::StoreU(hn::Add(hn::LoadU(d, first + i), hn::LoadU(d, second + i)), d, out + i);
  }
}

// Sums of 1, 2, 4 … numbers are made of each other and joined as the bits of the length say: the last of them
// straight into the result.
void BoxAlongLine(float* line, std::ptrdiff_t step, int length, float scale, std::ptrdiff_t count,
                  float* out) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  const auto factor = hn::Set(d, scale);
  if (length == 3) {
    for (std::ptrdiff_t i = 0; i < count; i += lanes) {
      const auto sum = hn::Add(hn::Add(hn::LoadU(d, line + i), hn::LoadU(d, line + i + step)),
                               hn::LoadU(d, line + i + 2 * step));
      hn::StoreU(hn::Mul(sum, factor), d, out + i);
    }
    return;
  }
  int summed = 1;  // numbers that are in `out`
  for (std::ptrdiff_t i = 0; i < count; i += lanes) hn::StoreU(hn::LoadU(d, line + i), d, out + i);
  for (int width = 1; 2 * width <= length; width *= 2) {
    AddRows(line, line + width * step, count + (length - 2 * width) * step, line);
    if ((length & (2 * width)) == 0) continue;
    const bool last = 4 * width > length;
    const float* more = line + summed * step;
    if (last) {
      for (std::ptrdiff_t i = 0; i < count; i += lanes) {
        hn::StoreU(hn::Mul(hn::Add(hn::LoadU(d, out + i), hn::LoadU(d, more + i)), factor), d, out + i);
      }
    } else {
      AddRows(out, more, count, out);
    }
    summed += 2 * width;
  }
}

void SlideBox(const float* row, const float* behind, bool restart, std::ptrdiff_t count, float* running,
              float* out) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  for (std::ptrdiff_t i = 0; i < count; i += lanes) {
    auto sum = hn::LoadU(d, row + i);
    if (!restart) sum = hn::Add(hn::LoadU(d, running + i), sum);
    hn::StoreU(sum, d, running + i);
    if (behind != nullptr) sum = hn::Add(hn::LoadU(d, behind + i), sum);
    hn::StoreU(sum, d, out + i);
  }
}

template <bool Enters, bool Leaves, class T, class Sum>
void SlideRow(const T* entering, const T* leaving, std::ptrdiff_t count, Sum* sums, float* line) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<T, decltype(d)> narrow;
  const hn::Rebind<Sum, decltype(d)> wide;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  std::ptrdiff_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    auto sum = hn::LoadU(wide, sums + i);
    if constexpr (Enters) sum = hn::Add(sum, hn::PromoteTo(wide, hn::LoadU(narrow, entering + i)));
    if constexpr (Leaves) sum = hn::Sub(sum, hn::PromoteTo(wide, hn::LoadU(narrow, leaving + i)));
    hn::StoreU(sum, wide, sums + i);
    if constexpr (sizeof(Sum) == 2) {
      hn::StoreU(hn::ConvertTo(d, hn::PromoteTo(di, sum)), d, line + i);
    } else {
      hn::StoreU(hn::ConvertTo(d, hn::BitCast(di, sum)), d, line + i);
    }
  }
  for (; i < count; ++i) {  // the rows may end here
    sums[i] = static_cast<Sum>(sums[i] + (Enters ? entering[i] : 0) - (Leaves ? leaving[i] : 0));
    line[i] = static_cast<float>(static_cast<std::int32_t>(sums[i]));
  }
}

template <class T, class Sum>
void SlideSums(const T* entering, const T* leaving, std::ptrdiff_t count, Sum* sums, float* line) {
  if (entering != nullptr && leaving != nullptr) {
    SlideRow<true, true>(entering, leaving, count, sums, line);
  } else if (entering != nullptr) {
    SlideRow<true, false>(entering, leaving, count, sums, line);
  } else if (leaving != nullptr) {
    SlideRow<false, true>(entering, leaving, count, sums, line);
  } else {
    SlideRow<false, false>(entering, leaving, count, sums, line);
  }
}

// As SlideRow(), in 16 bits all the way.
void SlideShort(const std::uint8_t* entering, const std::uint8_t* leaving, std::ptrdiff_t count,
                std::uint16_t* sums) {
  const hn::ScalableTag<std::uint16_t> d;
  const hn::Rebind<std::uint8_t, decltype(d)> narrow;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  std::ptrdiff_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    auto sum = hn::LoadU(d, sums + i);
    if (entering != nullptr) sum = hn::Add(sum, hn::PromoteTo(d, hn::LoadU(narrow, entering + i)));
    if (leaving != nullptr) sum = hn::Sub(sum, hn::PromoteTo(d, hn::LoadU(narrow, leaving + i)));
    hn::StoreU(sum, d, sums + i);
  }
  for (; i < count; ++i) {
    const int change = (entering != nullptr ? entering[i] : 0) - (leaving != nullptr ? leaving[i] : 0);
    sums[i] = static_cast<std::uint16_t>(sums[i] + change);
  }
}

void ShortBox(const std::uint16_t* line, std::ptrdiff_t step, int length, const ShortDivision& by,
              std::ptrdiff_t count, std::uint8_t* out) {
  const hn::ScalableTag<std::uint16_t> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<std::uint8_t, decltype(d)> narrow;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  const auto multiplier = hn::Set(d, by.multiplier);
  if (count < lanes) {
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      std::uint32_t sum = by.half;
      for (int k = 0; k < length; ++k) sum += line[i + k * step];
      out[i] = static_cast<std::uint8_t>((sum * by.multiplier) >> (16 + by.shift));
    }
    return;
  }
  for (std::ptrdiff_t i = 0; i < count; i += lanes) {
    const std::ptrdiff_t at = std::min(i, count - lanes);
    auto sum = hn::Set(d, by.half);
    for (int k = 0; k < length; ++k) sum = hn::Add(sum, hn::LoadU(d, line + at + k * step));
    const auto quotient = hn::ShiftRightSame(hn::MulHigh(sum, multiplier), by.shift);
    hn::StoreU(hn::DemoteTo(narrow, hn::BitCast(di, quotient)), narrow, out + at);
  }
}

void SlideSumsU8(const std::uint8_t* entering, const std::uint8_t* leaving, std::ptrdiff_t count,
                 std::uint16_t* sums, float* line) {
  SlideSums(entering, leaving, count, sums, line);
}
void SlideSumsU16(const std::uint16_t* entering, const std::uint16_t* leaving, std::ptrdiff_t count,
                  std::uint32_t* sums, float* line) {
  SlideSums(entering, leaving, count, sums, line);
}

}  // namespace
}  // namespace ungrain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace ungrain {
namespace {

HWY_EXPORT(WeightedSumF32);
HWY_EXPORT(WeightedSumU8);
HWY_EXPORT(WeightedSumU16);
HWY_EXPORT(AddRows);
HWY_EXPORT(BoxAlongLine);
HWY_EXPORT(SlideBox);
HWY_EXPORT(SlideShort);
HWY_EXPORT(ShortBox);
HWY_EXPORT(SlideSumsU8);
HWY_EXPORT(SlideSumsU16);

}  // namespace

void weighted_sum(const float* at, std::ptrdiff_t step, const float* half, int radius, std::ptrdiff_t count,
                  float factor, float* out) {
  HWY_DYNAMIC_DISPATCH(WeightedSumF32)(at, step, half, radius, count, factor, out);
}
void weighted_sum(const float* at, std::ptrdiff_t step, const float* half, int radius, std::ptrdiff_t count,
                  float factor, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(WeightedSumU8)(at, step, half, radius, count, factor, out);
}
void weighted_sum(const float* at, std::ptrdiff_t step, const float* half, int radius, std::ptrdiff_t count,
                  float factor, std::uint16_t* out) {
  HWY_DYNAMIC_DISPATCH(WeightedSumU16)(at, step, half, radius, count, factor, out);
}
void add_rows(const float* first, const float* second, std::ptrdiff_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(AddRows)(first, second, count, out);
}
void box_along_line(float* line, std::ptrdiff_t step, int length, float scale, std::ptrdiff_t count,
                    float* out) {
  HWY_DYNAMIC_DISPATCH(BoxAlongLine)(line, step, length, scale, count, out);
}
void slide_box(const float* row, const float* behind, bool restart, std::ptrdiff_t count, float* running,
               float* out) {
  HWY_DYNAMIC_DISPATCH(SlideBox)(row, behind, restart, count, running, out);
}
void slide_sums(const std::uint8_t* entering, const std::uint8_t* leaving, std::ptrdiff_t count,
                std::uint16_t* sums, float* line) {
  HWY_DYNAMIC_DISPATCH(SlideSumsU8)(entering, leaving, count, sums, line);
}
void slide_sums(const std::uint16_t* entering, const std::uint16_t* leaving, std::ptrdiff_t count,
                std::uint32_t* sums, float* line) {
  HWY_DYNAMIC_DISPATCH(SlideSumsU16)(entering, leaving, count, sums, line);
}

ShortDivision::ShortDivision(int by) : half(static_cast<std::uint16_t>(by / 2)) {
  while ((std::uint32_t{1} << (17 + shift)) / static_cast<std::uint32_t>(by) < 0xffff) ++shift;
  multiplier =
      static_cast<std::uint16_t>((std::uint32_t{1} << (16 + shift)) / static_cast<std::uint32_t>(by) + 1);
}

void slide_sums(const std::uint8_t* entering, const std::uint8_t* leaving, std::ptrdiff_t count,
                std::uint16_t* sums) {
  HWY_DYNAMIC_DISPATCH(SlideShort)(entering, leaving, count, sums);
}
void short_box_along_line(const std::uint16_t* line, std::ptrdiff_t step, int length, const ShortDivision& by,
                          std::ptrdiff_t count, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(ShortBox)(line, step, length, by, count, out);
}

}  // namespace ungrain

#endif
