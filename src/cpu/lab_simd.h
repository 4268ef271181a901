// sRGB to CIE-Lab and back in float, for rows of pixels.
#pragma once

namespace ungrain {

// `pixels` of three planes each, in units of `white`. There and back, values stay within 3e-6 of white, also
// half of white beyond black and white. Values beyond 1e12 times white are clamped.
void lab_from_rgb_row(const float* const (&rgb)[3], float* const (&lab)[3], int pixels, double white);
void rgb_from_lab_row(const float* const (&lab)[3], float* const (&rgb)[3], int pixels, double white);

}  // namespace ungrain
