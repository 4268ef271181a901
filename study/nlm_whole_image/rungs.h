// The nlm-whole-image ladder's rungs, in the order they are shown.
#pragma once

#include "study/rung.h"

namespace ungrain::study {

Rung nlm_whole_image_symmetric();
Rung nlm_whole_image_global_memory();
Rung nlm_whole_image_shared_memory();
Rung nlm_whole_image_own_patch();
Rung nlm_whole_image_overlapping();

}  // namespace ungrain::study
