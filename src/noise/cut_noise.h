// Detects whether an image's noise was cut off at black or white, as in integer files.
#pragma once

#include <vector>

#include "core/cut_fill.h"
#include "noise/stabilize.h"
#include "ungrain/image.h"

namespace ungrain {

struct Cut {
  bool at_black = false;
  bool at_white = false;
  // Factor on the deviations, 0.85 to 1, for which blocks near the cut have at least the variance that the
  // deviations predict. Texture only adds variance.
  double deviation_factor = 1;
};

// Curves that replace cut samples at a limit (0 or white) of a channel with this deviation before the cut.
FillCurves filling_curves(const ChannelDeviation& deviation, const ImageSpec& spec, bool at_white);

// Examines up to 40,000 blocks of 8 x 8 pixels of each colour channel, row by row. In an area whose true
// level is black, cut noise makes half of the samples exactly 0 and leaves the others positive, scattered
// over the area. A block's mean, of 0.3 to 1 deviations, predicts how many samples are at the limit, how much
// variance is left, and how often exactly one of two neighbours is at the limit. Black borders and saturated
// skies are constant or connected areas, and dark areas without noise lack the variance.
class CutDetector {
 public:
  explicit CutDetector(const ImageSpec& spec);

  void add_rows(const ConstImageView& image);  // the next rows, any number
  // After the last row. The deviations are those before the cut, one for each colour channel.
  Cut finish(const std::vector<ChannelDeviation>& deviations) const;

 private:
  static constexpr int side = 8;
  struct Block {
    double mean = 0;  // distance from the limit
    double variance = 0;
    double at_limit = 0;  // share of the samples
    double changes = 0;   // share of pairs of neighbours of which exactly one is at the limit
  };
  struct Side {
    std::vector<Block> blocks;  // whose mean is closer to this limit
    bool beyond = false;        // a sample lies beyond the limit: nothing was cut
  };

  void measure(int channel, int block);
  void add(Side& to, const float* block, int stride, double limit, double sign) const;
  // Statistics of the blocks near the limit, measured and predicted for cut noise of this deviation.
  struct Evidence {
    int blocks = 0;
    Block found;
    Block expected;
  };
  Evidence evidence(const Side& seen, double sigma) const;
  bool was_cut(const Side& seen, double sigma) const;
  double deviation_factor(const Side& seen, double sigma) const;

  ImageSpec spec_;
  int step_ = side;  // from one block to the next
  int row_ = 0;
  std::vector<std::vector<float>> rows_;  // of each colour channel: the current row of blocks
  std::vector<Side> black_;
  std::vector<Side> white_;
};

}  // namespace ungrain
