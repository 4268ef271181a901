// Copies blocks of 8 x 8 pixels of packed integers, all channels at once.
#pragma once

#include "ungrain/image.h"

namespace ungrain {

// Of u8 or u16 pixels of 1, 3 or 4 channels, which begin at `rows`, the first (1 channel) or the first three
// channels, one 8 x 8 block of floats after the other.
void copy_packed_block(PixelType type, const void* const* rows, int pixel_channels, float* to);

}  // namespace ungrain
