// Metadata in the boxes of JPEG XL and JPEG 2000 files, which libvips neither reads nor writes.
#pragma once

#include <cstdint>
#include <optional>

#include "io/metadata.h"
#include "io/source_file.h"

namespace ungrain::io {

// EXIF, XMP and IPTC of such a file; nothing of one that has no boxes. What is damaged is left out.
void read_box_metadata(const SourceFile& file, Metadata& metadata);

// Where the codestream of a JPEG XL file begins, bare or in boxes; nothing where it is none.
std::optional<std::uint64_t> jxl_codestream_at(const SourceFile& file);

// The file that an encoder made, with metadata in boxes. A bare JPEG XL codestream gets boxes around it; a
// bare JPEG 2000 codestream, which can have none, stays as it is.
Bytes with_jxl_boxes(Bytes encoded, const Metadata& metadata);
Bytes with_jp2_boxes(Bytes encoded, const Metadata& metadata);

}  // namespace ungrain::io
