#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace ungrain::page {

// A zlib stream (RFC 1950, 1951): matches from the last position with the same four bytes, Huffman codes made
// for each block. Photographs, filtered as PNG does, come within a few per cent of zlib's best.
std::string zlib_compressed(std::span<const std::uint8_t> data);

}  // namespace ungrain::page
