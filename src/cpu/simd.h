// The vector instructions that the CPU versions use. Sources that are compiled once for each instruction set
// end in _simd.cpp and follow Highway's pattern (hwy/foreach_target.h); the best set that the processor has
// is chosen at their first call.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ungrain {

// The sets that this library was compiled for and this processor has, best first: "AVX3", "AVX2", "NEON", …
std::vector<std::string> simd_targets();

// Those with dot products of bytes, with which bm3d and ridge search: "AVX3_DL", "AVX3_VNNI", "AVX2_VNNI",
// "NEON_DOT".
std::vector<std::string> simd_variants();

// Switches every thread to this set or variant; empty: the best. For tests and benchmarks.
void use_simd_target(std::string_view name);

// Whether this processor has such dot products in addition to Highway's `target` (AVX3, AVX2 or NEON), and
// they may be used.
bool byte_dots_in_use(std::int64_t target);

}  // namespace ungrain
