// The noise of a camera from frames that were taken to show it.
#pragma once

#include <span>

#include "ungrain/image.h"
#include "ungrain/noise_model.h"

namespace ungrain {

// Frames of one scene in which nothing moves, at least two, all of one spec: what differs is noise. The more
// levels the scene has, the more of the model is measured. Every block of 8 x 8 pixels counts, flat or not.
NoiseModel noise_of_still_frames(std::span<const ConstImageView> frames);

// Frames that show nothing but one even area each: a dark frame (the lens covered), a flat frame (a white
// wall out of focus). Each gives the noise at its own level; beyond the brightest the variance goes on as a
// straight line.
NoiseModel noise_of_even_frames(std::span<const ConstImageView> frames);

}  // namespace ungrain
