// The nlm-bilateral-whole-image ladder's rungs, in the order they are shown.
#pragma once

#include <vector>

#include "study/rung.h"

namespace ungrain::study {

Rung nlm_bilateral_whole_image_sequential();
Rung nlm_bilateral_whole_image_naive();
std::vector<Rung> nlm_bilateral_whole_image_tables();

}  // namespace ungrain::study
