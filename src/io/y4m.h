// YUV4MPEG2 streams (.y4m): uncompressed frames of luma and chroma, as video programs pipe them.
#pragma once

#include <memory>
#include <string_view>

#include "io/clip.h"

namespace ungrain::io {

inline constexpr std::string_view y4m_signature = "YUV4MPEG2";

// Reads the header. Progressive frames only; mono, 4:2:0, 4:1:1, 4:2:2, 4:4:4, 4:4:4 with alpha; 8 to 16
// bits.
std::unique_ptr<FrameReader> open_y4m(std::unique_ptr<ByteSource> bytes);

// Whether frames of this spec can be written as Y4M: gray or ycbcr of 8 to 16 bits.
bool fits_y4m(const ImageSpec& spec);
// The header is `info`'s own where it has one.
std::unique_ptr<FrameWriter> create_y4m(std::unique_ptr<ByteSink> bytes, const ClipInfo& info);

}  // namespace ungrain::io
