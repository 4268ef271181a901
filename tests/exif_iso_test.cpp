#include "io/exif_iso.h"

#include <gtest/gtest.h>

#include "io/tiff_entries.h"

namespace ungrain::io {
namespace {

TiffEntry number(std::uint16_t tag, std::uint16_t type, std::uint64_t value) {
  const std::size_t size = type == tiff_type::uint16 ? 2 : 4;
  return {tag, type, 1, tiff_number(value, size, false), {}};
}

Metadata with(std::vector<TiffEntry> exif) {
  TiffEntry pointer{tiff_tag::exif_directory, tiff_type::uint32, 1, {}, std::move(exif)};
  TiffDirectoryWriter writer(8, false, false);
  writer.put({pointer}, 0);
  Metadata metadata;
  for (const int byte : {0x49, 0x49, 42, 0, 8, 0, 0, 0})
    metadata.exif.push_back(static_cast<std::byte>(byte));
  metadata.exif.insert(metadata.exif.end(), writer.bytes().begin(), writer.bytes().end());
  return metadata;
}

TEST(ExifIso, IsReadWhereItIs) {
  EXPECT_EQ(iso_speed(with({number(34855, tiff_type::uint16, 3200)})), 3200);
  EXPECT_EQ(
      iso_speed(with({number(34855, tiff_type::uint16, 65535), number(34866, tiff_type::uint32, 102400)})),
      102400);
}

TEST(ExifIso, IsNothingWhereItIsNot) {
  EXPECT_EQ(iso_speed(Metadata{}), std::nullopt);
  EXPECT_EQ(iso_speed(with({number(33434, tiff_type::uint32, 1)})), std::nullopt);
  EXPECT_EQ(iso_speed(with({number(34855, tiff_type::uint16, 0)})), std::nullopt);
  Metadata cut = with({number(34855, tiff_type::uint16, 3200)});
  cut.exif.resize(cut.exif.size() / 2);
  EXPECT_EQ(iso_speed(cut), std::nullopt);
}

}  // namespace
}  // namespace ungrain::io
