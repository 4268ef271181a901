// The search for similar patches by products of halves.
#pragma once

#include "groups/cuda_match.h"

namespace ungrain::cuda::halves_match {

// Whether the search supports a call on the current GPU.
bool suits(const GroupMatchCall& call);
// Floats of scratch memory, for any GPU; 0 if no GPU supports the call.
std::size_t scratch_floats(const GroupMatchCall& call);
// References left to the search by floats have `found` 0: those with pixels too far from the middle for
// halves, or with fewer candidates in the window than are wanted.
void launch_match(const GroupMatchCall& call, Stream stream);

}  // namespace ungrain::cuda::halves_match
