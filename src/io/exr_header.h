// The channels of an OpenEXR file, by name: libvips turns any channels into red, green, blue and alpha.
#pragma once

#include <string>
#include <vector>

#include "io/source_file.h"

namespace ungrain::io {

// Channels of the first part, in the file's order; empty where the header cannot be parsed.
std::vector<std::string> exr_channels(const SourceFile& file);

}  // namespace ungrain::io
