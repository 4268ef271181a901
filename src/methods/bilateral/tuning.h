// Which kernel serves which radius of a gray square window: changes time, never more than rounding. Chosen on
// an H200 at 1080p and 20 Mpixel; the README has the figures.
#pragma once

namespace ungrain::tuning {

inline constexpr int streamed_to = 2;

// Whether the symmetric kernel serves an image of that size: its blocks are tall, and where there are few of
// them the one-sided kernel keeps the GPU busier.
constexpr bool symmetric_serves(int radius, long long pixels) {
  constexpr long long many = 8'000'000;
  if (radius >= 6 && radius <= 8) return true;
  return radius >= 4 && radius <= 15 && pixels >= many;
}

}  // namespace ungrain::tuning
