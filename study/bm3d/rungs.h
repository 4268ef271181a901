// The bm3d ladder's rungs, in the order they are shown.
#pragma once

#include <string>
#include <vector>

#include "study/rung.h"

namespace ungrain::study {

std::vector<Rung> bm3d_batches();
Rung bm3d_dct();
std::vector<Rung> bm3d_shared_distances();
std::vector<Rung> bm3d_fused();

// Which rungs were left out when this was built, and why; empty: none.
std::string bm3d_left_out();

}  // namespace ungrain::study
