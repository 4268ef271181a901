// Measures a camera's noise from frames that were taken for this purpose.
#pragma once

#include <span>

#include "ungrain/export.h"
#include "ungrain/image.h"
#include "ungrain/noise_model.h"

UNGRAIN_API_BEGIN
namespace ungrain {

// At least two frames of one scene in which nothing moves, all of one spec: their differences are noise. The
// more levels the scene has, the more of the model is measured. Every block of 8 x 8 pixels counts, flat or
// not.
NoiseModel noise_of_still_frames(std::span<const ConstImageView> frames);

// Frames that show one even area each: a dark frame (the lens covered), a flat frame (a white wall out of
// focus). Each frame gives the noise at its own level; above the brightest level the variance is extrapolated
// as a straight line.
NoiseModel noise_of_even_frames(std::span<const ConstImageView> frames);

}  // namespace ungrain
UNGRAIN_API_END
