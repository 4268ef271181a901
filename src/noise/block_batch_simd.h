// Statistics of blocks of 8 x 8 samples for the white noise estimate, of many blocks at once: a block a lane.
// Every lane computes in the same order, without fused multiply-adds: the same bits on every set of
// instructions.
#pragma once

namespace ungrain {

inline constexpr int batch_blocks = 16;
inline constexpr int batch_samples = 64;  // of a block

// One number for each block of a batch.
using BatchNumbers = float[batch_blocks];

// The BlockSpectrum (block_spectrum.h) of each block, and statistics of its samples.
struct alignas(64) BatchStatistics {
  BatchNumbers mean;
  BatchNumbers energy[2][5];
  BatchNumbers busyness[2];
  BatchNumbers smallest;
  BatchNumbers largest;
  BatchNumbers black;         // samples that are 0
  BatchNumbers white;         // samples that are white
  BatchNumbers equal;         // pairs of neighbours that are equal
  BatchNumbers difference;    // sum of the squares of all pairs' differences
  BatchNumbers least_square;  // the least of those that is not 0; infinity: none
};
inline constexpr int batch_pairs = 112;  // of neighbours in a block

// A channel of a batch: sample i of block n is samples[i][n].
struct alignas(64) BatchChannel {
  BatchNumbers samples[batch_samples];
};

// Measures `channels` channels. Of rgb also their mean and red - 2 green + blue, as looks[3] and looks[4],
// whose samples it writes to batch[3] and batch[4].
void measure_batch(BatchChannel* batch, int channels, bool rgb, float white, BatchStatistics* looks);

}  // namespace ungrain
