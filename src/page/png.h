// PNG files in memory: what a page shows must be in the page, and builds without libvips make pages too.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace ungrain::page {

// 8 bits a sample, interleaved rows without padding; channels: 1 (gray) or 3 (red, green, blue).
std::string encode_png(std::span<const std::uint8_t> samples, int width, int height, int channels);

}  // namespace ungrain::page
