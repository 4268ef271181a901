// Chooses the kernel for a radius of a square window: changes the time, and results only by rounding. Chosen
// on an H200, images of 0.07 to 20 Mpixel; the README has the figures.
#pragma once

namespace ungrain::tuning {

// Number of pixels from which on each kernel serves an image. The streamed and the symmetric kernel do less
// work for each pixel than the one-sided one, but their blocks are tall: with few pixels the one-sided kernel
// keeps the GPU busier.
inline constexpr long long never = -1;

constexpr long long streamed_from(int channels, int radius) {
  if (radius != 1) return never;
  return channels == 1 ? 3'000'000 : 15'000'000;
}

constexpr long long symmetric_from(int channels, int radius) {
  if (channels != 1) return never;
  switch (radius) {
    case 4:
      return 5'000'000;
    case 5:
    case 6:
      return 3'000'000;
    case 7:
    case 8:
      return 1'800'000;
    case 9:
    case 10:
    case 11:
    case 12:
    case 13:
      return 5'000'000;
    case 14:
    case 15:
      return 7'000'000;
    default:
      return never;
  }
}

constexpr bool serves(long long from, long long pixels) { return from != never && pixels >= from; }

// How many times as many blocks as the GPU holds at once. Many, so that it waits less for the last few; or
// few, because every block is compared with `around` bands above and below its own. `bands` is each block's
// number if the GPU held all.
constexpr int symmetric_rounds(int around, int bands) {
  constexpr int few = 20;
  if (around == 1) return 6;
  return bands < few ? 1 : 3;
}

}  // namespace ungrain::tuning
