// Tells drawings, text and patterns from noise: by runs of equal samples and by repeated blocks.
#pragma once

#include <limits>
#include <vector>

namespace ungrain {

// Statistics of pairs of neighbouring samples, one beside or below the other.
struct Neighbours {
  double equal = 0;       // share of equal pairs, less the share that a cut makes of unordered samples
  double difference = 0;  // mean square
  double step = std::numeric_limits<double>::infinity();  // the smallest difference that is not 0

  void add(const Neighbours& other, double share);  // to a mean over blocks
};
Neighbours neighbours_of(const double* block, int width, int height, double white);

// The strongest noise that leaves such neighbours; infinity if they are plausible for noise, whose share of
// equal neighbours is 0.4 steps over the deviation of their difference.
double most_noise(const Neighbours& neighbours, double white);

struct PlacedBlock {
  const float* samples = nullptr;
  int x = 0;
  int y = 0;
};

// The difference of a block from the most similar other block, from 0 (repeated) to 1 (unrelated): median
// over the blocks of the mean squared difference over twice their variance. White noise has 0.6, smoother
// noise 0.3, a pattern 0.1 and less. Overlapping blocks of side 8 are not compared. A block has `channels`
// times `samples`, one channel after the other.
double novelty(const std::vector<PlacedBlock>& blocks, int channels, int samples);

}  // namespace ungrain
