// Fields of a JPEG XL header that libvips does not return.
#pragma once

#include "io/source_file.h"

namespace ungrain::io {

// Whether the file has several frames; false also where the header cannot be parsed.
bool jxl_is_animated(const SourceFile& file);

}  // namespace ungrain::io
