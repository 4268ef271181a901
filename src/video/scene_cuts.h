// Finds the cuts of a clip by the outlines of its frames.
#pragma once

#include <optional>
#include <vector>

#include "ungrain/video.h"

namespace ungrain {

// How much of one frame's picture the other one does not show: the variance of its block means that a change
// of brightness and contrast leaves unexplained, and that as a share of their whole variance.
struct FrameDifference {
  double variance = 0;
  double share = 0;
  int blocks = 1;
};
FrameDifference frame_difference(const FrameOutline& a, const FrameOutline& b);

// Whether a cut lies where the difference to the frame before is `here`, after the difference `before` and
// before the difference `after`; empty: there is no such frame. A cut stands alone: in a pan or a fade the
// differences beside it are alike, and a flash of one frame makes two.
bool is_cut(const std::optional<FrameDifference>& before, const FrameDifference& here,
            const std::optional<FrameDifference>& after);

}  // namespace ungrain
