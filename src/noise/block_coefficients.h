// The cosine transform of the blocks in which noise models are measured.
#pragma once

#include "ungrain/noise_model.h"

namespace ungrain {

// A channel of a block of `channels` channels, stored one 8 x 8 block after the other; of three channels, one
// of the opponent space.
NoiseModel::Spectrum channel_of(const float* samples, int channels, int channel);

NoiseModel::Spectrum squared_coefficients(const NoiseModel::Spectrum& block);

}  // namespace ungrain
