// The cosine transform of the blocks that noise models are measured in.
#pragma once

#include "ungrain/noise_model.h"

namespace ungrain {

// A channel of a block of `channels` channels, one 8 x 8 block after the other: of three the opponent
// space's.
NoiseModel::Spectrum channel_of(const float* samples, int channels, int channel);

NoiseModel::Spectrum squared_coefficients(const NoiseModel::Spectrum& block);

}  // namespace ungrain
