// The nlm-bilateral ladder's rungs, in the order they are shown.
#pragma once

#include <vector>

#include "study/rung.h"

namespace ungrain::study {

Rung nlm_bilateral_sequential();
Rung nlm_bilateral_naive();
std::vector<Rung> nlm_bilateral_tables();

}  // namespace ungrain::study
