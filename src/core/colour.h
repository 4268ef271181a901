// sRGB to CIE-Lab (D65) and back. Values below 0 and above white go through unclipped.
#pragma once

#include <array>

namespace ungrain {

using Triple = std::array<double, 3>;

Triple rgb_to_lab(const Triple& rgb);  // rgb from 0 to 1; L from 0 to 100
Triple lab_to_rgb(const Triple& lab);

}  // namespace ungrain
