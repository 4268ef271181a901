// log, exp, sin, cos and pow with the same bits on every IEEE 754 platform. The standard library's differ
// from one system to the next in the last place, and a committed hash of an image would differ with them.
//
// Only + - * /, std::floor and operations on the bits are used, each of which IEEE 754 or C++ defines
// exactly. That holds as long as the compiler neither fuses a product into a sum (-ffp-contract=off) nor
// reorders (-ffast-math). Measured against 113-bit arithmetic the error is below 1 unit in the last place.
#pragma once

#include <array>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#ifdef __FAST_MATH__
#error "portable_math.h needs IEEE arithmetic: compile without -ffast-math"
#endif

namespace ungrain::portable {

// 16 is 0 for float and double; it concerns only half precision.
static_assert(FLT_EVAL_METHOD == 0 || FLT_EVAL_METHOD == 16, "double must be computed in double");
static_assert(std::numeric_limits<double>::is_iec559);

namespace detail {

// ln 2 and pi / 2 as sums. The leading parts have so few bits that their products with the whole numbers of
// the argument reductions (up to 11 and 20 bits) are exact.
inline constexpr double ln2_head = 0x1.62e42fefa2p-1;
inline constexpr double ln2_tail = 0x1.9ef35793c7673p-41;
inline constexpr double half_pi_head = 0x1.921fb544p+0;
inline constexpr double half_pi_middle = 0x1.0b4611a6p-34;
inline constexpr double half_pi_tail = 0x1.3198a2e037073p-69;
inline constexpr double third_tail = 0x1.5555555555555p-56;  // 1/3 less its nearest double

// c[0] + c[1] x + c[2] x^2 ...
template <std::size_t N>
constexpr double polynomial(double x, const std::array<double, N>& c) {
  double sum = c[N - 1];
  for (std::size_t i = N - 1; i-- > 0;) sum = sum * x + c[i];
  return sum;
}

// A number of about 106 bits: head is the nearest double, tail the rest.
struct Pair {
  double head;
  double tail;
};

// a + b without error, where |a| >= |b|.
constexpr Pair exact_sum_ordered(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

constexpr Pair exact_sum(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}

// a * b without error (Dekker): each factor is cut in two halves whose products fit a double.
constexpr Pair exact_product(double a, double b) {
  const auto upper_half = [](double x) {
    const double shifted = x * 0x1.0000002p+27;
    return shifted - (shifted - x);
  };
  const double a_up = upper_half(a);
  const double a_low = a - a_up;
  const double b_up = upper_half(b);
  const double b_low = b - b_up;
  const double product = a * b;
  return {product, ((a_up * b_up - product) + a_up * b_low + a_low * b_up) + a_low * b_low};
}

constexpr Pair multiply(Pair a, Pair b) {
  const Pair heads = exact_product(a.head, b.head);
  return exact_sum_ordered(heads.head, heads.tail + (a.head * b.tail + a.tail * b.head));
}

constexpr Pair add(Pair a, Pair b) {
  const Pair heads = exact_sum(a.head, b.head);
  return exact_sum_ordered(heads.head, heads.tail + (a.tail + b.tail));
}

// x = mantissa * 2^exponent with the mantissa in [sqrt(1/2), sqrt(2)); x is positive and finite.
struct ScaledNumber {
  double mantissa;
  double exponent;  // a whole number
};

inline ScaledNumber split_exponent(double x) {
  std::int64_t exponent = 0;
  if (x < DBL_MIN) {  // subnormal
    x *= 0x1p54;
    exponent = -54;
  }
  const auto bits = std::bit_cast<std::uint64_t>(x);
  constexpr auto sqrt_half = std::bit_cast<std::uint64_t>(0x1.6a09e667f3bcdp-1);
  const std::int64_t shift = static_cast<std::int64_t>(bits - sqrt_half) >> 52;
  const std::uint64_t mantissa = bits - (static_cast<std::uint64_t>(shift) << 52U);
  return {std::bit_cast<double>(mantissa), static_cast<double>(exponent + shift)};
}

// 2^n for n within the normal numbers.
inline double power_of_two(std::int64_t n) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52U);
}

// With s = (m - 1) / (m + 1): log m = 2 atanh s = 2 s (1 + z (1/3 + z/5 + z^2/7 ...)), z = s^2 < 0.0295.
// These are the coefficients from 1/5 on; the first one left out adds less than 3e-20.
inline constexpr std::array<double, 11> atanh_series = {1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11,
                                                        1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19,
                                                        1.0 / 21, 1.0 / 23, 1.0 / 25};

// log x to about 2^-70, so that pow may multiply it by a large exponent.
inline Pair log_pair(double x) {
  const auto [mantissa, exponent] = split_exponent(x);
  const double f = mantissa - 1;
  const Pair sum = exact_sum_ordered(2, f);
  const double quotient = f / sum.head;
  const Pair back = exact_product(quotient, sum.head);
  const Pair s =
      exact_sum_ordered(quotient, (((f - back.head) - back.tail) - quotient * sum.tail) / sum.head);
  const Pair z = multiply(s, s);
  const double rest = z.head * polynomial(z.head, atanh_series);
  const Pair series = add({1.0 / 3, third_tail}, {rest, 0});
  const Pair cubic = multiply(multiply(s, z), series);
  const Pair log_mantissa = add({2 * s.head, 2 * s.tail}, {2 * cubic.head, 2 * cubic.tail});
  return add(exact_sum(exponent * ln2_head, exponent * ln2_tail), log_mantissa);
}

// exp(x + tail), |tail| far below |x|.
inline double exp_sum(double x, double tail) {
  if (x != x) return x;
  if (x > 710) return std::numeric_limits<double>::infinity();
  if (x < -746) return 0;
  const double n = std::floor(x * 0x1.71547652b82fep+0 + 0.5);  // x / ln 2
  const double r = (x - n * ln2_head) - (n * ln2_tail - tail);  // |r| < 0.347
  constexpr std::array<double, 12> series = {
      1.0 / 2,     1.0 / 6,      1.0 / 24,      1.0 / 120,      1.0 / 720,       1.0 / 5040,
      1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
  const double value = 1 + (r + r * r * polynomial(r, series));
  // Two factors, so that neither leaves the normal numbers where the result is subnormal or close to
  // infinity.
  const auto whole = static_cast<std::int64_t>(n);
  const std::int64_t first = whole / 2;
  return value * power_of_two(first) * power_of_two(whole - first);
}

// x = quadrant * pi/2 + head + tail, |head| <= pi/4.
struct ReducedAngle {
  double head;
  double tail;
  unsigned quadrant;  // 0 to 3
};

inline ReducedAngle reduce_angle(double x) {
  const double n = std::floor(x * 0x1.45f306dc9c883p-1 + 0.5);  // x / (pi / 2)
  const Pair first = exact_sum(x - n * half_pi_head, -(n * half_pi_middle));
  const Pair both = exact_sum(first.head, first.tail - n * half_pi_tail);
  return {both.head, both.tail, static_cast<unsigned>(static_cast<std::int64_t>(n) & 3)};
}

// sin(x + tail) and cos(x + tail) for |x| <= pi/4, the tail being a last digit of x: to first order in it.
inline double sin_near_zero(double x, double tail) {
  constexpr std::array<double, 8> series = {
      -1.0 / 6,        1.0 / 120,        -1.0 / 5040,          1.0 / 362880,
      -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000};
  const double z = x * x;
  return x + (tail * (1 - 0.5 * z) + x * z * polynomial(z, series));
}

inline double cos_near_zero(double x, double tail) {
  constexpr std::array<double, 7> series = {
      1.0 / 24,        -1.0 / 720,         1.0 / 40320,         -1.0 / 3628800,
      1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000};
  const double z = x * x;
  const double half = 0.5 * z;
  const double parabola = 1 - half;
  const double lost = (1 - parabola) - half;  // in that subtraction
  return parabola + (lost + (z * z * polynomial(z, series) - x * tail));
}

}  // namespace detail

// sin and cos take |x| up to this, more than 1e6; beyond it they return NaN rather than a wrong digit.
inline constexpr double max_angle = 0x1p20;

// Every x: -infinity at 0, NaN below.
inline double log(double x) {
  if (!(x > 0))
    return x == 0 ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  if (x == std::numeric_limits<double>::infinity()) return x;
  const auto [mantissa, exponent] = detail::split_exponent(x);
  const double f = mantissa - 1;
  const double s = f / (2 + f);
  const double z = s * s;
  const double rest = 2 * z * (1.0 / 3 + z * detail::polynomial(z, detail::atanh_series));
  // 2 s + s * rest, where 2 s is written f - s * f: f has no error.
  return exponent * detail::ln2_head + (f - (s * (f - rest) - exponent * detail::ln2_tail));
}

// Every x: 0 and infinity where the result leaves the range of double.
inline double exp(double x) { return detail::exp_sum(x, 0); }

inline double sin(double x) {
  if (!(x >= -max_angle && x <= max_angle)) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0) return x;  // keeps the sign of -0
  const auto [head, tail, quadrant] = detail::reduce_angle(x);
  const double value =
      (quadrant & 1U) != 0 ? detail::cos_near_zero(head, tail) : detail::sin_near_zero(head, tail);
  return (quadrant & 2U) != 0 ? -value : value;
}

