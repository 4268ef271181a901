#include "io/tiff_tiles.h"

#include <array>
#include <cstdint>

namespace ungrain::io {
namespace {

class TiffReader {
 public:
  explicit TiffReader(const SourceFile& file) : file_(file) {}

  std::optional<TileSize> tiles() {
    const std::uint64_t order = number(0, 1);
    if (order != number(1, 1) || (order != 'I' && order != 'M')) return std::nullopt;
    big_endian_ = order == 'M';
    const std::uint64_t version = number(2, 2);
    if (version != 42 && version != 43) return std::nullopt;
    const bool big = version == 43;
    return tiles_of(big ? number(8, 8) : number(4, 4), big);
  }

 private:
  // A directory: a count, then entries of tag, type, count and value.
  std::optional<TileSize> tiles_of(std::uint64_t directory, bool big) {
    constexpr std::uint64_t most_entries = 4096;
    constexpr std::uint64_t tile_width = 322;
    constexpr std::uint64_t tile_height = 323;
    const std::uint64_t entries = std::min(number(directory, big ? 8 : 2), most_entries);
    const std::uint64_t entry_bytes = big ? 20 : 12;
    TileSize size;
    for (std::uint64_t i = 0; i < entries; ++i) {
      const std::uint64_t entry = directory + (big ? 8 : 2) + i * entry_bytes;
      const std::uint64_t tag = number(entry, 2);
      if (tag == tile_width) size.width = side(entry, big);
      if (tag == tile_height) size.height = side(entry, big);
    }
    if (size.width == 0 || size.height == 0) return std::nullopt;
    return size;
  }

  int side(std::uint64_t entry, bool big) {
    constexpr std::uint64_t type_short = 3;
    constexpr std::uint64_t largest = 8192;
    const std::uint64_t value = number(entry + (big ? 12 : 8), number(entry + 2, 2) == type_short ? 2 : 4);
    return value <= largest && value % 16 == 0 ? static_cast<int>(value) : 0;
  }

  // Bytes beyond the end of the file are 0.
  std::uint64_t number(std::uint64_t at, std::size_t size) {
    if (at > file_.size()) return 0;
    std::array<unsigned char, 8> bytes{};
    file_.read_some(bytes.data(), size, at);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i) value = value << 8U | bytes[big_endian_ ? i : size - 1 - i];
    return value;
  }

  const SourceFile& file_;
  bool big_endian_ = false;
};

}  // namespace

std::optional<TileSize> tiff_tiles(const SourceFile& file) { return TiffReader(file).tiles(); }

}  // namespace ungrain::io
