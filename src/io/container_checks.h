// Whether a file that libvips decodes has all the frames that it promises: libvips gives what it finds.
#pragma once

#include <string_view>

#include "io/image_file.h"
#include "io/source_file.h"

namespace ungrain::io {

// Throws where frames are missing, with how many were found, or where there are frames that are wanted and
// cannot be read. `format` is the name of a format in formats.h.
void check_frames(const SourceFile& file, std::string_view format, const PageList& wanted);

}  // namespace ungrain::io
