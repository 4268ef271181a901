// For functions that look at every sample of an image.
#pragma once

#include "ungrain/image.h"

namespace ungrain {

// Throws Error(unsupported) for a ycbcr image: `what` takes luma_view() and chroma_view() instead.
void refuse_ycbcr(const ImageSpec& spec, const char* what);

}  // namespace ungrain
