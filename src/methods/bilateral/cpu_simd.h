// The vectorised part of bilateral on the CPU.
#pragma once

#include "cpu/window_tile.h"

namespace ungrain {

// `eight_bits`: the image has no more, and weights may be that much coarser.
void bilateral_tile(const WindowTile& kernel, bool eight_bits, const StageCall& call, const Rect& tile,
                    int first_channel, float* memory);

}  // namespace ungrain
