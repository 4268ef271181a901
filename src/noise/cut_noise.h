// Detects whether an image's noise was cut off at black or white, as in integer files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/cut_fill.h"
#include "core/workers.h"
#include "noise/latest_rows.h"
#include "noise/noise_pass.h"
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
  explicit CutDetector(const ImageSpec& spec, int threads = 0);  // 0: one for each processor

  void add_rows(const ConstImageView& image);   // the next rows, any number
  void add_image(const ConstImageView& image);  // all of them, also in the memory of a GPU
  void add_pass(NoisePass& pass);               // all of them, through a pass
  // After the last row. The deviations are those before the cut, one for each colour channel.
  Cut finish(const std::vector<ChannelDeviation>& deviations);

 private:
  static constexpr int side = 8;
  using Limit = CutLimit;
  // Not set before it is looked at, so that the workers touch the memory first.
  using Block = CutBlock;
  // The blocks of a channel that are closer to one limit.
  struct Side {
    std::vector<Block> near;  // with a mean of one deviation at most
    std::int64_t blocks = 0;
    bool beyond = false;  // a sample lies beyond the limit: nothing was cut
  };
  // Statistics of the blocks near the limit, measured and predicted for cut noise of this deviation.
  struct Statistics {
    double variance = 0;
    double at_limit = 0;  // share of the samples
    double changes = 0;   // share of the pairs
  };
  struct Evidence {
    int blocks = 0;
    Statistics found;
    Statistics expected;
  };
  struct SideCut {
    bool is_cut = false;
    int blocks = 0;
    double deviation_factor = 1;
  };

  CutLattice lattice() const;
  int rows_before(int end) const { return end < side ? 0 : (end - side) / step_ + 1; }
  void look_at_row(const LatestRows& rows, int row);
  template <class Value>
  Block look_at_block(const float* samples) const;
  Side side_of(int channel, Limit limit, double sigma) const;
  Evidence evidence(const Side& seen, double sigma) const;
  SideCut side_cut(int channel, Limit limit, double sigma) const;

  ImageSpec spec_;
  int step_ = side;  // from one block to the next
  int columns_ = 0;  // of blocks
  RowCollector rows_;
  Workers workers_;
  // Of each colour channel. Each block has its place, so that sums over blocks have one order for any number
  // of threads.
  std::size_t block_count_ = 0;
  std::vector<std::unique_ptr<Block[]>> blocks_;
};

}  // namespace ungrain
