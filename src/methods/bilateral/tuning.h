// Chooses the kernel for a radius of a square window: changes the time, and results only by rounding. Chosen
// on an H200, images of 0.07 to 20 Mpixel; the README has the figures.
#pragma once

namespace ungrain::tuning {

// Number of pixels from which on each kernel serves an image. The others do less work for each pixel than the
// one-sided one, but their blocks are tall or leave sums to be joined: with few pixels the one-sided kernel
// keeps the GPU busier.
inline constexpr long long never = -1;

constexpr long long streamed_from(int channels, int radius) {
  if (radius != 1) return never;
  return channels == 1 ? 3'000'000 : 15'000'000;
}

constexpr long long symmetric_from(int channels, int radius) {
  if (radius < 4 || radius > 15) return never;
  if (channels == 1) return radius == 10 ? 3'000'000 : 1'800'000;
  return radius == 4 ? 6'000'000 : radius < 6 ? 3'000'000 : 1'800'000;
}

// The search for pairs (cuda/patch_pairs.h), for one channel.
constexpr long long pairs_from(int radius) { return radius < 16 ? never : 1'800'000; }

constexpr bool serves(long long from, long long pixels) { return from != never && pixels >= from; }

}  // namespace ungrain::tuning
