// sRGB to CIE-Lab and back in float, for rows of pixels.
#pragma once

namespace ungrain {

// `pixels` of three planes each, in units of `white`; there and back they are within 3e-6 of it, half of
// white beyond black and white included. Beyond 1e12 times white values are cut.
void lab_from_rgb_row(const float* const (&rgb)[3], float* const (&lab)[3], int pixels, double white);
void rgb_from_lab_row(const float* const (&lab)[3], float* const (&rgb)[3], int pixels, double white);

}  // namespace ungrain
