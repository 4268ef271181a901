// The comments of a JPEG file, which libvips before 8.15 leaves out.
#pragma once

#include <string>
#include <vector>

#include "io/source_file.h"

namespace ungrain::io {

// Those in front of the pixels; what is damaged ends the list.
std::vector<std::string> read_jpeg_comments(const SourceFile& file);

}  // namespace ungrain::io
