#include "io/exif_iso.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "io/tiff_entries.h"
#include "io/tiff_reader.h"

namespace ungrain::io {
namespace {

constexpr std::uint16_t photographic_sensitivity = 34855;
// 32-bit tags for speeds above the 16 bits of the tag above.
constexpr std::array<std::uint16_t, 3> larger_speeds = {34867, 34866, 34865};
constexpr std::uint64_t more_than_16_bits = 65535;

// 0 where the directory lacks the tag.
std::uint64_t whole_number(const TiffReader& tiff, const TiffDirectory& directory, std::uint16_t tag) {
  const auto field = std::find_if(directory.fields.begin(), directory.fields.end(),
                                  [tag](const TiffField& one) { return one.tag == tag; });
  if (field == directory.fields.end() || !tiff.holds(*field)) return 0;
  if (field->type != tiff_type::uint16 && field->type != tiff_type::uint32 &&
      field->type != tiff_type::directory32) {
    return 0;
  }
  return tiff.number(field->at, tiff_type_size(field->type).unit);
}

}  // namespace

std::optional<double> iso_speed(const Metadata& metadata) {
  const TiffReader tiff(metadata.exif);
  if (!tiff.is_tiff()) return std::nullopt;
  const std::uint64_t at =
      whole_number(tiff, tiff.directory(tiff.first_directory()), tiff_tag::exif_directory);
  if (at == 0) return std::nullopt;
  const TiffDirectory exif = tiff.directory(at);
  std::uint64_t speed = whole_number(tiff, exif, photographic_sensitivity);
  if (speed == 0 || speed == more_than_16_bits) {
    for (const std::uint16_t tag : larger_speeds) {
      if (const std::uint64_t larger = whole_number(tiff, exif, tag); larger > 0) {
        speed = larger;
        break;
      }
    }
  }
  if (speed == 0) return std::nullopt;
  return static_cast<double>(speed);
}

}  // namespace ungrain::io
