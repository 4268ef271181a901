// What the library itself needs besides the rows of ungrain/convert.h.
#pragma once

#include <cstdint>
#include <optional>

#include "ungrain/convert.h"

namespace ungrain {

// Replaces every NaN and infinity of `values` (row y, channel) by the mean of the finite samples in the
// smallest square window around it that has any, radius up to fill_radius, else by 0. Reads `view`, which
// must hold fill_radius rows above and below as far as the image goes. `values` are `count` pixels from
// `first` on, or all of the row. Returns how many it replaced.
inline constexpr int fill_radius = 8;
std::int64_t fill_nonfinite(const ConstImageView& view, int y, int channel, float* values, int first = 0,
                            std::optional<int> count = {});

}  // namespace ungrain
