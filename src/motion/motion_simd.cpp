#include "motion/motion_simd.h"

#include "motion/motion.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "motion/motion_simd.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h must come before what it includes again.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ungrain::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

std::uint32_t BlockDifference(const std::uint16_t* a, std::ptrdiff_t a_stride, const std::uint16_t* b,
                              std::ptrdiff_t b_stride) {
  std::uint32_t sum = 0;
  for (int y = 0; y < motion_block; ++y, a += a_stride, b += b_stride) {
    for (int x = 0; x < motion_block; ++x)
      sum += static_cast<std::uint32_t>(a[x] > b[x] ? a[x] - b[x] : b[x] - a[x]);
  }
  return sum;
}

#else

std::uint32_t BlockDifference(const std::uint16_t* a, std::ptrdiff_t a_stride, const std::uint16_t* b,
                              std::ptrdiff_t b_stride) {
  const hn::FixedTag<std::uint16_t, 8> words;
  const hn::FixedTag<std::uint32_t, 4> sums;
  const hn::FixedTag<std::uint16_t, 4> half;
  // Sixteen differences of 12 bits fit.
  auto left = hn::Zero(words);
  auto right = hn::Zero(words);
  for (int y = 0; y < motion_block; ++y, a += a_stride, b += b_stride) {
    const auto a_left = hn::LoadU(words, a);
    const auto b_left = hn::LoadU(words, b);
    const auto a_right = hn::LoadU(words, a + 8);
    const auto b_right = hn::LoadU(words, b + 8);
    left = hn::Add(left, hn::Sub(hn::Max(a_left, b_left), hn::Min(a_left, b_left)));
    right = hn::Add(right, hn::Sub(hn::Max(a_right, b_right), hn::Min(a_right, b_right)));
  }
  const auto widened = [&](auto v) {
    return hn::Add(hn::PromoteTo(sums, hn::LowerHalf(half, v)), hn::PromoteTo(sums, hn::UpperHalf(half, v)));
  };
  return hn::GetLane(hn::SumOfLanes(sums, hn::Add(widened(left), widened(right))));
}

#endif

}  // namespace
}  // namespace ungrain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ungrain {

HWY_EXPORT(BlockDifference);

std::uint32_t block_difference(const std::uint16_t* a, std::ptrdiff_t a_stride, const std::uint16_t* b,
                               std::ptrdiff_t b_stride) {
  return HWY_DYNAMIC_DISPATCH(BlockDifference)(a, a_stride, b, b_stride);
}

}  // namespace ungrain
#endif