inline double cos(double x) {
  if (!(x >= -max_angle && x <= max_angle)) return std::numeric_limits<double>::quiet_NaN();
  const auto [head, tail, quadrant] = detail::reduce_angle(x);
  const double value =
      (quadrant & 1U) != 0 ? detail::sin_near_zero(head, tail) : detail::cos_near_zero(head, tail);
  return quadrant == 1 || quadrant == 2 ? -value : value;
}

// x^y for x > 0 and finite y; also 0^y for y > 0. NaN for anything else.
inline double pow(double x, double y) {
  if (y == 0) return 1;
  if (x == 0 && y > 0) return 0;
  if (!(x > 0 && x <= DBL_MAX) || !(y >= -DBL_MAX && y <= DBL_MAX))
    return std::numeric_limits<double>::quiet_NaN();
  const detail::Pair log_x = detail::log_pair(x);
  const double estimate = y * log_x.head;
  // Beyond every result, and where the exact product below would overflow on its way.
  if (!(estimate > -1000 && estimate < 1000) || y > 0x1p900 || y < -0x1p900)
    return detail::exp_sum(estimate, 0);
  const detail::Pair product = detail::multiply(log_x, {y, 0});
  return detail::exp_sum(product.head, product.tail);
}

}  // namespace ungrain::portable
