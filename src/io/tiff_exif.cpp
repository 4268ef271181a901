#include "io/tiff_exif.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "io/tiff_entries.h"
#include "io/tiff_reader.h"
#include "io/tiff_tags.h"

namespace ungrain::io {
namespace {

using namespace tiff_tag;

constexpr std::array exif_mark = {std::byte{'E'}, std::byte{'x'}, std::byte{'i'},
                                  std::byte{'f'}, std::byte{0},   std::byte{0}};

// An EXIF block is made only if one of these tags is present.
constexpr std::array telling_tags = {make,      model,          date_time,    artist,
                                     copyright, exif_directory, gps_directory};

}  // namespace

std::vector<std::byte> exif_of_tiff(const SourceFile& file) {
  constexpr std::uint64_t most_bytes = 60 * 1024;  // a JPEG segment holds 64 KB
  const std::vector<TiffEntry> entries = descriptive_entries(TiffReader(file), false, most_bytes);
  if (std::none_of(entries.begin(), entries.end(), [](const TiffEntry& one) {
        return std::find(telling_tags.begin(), telling_tags.end(), one.tag) != telling_tags.end();
      })) {
    return {};
  }
  return exif_of_entries(entries);
}

std::vector<std::byte> exif_of_entries(const std::vector<TiffEntry>& entries) {
  constexpr std::array header = {std::byte{'I'}, std::byte{'I'}, std::byte{42}, std::byte{0},
                                 std::byte{8},   std::byte{0},   std::byte{0},  std::byte{0}};
  TiffDirectoryWriter writer(header.size(), false, false);
  writer.put(entries, 0);
  std::vector<std::byte> block(exif_mark.size() + header.size() + writer.bytes().size());
  auto end = std::copy(exif_mark.begin(), exif_mark.end(), block.begin());
  end = std::copy(header.begin(), header.end(), end);
  std::copy(writer.bytes().begin(), writer.bytes().end(), end);
  return block;
}

void set_exif_upright(std::vector<std::byte>& exif) {
  const TiffReader tiff(exif);
  if (!tiff.is_tiff()) return;
  const std::uint64_t first = tiff.first_directory();
  const TiffDirectory directory = tiff.directory(first);
  const auto put = [&](std::uint64_t at, std::uint64_t value, std::size_t size) {
    const std::vector<std::byte> bytes = tiff_number(value, size, tiff.big_endian());
    std::copy(bytes.begin(), bytes.end(), exif.begin() + static_cast<std::ptrdiff_t>(at));
  };
  for (const TiffField& field : directory.fields) {
    const std::size_t size = tiff_type_size(field.type).unit;
    if (field.tag == orientation && size != 0 && tiff.holds(field)) put(field.at, 1, size);
  }
  if (directory.complete) {
    put(first + tiff.next_link_offset(directory.fields.size()), 0, tiff.slot_bytes());
  }
}

std::span<const std::byte> without_exif_mark(std::span<const std::byte> exif) {
  const bool marked =
      exif.size() >= exif_mark.size() && std::equal(exif_mark.begin(), exif_mark.end(), exif.begin());
  return marked ? exif.subspan(exif_mark.size()) : exif;
}

void add_exif_to_tiff(const std::filesystem::path& file, std::span<const std::byte> exif,
                      const std::filesystem::path& named) {
  constexpr std::uint64_t most_bytes = 1 << 20;  // larger than any JPEG's; other formats have no limit
  const std::span<const std::byte> block = without_exif_mark(exif);
  add_tags_to_tiff(file, named, [&](int page, bool big_endian) {
    return page == 0 ? descriptive_entries(TiffReader(block), big_endian, most_bytes)
                     : std::vector<TiffEntry>{};
  });
}

}  // namespace ungrain::io
