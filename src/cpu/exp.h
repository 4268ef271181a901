// Weights are powers of 2: exponents of e times this.
#pragma once

namespace ungrain {

inline constexpr double log2_e = 1.4426950408889634;

}  // namespace ungrain
