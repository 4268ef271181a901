// EXIF as libvips has it on its images: the block, and each of its tags as a field.
#pragma once

#include <cstddef>
#include <span>

#include "io/vips_session.h"

namespace ungrain::io {

// An image without pixels that has only these fields; null where there is no EXIF. Without "Exif\0\0".
VipsPointer<VipsImage> exif_fields(std::span<const std::byte> exif);
// Unless `to` has an EXIF block already.
void copy_exif_fields(VipsImage* from, VipsImage* to);

}  // namespace ungrain::io
