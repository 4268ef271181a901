// What is measured: filters with their parameters, kinds of image, and the least work that each needs.
#pragma once

#include <string>
#include <vector>

#include "ungrain/image.h"
#include "ungrain/parameters.h"

namespace ungrain::bench {

struct Case {
  std::string filter;   // "bilateral", "bilateral grid"
  std::string setting;  // "radius 7", "21/7"
  MethodParams params;  // strengths for a range of 1
  PixelType type = PixelType::f32;
  bool rgb = false;
  // The least arithmetic a pixel, in operations on single floats that a processor issues where it issues
  // multiply-adds (adding, multiplying, both at once, minimum, maximum, shifts of exponents); 0: no such
  // bound is known. See cases.cpp for how they are counted.
  double least_operations = 0;
  // The reference takes this many times the time of one that looks at 100 pixels a pixel, about: where
  // results are checked, fewer pixels are.
  double reference_cost = 1;
  // Above 0: what the root mean square of the difference from the reference may be, as a share of the range,
  // where single pixels hang on a choice that rounding can turn.
  double mean_error = 0;

  std::string name() const;  // "bilateral radius 7 rgb u8"
  int channels() const { return rgb ? 3 : 1; }
  // Every sample is read once and written once.
  double least_bytes() const { return 2.0 * channels() * bytes_per_sample(type); }
  MethodParams params_for(const ImageSpec& spec) const;  // strengths in its units
};

// Those whose name begins with one of the words; all without words. Throws where a word fits none.
std::vector<Case> cases(const std::vector<std::string>& words);

}  // namespace ungrain::bench
