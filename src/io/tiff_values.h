// Entries of little-endian TIFF directories from numbers and texts.
#pragma once

#include <string>
#include <vector>

#include "io/tiff_entries.h"

namespace ungrain::io {

TiffEntry tiff_numbers(std::uint16_t tag, std::uint16_t type, const std::vector<std::uint64_t>& values);
// `type` is fraction or signed_fraction.
TiffEntry tiff_fractions(std::uint16_t tag, std::uint16_t type, const std::vector<double>& values,
                         std::int64_t denominator = 1'000'000);
TiffEntry tiff_doubles(std::uint16_t tag, const std::vector<double>& values);
TiffEntry tiff_text(std::uint16_t tag, const std::string& value);

}  // namespace ungrain::io
