// Checks that a file which libvips decodes has all the frames it announces. libvips itself returns what it
// finds.
#pragma once

#include <string_view>

#include "io/image_file.h"
#include "io/source_file.h"

namespace ungrain::io {

// Throws where frames are missing (the message says how many were found) or where wanted frames cannot be
// read. `format` is the name of a format in formats.h.
void check_frames(const SourceFile& file, std::string_view format, const PageList& wanted);

}  // namespace ungrain::io
