// Metadata in the boxes of JPEG XL and JPEG 2000 files, which libvips neither reads nor writes.
#pragma once

#include <cstdint>
#include <optional>

#include "io/metadata.h"
#include "io/source_file.h"

namespace ungrain::io {

// EXIF, XMP and IPTC of such a file; nothing where the file has no boxes. Damaged boxes are left out.
void read_box_metadata(const SourceFile& file, Metadata& metadata);

// Offset of the codestream of a JPEG XL file, bare or in boxes; nothing where the file is not JPEG XL.
std::optional<std::uint64_t> jxl_codestream_at(const SourceFile& file);

// The encoder's file with metadata in boxes. A bare JPEG XL codestream gets boxes around it. A bare JPEG 2000
// codestream cannot have boxes and stays unchanged.
Bytes with_jxl_boxes(Bytes encoded, const Metadata& metadata);
Bytes with_jp2_boxes(Bytes encoded, const Metadata& metadata);

}  // namespace ungrain::io
