// Image files in memory that every browser shows: PNG in builds with libvips, else BMP, which is about twice
// as large.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ungrain::io {

struct BrowserPicture {
  std::string_view media_type;
  std::string bytes;
};

// 8 bits a sample, interleaved rows without padding; channels: 1 (gray) or 3 (red, green, blue).
BrowserPicture browser_picture(const std::vector<std::uint8_t>& samples, int width, int height, int channels);

}  // namespace ungrain::io
