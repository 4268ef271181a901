// Chooses the kernels for a radius of a square window: changes the time, and results only by rounding. Chosen
// on an H200, images of 0.26 to 20 Mpixel; the README has the figures.
#pragma once

namespace ungrain::tuning {

inline constexpr long long never_in_two_kernels = -1;

// Number of pixels from which on the first pass has a kernel of its own, which finds each weight once. Its
// blocks are tall, and begin with rows above their own: with few pixels one kernel for both passes is faster.
// Three channels gain more, because a pair's differences are found once, too.
constexpr long long in_two_kernels_from(int channels, int radius) {
  if (radius < 4 || radius > 10) return never_in_two_kernels;
  if (channels == 1) return radius == 4 ? 10'000'000 : 8'000'000;
  if (channels != 3) return never_in_two_kernels;
  if (radius == 4) return 4'000'000;
  return radius < 8 ? 1'800'000 : 1'000'000;
}

}  // namespace ungrain::tuning
