// How pixels become the integers that are compared in the search for similar patches.
#pragma once

namespace ungrain {

// round((value - middle) / step), clamped to the ends.
struct MatchScale {
  float middle = 0;
  float inverse_step = 1;
  bool deep = false;  // more than 8 bits, in 16
  float most = 127;   // the ends in both directions
};

}  // namespace ungrain
