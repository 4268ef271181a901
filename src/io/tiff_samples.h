// Samples as a TIFF file stores them, and their conversion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "ungrain/image.h"

namespace ungrain::io {

enum class TiffNumber : std::uint8_t { whole, signed_whole, floating };

struct TiffCoding {
  TiffNumber number = TiffNumber::whole;
  int bits = 8;
  PixelType type = PixelType::u8;  // after conversion
  double range = 0;                // white level; 0: the type's own
  bool white_unknown = false;      // 32-bit samples do not tell how many bits are used
  std::string note = {};           // the conversion, or empty
};

// Nothing for samples that no pixel type can hold: complex numbers, 64-bit integers.
std::optional<TiffCoding> coding_of(int bits, int sample_format);

// Bytes of one row: samples of less than 8 bits share bytes.
std::size_t stored_bytes(const TiffCoding& coding, std::size_t samples);

// Samples are in the processor's byte order. Returns the first finite 64-bit number outside the range of 32
// bits.
std::optional<double> decode_samples(const TiffCoding& coding, const std::byte* stored, std::size_t samples,
                                     std::byte* to);

}  // namespace ungrain::io
