// sRGB to CIE-Lab (D65) and back. Values below 0 and above white go through unclipped.
#pragma once

#include <array>

namespace ungrain {

using Triple = std::array<double, 3>;

Triple rgb_to_lab(const Triple& rgb);  // rgb from 0 to 1; L from 0 to 100
Triple lab_to_rgb(const Triple& lab);

// Independent noise of deviation `sigma` in red, green and blue (white 1), as a delta E: the root mean square
// of the distance it moves a pixel. Measured over gray levels and photographs 2.3 to 2.6 times that of
// lightness' scale, 100.
constexpr double noise_in_lab(double sigma) { return 250 * sigma; }

}  // namespace ungrain
