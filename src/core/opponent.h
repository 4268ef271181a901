// The opponent space in which an rgb image's noise is measured and filtered.
#pragma once

namespace ungrain {

// Orthonormal: luminance (r + g + b) / sqrt 3, then (r - b) / sqrt 2 and (r - 2 g + b) / sqrt 6.
inline constexpr double opponent_matrix[3][3] = {
    {0.57735026918962576451, 0.57735026918962576451, 0.57735026918962576451},
    {0.70710678118654752440, 0, -0.70710678118654752440},
    {0.40824829046386301637, -0.81649658092772603273, 0.40824829046386301637}};

}  // namespace ungrain
