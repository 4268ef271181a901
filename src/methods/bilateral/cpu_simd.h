// The vectorised part of bilateral on the CPU.
#pragma once

#include "cpu/window_tile.h"

namespace ungrain {

// `eight_bits`: the image has no more, so that coarser weights suffice.
void bilateral_tile(const WindowTile& kernel, bool eight_bits, const StageCall& call, const Rect& tile,
                    int first_channel, float* memory);

}  // namespace ungrain
