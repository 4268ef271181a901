#pragma once

#include <cstdint>
#include <vector>

#include "io/browser_picture.h"

namespace ungrain::io {

// browser_picture() as PNG.
BrowserPicture vips_picture(const std::vector<std::uint8_t>& samples, int width, int height, int channels);

}  // namespace ungrain::io
