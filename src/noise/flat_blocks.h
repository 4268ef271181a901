// The noise's variance from the spectra of many blocks: the flattest of them show it.
#pragma once

#include <vector>

#include "noise/block_spectrum.h"

namespace ungrain {

struct FlatBlocksQuestion {
  const BlockTransform* transform = nullptr;  // that made the spectra
  const std::vector<BlockSpectrum>* blocks = nullptr;
  int least_blocks = 1;  // to measure in
  double white = 0;      // where the noise may have been cut off; 0: it was not cut
};

double noise_variance(const FlatBlocksQuestion& question);  // 0 where there are no blocks

}  // namespace ungrain
