// The nlm ladder's rungs, in the order they are shown.
#pragma once

#include <vector>

#include "study/rung.h"

namespace ungrain::study {

Rung nlm_sequential();
std::vector<Rung> nlm_block_a_pixel();
Rung nlm_naive();
Rung nlm_shared_memory();
Rung nlm_own_patch();
Rung nlm_separable_sums();
Rung nlm_symmetric_weights();
std::vector<Rung> nlm_register_blocking();

}  // namespace ungrain::study
