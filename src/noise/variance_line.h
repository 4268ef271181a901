// The variance of white noise by level: constant, or along a line as for photons.
#pragma once

#include <optional>
#include <vector>

#include "noise/flat_windows.h"
#include "ungrain/noise_model.h"

namespace ungrain {

// The flattest blocks of a narrow range of levels.
struct LevelVariance {
  double level = 0;
  double high = 0;    // variance of a coefficient in the high band, where texture is least
  double middle = 0;  // the same in the middle band
  int blocks = 0;
  double weight = 1;       // less if the range has few windows
  double black_share = 0;  // of the samples, at black or below
  double white_share = 0;  // at white or above
};

// The fit of a channel's levels. Texture only raises a level's variance, so the fit follows the lower ones,
// and its cost is mostly what lies below it.
struct LevelFit {
  double variance = 0;       // the same at all levels, before any cut at black and white
  double variance_cost = 0;  // mean cost a level
  PoissonGaussian line;
  double line_cost = 0;
  double weight = 0;            // of all levels together: about their number
  double brightest = 0;         // brightest level of the image
  bool white_spectrum = false;  // the high frequencies have as much power as the middle ones
  std::vector<LevelVariance> levels;
  std::vector<LevelVariance> cut_levels;  // near white, where noise was cut off: not fitted

  bool is_line() const;  // whether the levels show the line rather than one variance
};

// Requests the blocks whose samples the functions below need.
void request_blocks_for_lines(FlatWindows& windows, const ImageSpec& spec);

// Whether samples were cut off at black and at white: none lies beyond.
struct CutLimits {
  bool black = true;
  bool white = true;
};
CutLimits cut_limits(const FlatWindows& windows, const ImageSpec& spec, Workers& workers);

// Empty if there are too few levels.
std::optional<LevelFit> fit_levels(const FlatWindows& windows, const ImageSpec& spec, const CutLimits& limits,
                                   int channel, Workers& workers);

// White noise of that variance at each level.
NoiseModel::Channel line_channel(const LevelFit& fit, const ImageSpec& spec);

}  // namespace ungrain
