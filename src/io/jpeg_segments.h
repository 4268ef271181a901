// The segments before a JPEG file's pixels, as far as libvips does not pass them on.
#pragma once

#include <string>
#include <vector>

#include "io/source_file.h"

namespace ungrain::io {

struct JpegSegments {
  std::vector<std::string> comments;
  // Quantisation steps of the first component (luminance): 8 x 8, row by row, the horizontal frequency along
  // a row. Empty where the file has none.
  std::vector<int> steps;
};

// Reads up to the first damaged segment.
JpegSegments read_jpeg_segments(const SourceFile& file);

}  // namespace ungrain::io
