// What tells drawings, text and patterns from noise: runs of equal samples, and blocks that come again.
#pragma once

#include <limits>
#include <vector>

namespace ungrain {

// What two neighbouring samples, one beside or below the other, have in common.
struct Neighbours {
  double equal = 0;       // share of pairs that are equal, less what a cut makes of samples without any order
  double difference = 0;  // mean square
  double step = std::numeric_limits<double>::infinity();  // the smallest difference that is not 0

  void add(const Neighbours& other, double share);  // to a mean over blocks
};
Neighbours neighbours_of(const double* block, int width, int height, double white);

// The strongest noise that leaves such neighbours; infinity where they may well be noise's, whose equal
// neighbours are 0.4 steps over the deviation of their difference.
double most_noise(const Neighbours& neighbours, double white);

struct PlacedBlock {
  const float* samples = nullptr;
  int x = 0;
  int y = 0;
};

// How different the most similar of other blocks is, from 0 (the same again) to 1 (nothing in common): median
// over the blocks of the mean square of the difference over twice their variance. White noise has 0.6,
// smoother noise 0.3, a pattern 0.1 and less. Blocks of side 8 that overlap are not compared. A block has
// `channels` times `samples`, one channel after the other.
double novelty(const std::vector<PlacedBlock>& blocks, int channels, int samples);

}  // namespace ungrain
