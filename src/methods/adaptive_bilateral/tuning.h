// Chooses the kernels for a radius of a square window: changes the time, and results only by rounding. Chosen
// on an H200, images of 0.26 to 20 Mpixel; the README has the figures.
#pragma once

namespace ungrain::tuning {

// Number of pixels from which on the first pass finds each weight once, in a kernel of its own: its blocks
// are tall, so that with few pixels one kernel for both passes keeps the GPU busier.
inline constexpr long long never_in_two_kernels = -1;

constexpr long long in_two_kernels_from(int channels, int radius) {
  if ((channels != 1 && channels != 3) || radius < 4 || radius > 10) return never_in_two_kernels;
  return 1'800'000;
}

}  // namespace ungrain::tuning
