// The adaptive bilateral ladder's rungs, in the order they are shown.
#pragma once

#include <vector>

#include "study/rung.h"

namespace ungrain::study {

Rung adaptive_bilateral_sequential();
Rung adaptive_bilateral_naive();
std::vector<Rung> adaptive_bilateral_shared_image();

}  // namespace ungrain::study
