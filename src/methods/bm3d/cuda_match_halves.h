// The search for similar patches by products of halves.
#pragma once

#include "methods/bm3d/cuda_match.h"

namespace ungrain::cuda {

// Whether they serve for a call on the current GPU.
bool halves_suit(const Bm3dMatchCall& call);
// Floats, whatever the GPU; 0 where no GPU would do.
std::size_t halves_match_scratch(const Bm3dMatchCall& call);
// References that it leaves to a search by floats have found 0: where pixels are too far from the middle for
// halves, or where so few candidates lie in the window that nothing bounds their distances.
void launch_halves_match(const Bm3dMatchCall& call, Stream stream);

}  // namespace ungrain::cuda
