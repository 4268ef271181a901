// VapourSynth's frames as the library's images.
#pragma once

#include <cstdint>
#include <optional>

#include <VapourSynth4.h>

#include "ungrain/image.h"

namespace ungrain::vapoursynth {

// Throws Error(unsupported) for clips of other kinds: of a size or format that varies, or of samples that the
// library does not have.
ImageSpec spec_of(const VSVideoInfo& clip);

// A whole number among the frame's properties; empty: it is not set.
std::optional<std::int64_t> property(const VSFrame& frame, const VSAPI& api, const char* name);

// The rows [first, first + rows.spec.height) of a frame, whose spec is that of spec_of().
void copy_rows(const VSFrame& frame, const VSAPI& api, int first, const ImageView& rows);
Image image_of(const VSFrame& frame, const VSAPI& api, const ImageSpec& spec);
void copy_image(const ConstImageView& image, VSFrame& frame, const VSAPI& api);

}  // namespace ungrain::vapoursynth
