// The noise's variance from the spectra of many blocks: the flattest of them show it.
#pragma once

#include <array>
#include <vector>

#include "noise/block_spectrum.h"

namespace ungrain {

struct FlatBlocksQuestion {
  const BlockTransform* transform = nullptr;  // that made the spectra
  const std::vector<BlockSpectrum>* blocks = nullptr;
  int least_blocks = 1;  // to measure in
  double white = 0;      // where the noise may have been cut off; 0: it was not cut
};

struct FlatBlocksAnswer {
  double variance = 0;    // 0 where there are no blocks
  double detail = 0;      // how surely even the flattest blocks show detail, 0 to 1
  Neighbours neighbours;  // of the flattest blocks, mean
};
using BandPowers = std::array<double, band_count>;  // variance a coefficient

// How much the bands look like texture of one strength all over the image, 0 to 1: that falls with frequency
// k as k^-g with one g. Noise that was smoothed is level first and then falls ever more steeply; erased
// frequencies fall to nothing.
double falls_evenly(const BandPowers& powers);

FlatBlocksAnswer noise_variance(const FlatBlocksQuestion& question);

}  // namespace ungrain
