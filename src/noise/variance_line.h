// How the variance of white noise changes with the level: not at all, or along a line as photons make it.
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
  double weight = 1;       // less where the range has few windows
  double black_share = 0;  // of the samples, at black or below
  double white_share = 0;  // at white or above
};

// What levels of one channel say together. Texture can only raise a level's variance: a fit follows the lower
// ones, and its cost is mostly what is below it.
struct LevelFit {
  double variance = 0;       // the same at all levels, before any cut at black and white
  double variance_cost = 0;  // mean cost a level
  PoissonGaussian line;
  double line_cost = 0;
  double weight = 0;            // of all levels together: about their number
  double brightest = 0;         // level of the image
  bool white_spectrum = false;  // the high frequencies have as much as the middle ones
  std::vector<LevelVariance> levels;
  std::vector<LevelVariance> cut_levels;  // near white, whose noise was cut off there: not fitted

  bool is_line() const;  // whether the line is what the levels show, and one variance is not
};

// Empty where there are too few levels to tell.
std::optional<LevelFit> fit_levels(const FlatWindows& windows, const ImageSpec& spec, int channel,
                                   Workers& workers);

// White noise of that variance at each level.
NoiseModel::Channel line_channel(const LevelFit& fit, const ImageSpec& spec);

}  // namespace ungrain
