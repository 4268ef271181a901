// The bilateral ladder's rungs, in the order they are shown.
#pragma once

#include <vector>

#include "study/rung.h"

namespace ungrain::study {

Rung bilateral_sequential();
Rung bilateral_naive();
Rung bilateral_constant_memory();
Rung bilateral_shared_memory();
Rung bilateral_padded_shared();
Rung bilateral_tiling();
Rung bilateral_tiling_padded();
Rung bilateral_rolling_tiling();
Rung bilateral_unrolled();
Rung bilateral_unrolled_radius();
Rung bilateral_no_tables();
std::vector<Rung> bilateral_tables();
std::vector<Rung> bilateral_tables_shared_image();
Rung bilateral_byte_table();
Rung bilateral_texture();
Rung bilateral_pair_symmetric();
Rung bilateral_async_copies();
Rung bilateral_dynamic_parallelism();
Rung bilateral_fast_exponential();

}  // namespace ungrain::study
