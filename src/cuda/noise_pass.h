// The noise estimate's pass over an image in the memory of a GPU.
#pragma once

#include <memory>

#include "noise/noise_pass.h"

namespace ungrain::cuda {

// The image's pixels must be there and stay until the pass is done. Memory and stream of a pass are kept for
// the next one on the same GPU.
std::unique_ptr<NoisePass> make_noise_pass(const ConstImageView& image);

}  // namespace ungrain::cuda
