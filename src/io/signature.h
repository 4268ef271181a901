// What a file claims to be, by its first bytes.
#pragma once

#include <string>
#include <string_view>

#include "io/source_file.h"

namespace ungrain::io {

// Names the best known of the formats that libvips reads; empty where it is none of them.
std::string_view format_by_signature(const SourceFile& file);
// A camera raw file that is no TIFF file, or Canon's CR2, which begins as one.
bool has_raw_signature(const SourceFile& file);
// "a video …": what a file is that has pictures in it and is no image, with what to do; empty where it may be
// an image.
std::string what_it_is_instead(const SourceFile& file);

}  // namespace ungrain::io
