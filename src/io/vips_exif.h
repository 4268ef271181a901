// EXIF as libvips has it on its images: the block, and each of its tags as a field of its own.
#pragma once

#include <cstddef>
#include <span>

#include "io/vips_session.h"

namespace ungrain::io {

// An image without pixels that has nothing but these fields; null for an empty block.
VipsPointer<VipsImage> exif_fields(std::span<const std::byte> block);
// Unless `to` has an EXIF block already.
void copy_exif_fields(VipsImage* from, VipsImage* to);

// The block that the image has; empty where it has none. It lives as long as the image does.
std::span<const std::byte> exif_block(VipsImage* image);

}  // namespace ungrain::io
