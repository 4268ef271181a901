// What this machine can do at most, measured: the rate of multiply-adds and of copying. By the clocks of the
// threads themselves, so that a busy machine's ceilings are not lower.
#pragma once

#include <cstddef>

namespace ungrain::bench {

// Multiply-adds of single floats a second (each two floating-point operations), in units of 1e9, on `threads`
// threads with the vector instructions that are in use (cpu/simd.h).
double multiply_adds_per_ns(int threads);

// Bytes read plus bytes written a second, in units of 1e9, by a copy of `bytes` on `threads` threads or on
// one, whichever is faster: buffers that fit a cache are copied faster than memory allows.
double copy_bytes_per_ns(std::size_t bytes, int threads);

}  // namespace ungrain::bench
