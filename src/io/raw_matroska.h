// Uncompressed frames with timestamps in a Matroska stream: what ffmpeg reads from a pipe. Y4M has no
// timestamps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "io/clip.h"

namespace ungrain::io {

// The code of the pixel format; empty: ffmpeg has none for such frames.
std::string raw_code(const ImageSpec& spec);

std::vector<std::byte> matroska_header(const ClipInfo& info);
// A frame with its time in nanoseconds, 0 or later, appended to `to`.
void append_matroska_frame(const Image& frame, std::uint64_t nanoseconds, std::vector<std::byte>& to);

}  // namespace ungrain::io
