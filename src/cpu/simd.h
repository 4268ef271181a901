// Which vector instructions the CPU versions use. Sources that are compiled once for each set of instructions
// end in _simd.cpp and follow Highway's pattern (hwy/foreach_target.h); the best set that the processor has
// is chosen when they are called first.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ungrain {

// The sets that this library was compiled for and this processor has, best first: "AVX3", "AVX2", "NEON", …
std::vector<std::string> simd_targets();

// From now on this set, for every thread; empty: the best. For tests and benchmarks.
void use_simd_target(std::string_view name);

}  // namespace ungrain
