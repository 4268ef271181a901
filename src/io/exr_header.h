// The channels of an OpenEXR file: libvips makes red, green, blue and alpha of whatever there is.
#pragma once

#include <string>
#include <vector>

#include "io/source_file.h"

namespace ungrain::io {

// Of the first part, in the file's order; empty where the header cannot be understood.
std::vector<std::string> exr_channels(const SourceFile& file);

}  // namespace ungrain::io
