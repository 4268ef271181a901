#include "io/tiff_tiles.h"

#include <cstdint>

#include "io/tiff_reader.h"

namespace ungrain::io {
namespace {

int side(const TiffReader& tiff, const TiffField& field) {
  constexpr std::uint64_t largest = 8192;
  const std::size_t bytes = field.type == tiff_type::uint16 ? 2 : field.type == tiff_type::uint64 ? 8 : 4;
  const std::uint64_t value = tiff.number(field.at, bytes);
  return value <= largest && value % 16 == 0 ? static_cast<int>(value) : 0;
}

}  // namespace

std::optional<TileSize> tiff_tiles(const SourceFile& file) {
  constexpr std::uint16_t tile_width = 322;
  constexpr std::uint16_t tile_height = 323;
  const TiffReader tiff(file);
  if (!tiff.is_tiff()) return std::nullopt;
  TileSize size;
  for (const TiffField& field : tiff.directory(tiff.first_directory()).fields) {
    if (field.tag == tile_width) size.width = side(tiff, field);
    if (field.tag == tile_height) size.height = side(tiff, field);
  }
  if (size.width == 0 || size.height == 0) return std::nullopt;
  return size;
}

}  // namespace ungrain::io
