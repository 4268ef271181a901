// NVIDIA's own bilateral filter (NPP), where its library was found.
#pragma once

#include <functional>

#include "bench/pictures.h"

namespace ungrain::bench {

bool have_npp();

// Puts nppiFilterBilateralGaussBorder on the default stream (square window, replicated border, sigma_range a
// tenth of the white level, sigma_space half the radius); false where NPP refuses. Empty where there is no
// NPP.
std::function<bool()> npp_bilateral(const ConstImageView& in, const ImageView& out, int radius);

}  // namespace ungrain::bench
