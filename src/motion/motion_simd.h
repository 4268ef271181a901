// The innermost part of the search for motion on a CPU.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ungrain {

// The sum of absolute differences of two blocks of match pixels.
std::uint32_t block_difference(const std::uint16_t* a, std::ptrdiff_t a_stride, const std::uint16_t* b,
                               std::ptrdiff_t b_stride);

}  // namespace ungrain
