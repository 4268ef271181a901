// Filters in Lab of values far above white.
//
// The fast versions keep Lab in floats. Linear light grows with the power 2.4 of a value, and a dark channel
// beside a bright one is a small difference of large numbers: at 1000 times white, one step of a float moves
// a black channel by twice white. Pixels that have such a value in their window are filtered once more, by
// the reference, which computes in double. The values of a pixel's window alone decide, so that the result
// does not depend on bands and regions.
#pragma once

#include "core/method.h"

namespace ungrain {

// Filters those pixels of `call.out` with `exact`, a stage of the reference from rgb to rgb with the reach of
// the call. Planes 1 of the call are the rgb values before the pass.
void filter_far_pixels(const StageCall& call, const Stage& exact, double white, bool wraps);

}  // namespace ungrain
