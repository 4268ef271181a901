// Raw frames without any header, in the layouts that ffmpeg calls gray, yuv420p10le, rgb24 and so on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/clip.h"

namespace ungrain::io {

// ffmpeg's names of the layouts that can be read and written.
std::vector<std::string> raw_formats();
// Throws Error(invalid_argument) that lists the names.
ImageSpec raw_spec(const std::string& format, int width, int height);
// ffmpeg's name for frames of this spec; empty: it has none.
std::string raw_format_of(const ImageSpec& spec);

std::unique_ptr<FrameReader> open_raw_frames(std::unique_ptr<ByteSource> bytes, const ImageSpec& spec);
std::unique_ptr<FrameWriter> create_raw_frames(std::unique_ptr<ByteSink> bytes, const ImageSpec& spec);

}  // namespace ungrain::io
