#include "core/portable_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace ungrain {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Units in the last place of `want` between the two; the standard library itself may be one off.
double ulps_apart(double got, double want) {
  if (got == want) return 0;
  const double size = std::fabs(want);
  return std::fabs(got - want) / (std::nextafter(size, infinity) - size);
}

// The fractional parts of multiples of the golden ratio: even coverage of [0, 1) without a generator.
double spread(int i) {
  const double x = i * 0.61803398874989484820;
  return x - std::floor(x);
}

constexpr int samples = 100'000;

TEST(PortableMath, LogAgreesWithTheStandardLibrary) {
  for (int i = 1; i < samples; ++i) {
    const double unit = spread(i);
    const double wide = std::ldexp(1 + unit, i % 2000 - 1040);
    const double near_one = 1 + (unit - 0.5) * std::ldexp(1.0, -(i % 50));
    for (const double x : {unit, wide, near_one}) {
      ASSERT_LE(ulps_apart(portable::log(x), std::log(x)), 2) << x;
    }
  }
}

TEST(PortableMath, LogAtTheEdges) {
  EXPECT_EQ(portable::log(1), 0);
  EXPECT_EQ(portable::log(0), -infinity);
  EXPECT_EQ(portable::log(infinity), infinity);
  EXPECT_TRUE(std::isnan(portable::log(-1)));
  EXPECT_TRUE(std::isnan(portable::log(std::nan(""))));
  const double tiniest = std::numeric_limits<double>::denorm_min();
  EXPECT_LE(ulps_apart(portable::log(tiniest), std::log(tiniest)), 1);
}

TEST(PortableMath, ExpAgreesWithTheStandardLibrary) {
  for (int i = 1; i < samples; ++i) {
    const double unit = spread(i) - 0.5;
    for (const double x : {unit, unit * 20, unit * 1400}) {
      ASSERT_LE(ulps_apart(portable::exp(x), std::exp(x)), 2) << x;
    }
  }
}

TEST(PortableMath, ExpAtTheEdges) {
  EXPECT_EQ(portable::exp(0), 1);
  EXPECT_EQ(portable::exp(710), infinity);
  EXPECT_EQ(portable::exp(infinity), infinity);
  EXPECT_EQ(portable::exp(-746), 0);
  EXPECT_EQ(portable::exp(-infinity), 0);
  EXPECT_TRUE(std::isnan(portable::exp(std::nan(""))));
  EXPECT_EQ(portable::exp(-745), std::numeric_limits<double>::denorm_min());
  EXPECT_LE(ulps_apart(portable::exp(-720), std::exp(-720.0)), 1);  // subnormal
  EXPECT_LE(ulps_apart(portable::exp(709.7), std::exp(709.7)), 1);
}

TEST(PortableMath, SinAndCosAgreeWithTheStandardLibrary) {
  for (int i = 1; i < samples; ++i) {
    const double unit = 2 * spread(i) - 1;
#ifdef __MINGW32__  // its library loses digits far from 0 and near zero crossings: cos(pi / 2) is off by
                    // 1e-20
    const double arguments[] = {unit};
#else
    const double near_zero_crossing = i * 1.57079632679489661923;
    const double arguments[] = {unit, unit * 10, unit * 1e6, near_zero_crossing};
#endif
    for (const double x : arguments) {
      ASSERT_LE(ulps_apart(portable::sin(x), std::sin(x)), 2) << x;
      ASSERT_LE(ulps_apart(portable::cos(x), std::cos(x)), 2) << x;
    }
  }
}

TEST(PortableMath, SinAndCosAtTheEdges) {
  EXPECT_EQ(portable::sin(0), 0);
  EXPECT_TRUE(std::signbit(portable::sin(-0.0)));
  EXPECT_EQ(portable::cos(0), 1);
  for (const double outside : {portable::max_angle * 1.001, -1e9, infinity, std::nan("")}) {
    EXPECT_TRUE(std::isnan(portable::sin(outside))) << outside;
    EXPECT_TRUE(std::isnan(portable::cos(outside))) << outside;
  }
}

