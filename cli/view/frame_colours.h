// Frames of luma and chroma as red, green and blue, for the screen.
#pragma once

#include <string>

#include "ungrain/image.h"

namespace ungrain::cli::view {

struct FrameColours {
  // What the samples mean: shares of red and blue in luma (BT.601, BT.709, BT.2020).
  double red = 0.2126;
  double blue = 0.0722;
  bool limited = true;  // black at 16 of 255, white at 235

  // By ffmpeg's words for matrix and range; where they are not known, by the frames' height, as players do.
  static FrameColours of(const std::string& matrix, const std::string& range, int height);
};

// Rows of a ycbcr image as rgb of the same type and white level. Chroma is repeated, not interpolated: each
// pixel follows from its own samples alone, wherever the rows were cut.
Image to_rgb(const ConstImageView& frame, const FrameColours& colours);

}  // namespace ungrain::cli::view
