// The hot loops of the general version.
#pragma once

namespace ungrain {

// Floats that may be read behind the last candidate's values, and written behind its distance.
inline constexpr int distance_overrun = 64;

// sums[c] = Σ_i (reference[i] - row[parts[i] + c])² for c in [0, candidates).
void patch_distances(const float* reference, const int* parts, int count, const float* row, int candidates,
                     float* sums);

// A separable transform of `count` patches of 8 x 8, one after the other: first down columns, then along
// rows. `matrix` is 8 x 8, followed by its transpose.
void transform_8x8(const float* matrix, float* patches, int count);

}  // namespace ungrain
