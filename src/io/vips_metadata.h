// Metadata of libvips images.
#pragma once

#include "io/formats.h"
#include "io/metadata.h"
#include "io/source_file.h"
#include "io/vips_session.h"

namespace ungrain::io {

// `file` is the image's source.
Metadata read_vips_metadata(VipsImage* image, const Format& format, const SourceFile& file);

// Sets the fields that libvips' encoder of the format writes.
void write_vips_metadata(const Metadata& metadata, const Format& format, VipsImage* image);

}  // namespace ungrain::io
