// Metadata as libvips has them on its images.
#pragma once

#include "io/formats.h"
#include "io/metadata.h"
#include "io/source_file.h"
#include "io/vips_session.h"

namespace ungrain::io {

// `file` is what the image was loaded from.
Metadata read_vips_metadata(VipsImage* image, const Format& format, const SourceFile& file);

// What libvips' encoder of the format is to write.
void write_vips_metadata(const Metadata& metadata, const Format& format, VipsImage* image);

}  // namespace ungrain::io
