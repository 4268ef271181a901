// What the segments in front of a JPEG file's pixels tell that libvips does not pass on.
#pragma once

#include <string>
#include <vector>

#include "io/source_file.h"

namespace ungrain::io {

struct JpegSegments {
  std::vector<std::string> comments;
  // By how much the first component's (luminance's) coefficients were rounded: 8 x 8, row by row, the
  // horizontal frequency along a row. Empty where the file does not tell.
  std::vector<int> steps;
};

// What is damaged ends the list.
JpegSegments read_jpeg_segments(const SourceFile& file);

}  // namespace ungrain::io
