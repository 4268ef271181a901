// The vectorised part of bilateral on the CPU.
#pragma once

#include "cpu/window_tile.h"

namespace ungrain {

void bilateral_tile(const WindowTile& kernel, const StageCall& call, const Rect& tile, int first_channel,
                    float* memory);

}  // namespace ungrain
