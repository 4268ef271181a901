// What the chip can do at most, measured: every row of a benchmark is held against one of these.
#pragma once

#include <cstddef>

namespace ungrain::bench {

struct Rates {
  double exponentials = 0;   // ex2.approx.f32, a second
  double multiply_adds = 0;  // FP32 instructions, a second
  double products = 0;       // multiply-adds of halves by mma.sync, summed in FP32, a second
};

Rates measure_rates();

// Bytes read and written a second by a copy within the GPU's memory that reads `bytes`: small ones stay in
// its cache.
double measure_copy(std::size_t bytes);

}  // namespace ungrain::bench
