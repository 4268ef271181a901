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

#include "core/colour.h"
#include "cpu/lab_simd.h"
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
  std::vector<std::string> names = simd_targets();
  ASSERT_FALSE(names.empty());
  for (const std::string& variant : simd_variants()) names.push_back(variant);
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

TEST_F(Simd, LabIsTheDefinitions) {
  // Every combination of levels from below black to above white, and a length that is no vector's.
  const std::vector<double> levels = {-0.5, 0, 1e-3, 0.0404, 0.0405, 0.1, 0.3, 0.6, 0.99, 1, 1.5};
  constexpr double white = 255;
  std::vector<float> rgb[3];
  for (const double r : levels) {
    for (const double g : levels) {
      for (const double b : levels) {
        rgb[0].push_back(static_cast<float>(r * white));
        rgb[1].push_back(static_cast<float>(g * white));
        rgb[2].push_back(static_cast<float>(b * white));
      }
    }
  }
  const std::size_t count = rgb[0].size();
  std::vector<float> lab[3];
  std::vector<float> back[3];
  for (int c = 0; c < 3; ++c) lab[c] = back[c] = rgb[c];
  for (const std::string& target : simd_targets()) {
    use_simd_target(target);
    lab_from_rgb_row({rgb[0].data(), rgb[1].data(), rgb[2].data()},
                     {lab[0].data(), lab[1].data(), lab[2].data()}, static_cast<int>(count), white);
    rgb_from_lab_row({lab[0].data(), lab[1].data(), lab[2].data()},
                     {back[0].data(), back[1].data(), back[2].data()}, static_cast<int>(count), white);
    for (std::size_t i = 0; i < count; ++i) {
      const Triple expected = rgb_to_lab({rgb[0][i] / white, rgb[1][i] / white, rgb[2][i] / white});
      for (std::size_t c = 0; c < 3; ++c) {
        ASSERT_NEAR(lab[c][i], expected[c], 5e-5) << target << ", channel " << c << " of pixel " << i;
        ASSERT_NEAR(back[c][i], rgb[c][i], 3e-6 * white) << target << ", channel " << c << " of pixel " << i;
      }
    }
  }
}

}  // namespace
}  // namespace ungrain

#endif
