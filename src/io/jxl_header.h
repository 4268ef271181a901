// What the header of a JPEG XL file says that libvips does not.
#pragma once

#include "io/source_file.h"

namespace ungrain::io {

// Whether it has several frames; false also where the header cannot be understood.
bool jxl_is_animated(const SourceFile& file);

}  // namespace ungrain::io