TEST(PortableMath, PowAgreesWithTheStandardLibrary) {
  for (int i = 1; i < samples; ++i) {
    const double unit = spread(i);
    const double x = std::ldexp(1 + unit, i % 200 - 100);
    const double largest_exponent = 700 / std::max(1e-3, std::fabs(std::log(x)));
    for (const double y : {1.0 / 3, 2.4, 1 / 2.4, (2 * spread(7 * i) - 1) * largest_exponent}) {
      ASSERT_LE(ulps_apart(portable::pow(x, y), std::pow(x, y)), 2) << x << " ^ " << y;
    }
  }
}

TEST(PortableMath, PowAtTheEdges) {
  EXPECT_EQ(portable::pow(0, 2.4), 0);
  EXPECT_EQ(portable::pow(5, 0), 1);
  EXPECT_EQ(portable::pow(1, 1e300), 1);
  EXPECT_EQ(portable::pow(1.0000001, 1e300), infinity);
  EXPECT_EQ(portable::pow(0.9999999, 1e300), 0);
  EXPECT_EQ(portable::pow(2, 1023), 0x1p1023);
  EXPECT_EQ(portable::pow(2, -1074), 0x1p-1074);
  EXPECT_TRUE(std::isnan(portable::pow(-1, 2)));
  EXPECT_TRUE(std::isnan(portable::pow(0, -1)));
  EXPECT_TRUE(std::isnan(portable::pow(std::nan(""), 2)));
}

// The promise itself: these bits on every compiler, processor and optimisation level.
TEST(PortableMath, BitsAreTheSameEverywhere) {
  const auto bits = [](double x) { return std::bit_cast<std::uint64_t>(x); };
  EXPECT_EQ(bits(portable::log(0.1)), 0xc0026bb1bbb55515U);
  EXPECT_EQ(bits(portable::log(2)), 0x3fe62e42fefa39efU);
  EXPECT_EQ(bits(portable::log(3e-310)), 0xc086459f44103e87U);
  EXPECT_EQ(bits(portable::log(1.0000001)), 0x3e7ad7f2847b6492U);
  EXPECT_EQ(bits(portable::exp(1)), 0x4005bf0a8b14576aU);
  EXPECT_EQ(bits(portable::exp(-0.3)), 0x3fe7b4c869c37c05U);
  EXPECT_EQ(bits(portable::exp(100.25)), 0x48f8c39b9134bac4U);
  EXPECT_EQ(bits(portable::sin(1)), 0x3feaed548f090ceeU);
  EXPECT_EQ(bits(portable::sin(3.141592653589793)), 0x3ca1a62633145c07U);
  EXPECT_EQ(bits(portable::sin(-123456.789)), 0x3feff50e60ab53f9U);
  EXPECT_EQ(bits(portable::cos(1)), 0x3fe14a280fb5068cU);
  EXPECT_EQ(bits(portable::cos(1.5707963267948966)), 0x3c91a62633145c07U);
  EXPECT_EQ(bits(portable::cos(999999.5)), 0x3fe4efdfc640fc4dU);
  EXPECT_EQ(bits(portable::pow(0.5, 2.4)), 0x3fc8406003b2ae5dU);
  EXPECT_EQ(bits(portable::pow(0.2, 1.0 / 3)), 0x3fe2b6b5edf6b54aU);
  EXPECT_EQ(bits(portable::pow(1.5, 1234.5)), 0x6d11958d9ba03becU);
}

// One number for half a million results, so that a change of any last bit shows.
TEST(PortableMath, HashOfManyResultsIsTheSameEverywhere) {
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a, 64 bits at a time
  const auto mix = [&](double x) { hash = (hash ^ std::bit_cast<std::uint64_t>(x)) * 1099511628211U; };
  for (int i = 1; i < samples; ++i) {
    const double unit = spread(i);
    mix(portable::log(unit));
    mix(portable::exp(unit * 100 - 50));
    mix(portable::sin(unit * 1000));
    mix(portable::cos(unit * 1000));
    mix(portable::pow(unit, 2.4));
  }
  EXPECT_EQ(hash, 0x595360fc9d5e2887U);
}

}  // namespace
}  // namespace ungrain
