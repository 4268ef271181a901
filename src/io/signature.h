// File kinds by their first bytes.
#pragma once

#include <string>
#include <string_view>

#include "io/source_file.h"

namespace ungrain::io {

// Name of the best known formats that libvips reads; empty for any other file.
std::string_view format_by_signature(const SourceFile& file);
// A camera raw file that is not a TIFF file, or Canon's CR2, which begins as one.
bool has_raw_signature(const SourceFile& file);
// "a video …": kind of a file that contains pictures but is not an image, with advice; empty where it may be
// an image.
std::string what_it_is_instead(const SourceFile& file);

}  // namespace ungrain::io
