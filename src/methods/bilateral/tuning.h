// Which kernel serves which radius of a gray square window: changes time, never more than rounding. Chosen on
// an H200 at 20 Mpixel; the README has the figures.
#pragma once

namespace ungrain::tuning {

inline constexpr int streamed_to = 2;
inline constexpr int symmetric_from = 6;
inline constexpr int symmetric_to = 8;

}  // namespace ungrain::tuning
