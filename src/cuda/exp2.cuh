// Powers of two of exponents that are 0 or less, as weights have.
#pragma once

namespace ungrain::cuda {

__device__ inline float exp2_fast(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

// The same without the special-function unit, in nine or ten instructions, for x of at most 128. Relative
// error at most 7.5e-5 for degree 3, 3e-6 for degree 4. Below about 2^-126 it is 0, or not much more than
// that.
template <int Degree>
__device__ float exp2_by_polynomial(float x) {
  static_assert(Degree == 3 || Degree == 4);
  constexpr float to_integer = 12582912.0F;  // 1.5 * 2^23: the last bit of the sum is worth 1
  // Where `part` is 0 the cubic is just below 1. Its exponent is then -1, and -127 more would overflow.
  const float bounded = fmaxf(x, Degree == 3 ? -126.0F : -127.0F);
  const float shifted = bounded + to_integer;
  const float part = bounded - (shifted - to_integer);
  float power;
  if constexpr (Degree == 3) {
    power = fmaf(0.05517167F, part, 0.24261113F);
    power = fmaf(power, part, 0.69326099F);
    power = fmaf(power, part, 0.99992807F);
  } else {
    power = fmaf(0.0095828698F, part, 0.055906468F);
    power = fmaf(power, part, 0.24024099F);
    power = fmaf(power, part, 0.69312419F);
    power = fmaf(power, part, 1.0F);
  }
  return __uint_as_float(__float_as_uint(power) + (__float_as_uint(shifted) << 23U));
}

}  // namespace ungrain::cuda
