#include "io/tiff_values.h"

#include <bit>
#include <cmath>

namespace ungrain::io {
namespace {

void append(std::vector<std::byte>& to, std::uint64_t value, std::size_t size) {
  const std::vector<std::byte> bytes = tiff_number(value, size, false);
  to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

TiffEntry tiff_numbers(std::uint16_t tag, std::uint16_t type, const std::vector<std::uint64_t>& values) {
  TiffEntry entry{.tag = tag, .type = type, .count = values.size()};
  for (const std::uint64_t value : values) append(entry.value, value, tiff_type_size(type).value);
  return entry;
}

TiffEntry tiff_fractions(std::uint16_t tag, std::uint16_t type, const std::vector<double>& values,
                         std::int64_t denominator) {
  TiffEntry entry{.tag = tag, .type = type, .count = values.size()};
  for (const double value : values) {
    const auto numerator = std::llround(value * static_cast<double>(denominator));
    append(entry.value, static_cast<std::uint32_t>(numerator), 4);
    append(entry.value, static_cast<std::uint64_t>(denominator), 4);
  }
  return entry;
}

TiffEntry tiff_doubles(std::uint16_t tag, const std::vector<double>& values) {
  TiffEntry entry{.tag = tag, .type = tiff_type::float64, .count = values.size()};
  for (const double value : values) append(entry.value, std::bit_cast<std::uint64_t>(value), 8);
  return entry;
}

TiffEntry tiff_text(std::uint16_t tag, const std::string& value) {
  TiffEntry entry{.tag = tag, .type = tiff_type::text, .count = value.size() + 1};
  for (const char c : value) entry.value.push_back(static_cast<std::byte>(c));
  entry.value.push_back(std::byte{0});
  return entry;
}

}  // namespace ungrain::io
