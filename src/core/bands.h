// Which rows of which result are computed, kept and dropped while full-width bands of rows pass through the
// stages of a pipeline. Every row of every result is computed once; the stages' reach decides how long it is
// kept.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/method.h"

namespace ungrain {

// What happens in one step, for each result (0: the source, k: what the k-th stage makes).
struct BandStep {
  RowRange output;                // rows of the final image that this step finishes
  std::vector<int> keep_from;     // rows before this are dropped first
  std::vector<RowRange> compute;  // then these are computed, results in order
};

class BandSchedule {
 public:
  // `output`: the wanted rows of an image of `height` rows.
  BandSchedule(const Pipeline& pipeline, int height, RowRange output, int band_rows);

  // The next step, or nothing when the output is complete.
  const BandStep* next();
  int steps() const;
  int results() const { return static_cast<int>(done_.size()); }
  RowRange all_rows(int result) const { return total_[result]; }  // of it that are ever computed

 private:
  RowRange needed(int stage, RowRange made) const;
  std::vector<RowRange> rows_for(RowRange output) const;

  const Pipeline* pipeline_;
  int height_;
  RowRange output_;
  int band_rows_;
  std::vector<RowRange> total_;
  std::vector<int> done_;  // rows before this have been computed
  BandStep step_;
};

struct BandPlaying {
  int band_rows = 0;
  bool carries_rows = true;  // false: each band by itself, with its halo
};

// Plays the steps that hold the most rows, for any region of the image: bands of an image high enough for
// their steady state, from its top and from its middle.
void play_worst(const Pipeline& pipeline, int height, const BandPlaying& playing,
                const std::function<void(const BandStep&, int played_height)>& visit);

// The most rows of each result that are held at once, for any region of the image.
std::vector<int> rows_held(const Pipeline& pipeline, int height, const BandPlaying& playing);

// Columns of each result that are needed for columns [begin, end) of the output.
std::vector<RowRange> columns_for(const Pipeline& pipeline, int width, RowRange output);

// How far a pixel's neighbourhood extends through all stages, at most as far as the image goes.
Reach total_reach(const Pipeline& pipeline, const Extent& image);

}  // namespace ungrain
