// Exponentials for weights, in a form that compilers vectorise.
#pragma once

#include <bit>
#include <cstdint>

namespace ungrain {

inline constexpr double log2_e = 1.4426950408889634;

// 2^x for x <= 0; relative error below 2e-7, and 0 below 2^-126.
inline float exp2_negative(float x) {
  constexpr float lowest = -126.0F;
  constexpr float round_shift =
      12582912.0F;  // 1.5 * 2^23: adding it rounds to a whole number in the low bits
  const float bounded = x > lowest ? x : lowest;
  const float shifted = bounded + round_shift;
  const float f = bounded - (shifted - round_shift);  // from -1/2 to 1/2
  // The series of 2^f up to its sixth power: coefficients ln(2)^k / k!.
  float p = 1.5403530e-4F;
  p = p * f + 1.3333558e-3F;
  p = p * f + 9.6181291e-3F;
  p = p * f + 5.5504109e-2F;
  p = p * f + 2.4022651e-1F;
  p = p * f + 6.9314718e-1F;
  p = p * f + 1.0F;
  const std::uint32_t exponent = std::bit_cast<std::uint32_t>(shifted) << 23U;
  const auto power = std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) + exponent);
  return x > lowest ? power : 0.0F;
}

}  // namespace ungrain
