// The search for similar patches by products of halves.
#pragma once

#include "methods/bm3d/cuda_match.h"

namespace ungrain::cuda::halves_match {

// Whether they serve for a call on the current GPU.
bool suits(const Bm3dMatchCall& call);
// Floats, whatever the GPU; 0 where no GPU would do.
std::size_t scratch_floats(const Bm3dMatchCall& call);
// References that it leaves to a search by floats have found 0: where pixels are too far from the middle for
// halves, or where so few candidates lie in the window that nothing bounds their distances.
void launch_match(const Bm3dMatchCall& call, Stream stream);

}  // namespace ungrain::cuda::halves_match
