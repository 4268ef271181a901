// What the vectorised sources share, on every set of instructions that this machine has.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd_test.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h must come before what it includes again.
#include <hwy/highway.h>

#include "cpu/exp2-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ungrain::HWY_NAMESPACE {
namespace {

// `count` is a multiple of every vector's length.
template <int Degree>
void Powers(const float* x, float* bounded, float* or_zero, int count) {
  const hn::ScalableTag<float> d;
  for (int i = 0; i < count; i += static_cast<int>(hn::Lanes(d))) {
    hn::StoreU(Exp2Bounded<Degree>(d, hn::LoadU(d, x + i)), d, bounded + i);
    hn::StoreU(Exp2OrZero<Degree>(d, hn::LoadU(d, x + i)), d, or_zero + i);
  }
}

void PowersOfDegree(int degree, const float* x, float* bounded, float* or_zero, int count) {
  if (degree == 3) Powers<3>(x, bounded, or_zero, count);
  if (degree == 4) Powers<4>(x, bounded, or_zero, count);
  if (degree == 5) Powers<5>(x, bounded, or_zero, count);
}

}  // namespace
}  // namespace ungrain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "cpu/simd.h"
#include "ungrain/error.h"

namespace ungrain {
namespace {

HWY_EXPORT(PowersOfDegree);

class Simd : public ::testing::Test {
 protected:
  void TearDown() override { use_simd_target(""); }
};

TEST_F(Simd, EverySetIsNamedOnceAndCanBeChosen) {
  const std::vector<std::string> names = simd_targets();
  ASSERT_FALSE(names.empty());
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  for (const std::string& name : names) EXPECT_NO_THROW(use_simd_target(name));
  EXPECT_THROW(use_simd_target("MMX"), Error);
}

TEST_F(Simd, PowersOfTwoKeepTheirError) {
  constexpr int count = 1 << 16;
  std::vector<float> x(count);
  for (int i = 0; i < count; ++i) x[i] = -127.0F * static_cast<float>(i) / (count - 1);
  x[count - 2] = -1e30F;
  x[count - 1] = -std::numeric_limits<float>::infinity();
  const std::pair<int, double> errors[] = {{3, 1.05e-4}, {4, 3.8e-6}, {5, 3e-7}};
  for (const std::string& target : simd_targets()) {
    use_simd_target(target);
    for (const auto& [degree, error] : errors) {
      std::vector<float> bounded(count);
      std::vector<float> or_zero(count);
      HWY_DYNAMIC_DISPATCH(PowersOfDegree)(degree, x.data(), bounded.data(), or_zero.data(), count);
      EXPECT_EQ(bounded[0], 1.0F) << target;
      for (int i = 0; i < count; ++i) {
        const double expected = std::exp2(std::max(static_cast<double>(x[i]), -126.0));
        ASSERT_NEAR(bounded[i] / expected, 1, error) << target << ", degree " << degree << ", 2^" << x[i];
        ASSERT_EQ(or_zero[i], x[i] > -126 ? bounded[i] : 0.0F) << target << ", 2^" << x[i];
      }
    }
  }
}

}  // namespace
}  // namespace ungrain

#endif
