// Which kernel serves which radius of a square window: changes time, never more than rounding. Chosen on an
// H200 at 1080p and 20 Mpixel; the README has the figures.
#pragma once

namespace ungrain::tuning {

// Where fewer, the one-sided kernel keeps the GPU busier than the others, whose blocks are tall.
inline constexpr long long some_pixels = 600'000;

// Whether the streamed kernel serves an image of that size.
constexpr bool streamed_serves(int channels, int radius, long long pixels) {
  if (radius == 1 && channels == 1) return true;
  return radius <= 2 && pixels >= some_pixels;
}

// Whether the symmetric kernel does.
constexpr bool symmetric_serves(int channels, int radius, long long pixels) {
  constexpr long long many = 8'000'000;
  if (pixels < some_pixels) return false;
  if (channels == 3) return (radius == 3 || radius == 5 || radius == 7) && pixels >= many;
  if ((radius >= 6 && radius <= 8) || (radius >= 12 && radius <= 15)) return true;
  return radius >= 4 && radius <= 15 && pixels >= many;
}

// How many times as many blocks as the GPU holds at once: many, so that none of it waits long for the last
// few; or few, because every block meets some bands besides its own, `around` above and below. `bands` is
// what each would have if the GPU held all.
constexpr int symmetric_rounds(int around, int bands) {
  constexpr int few = 12;
  if (around == 1) return 6;
  return bands < few ? 1 : 3;
}

}  // namespace ungrain::tuning
