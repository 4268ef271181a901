// Entries of TIFF directories to be written, and the bytes of such directories.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "io/tiff_reader.h"

namespace ungrain::io {

namespace tiff_tag {
constexpr std::uint16_t image_description = 270;
constexpr std::uint16_t make = 271;
constexpr std::uint16_t model = 272;
constexpr std::uint16_t orientation = 274;
constexpr std::uint16_t x_resolution = 282;
constexpr std::uint16_t y_resolution = 283;
constexpr std::uint16_t resolution_unit = 296;
constexpr std::uint16_t software = 305;
constexpr std::uint16_t date_time = 306;
constexpr std::uint16_t artist = 315;
constexpr std::uint16_t sub_directories = 330;
constexpr std::uint16_t xmp = 700;
constexpr std::uint16_t copyright = 33432;
constexpr std::uint16_t iptc = 33723;
constexpr std::uint16_t photoshop = 34377;
constexpr std::uint16_t exif_directory = 34665;
constexpr std::uint16_t icc_profile = 34675;
constexpr std::uint16_t gps_directory = 34853;
constexpr std::uint16_t photoshop_layers = 37724;
constexpr std::uint16_t interoperability_directory = 40965;
}  // namespace tiff_tag

struct TiffEntry {
  std::uint16_t tag = 0;
  std::uint16_t type = 0;
  std::uint64_t count = 0;
  std::vector<std::byte> value = {};      // in the byte order of the output file
  std::vector<TiffEntry> directory = {};  // the directory that it points to, if any
};

// Entries of a first directory that describe the picture, with the EXIF, GPS and interoperability
// directories. Its other tags describe how the pixels are stored. The largest values beyond `most_bytes` are
// left out.
std::vector<TiffEntry> descriptive_entries(const TiffReader& tiff, bool big_endian, std::uint64_t most_bytes);

// All entries of a page's directory that do not describe how its pixels are stored.
std::vector<TiffEntry> page_entries(const TiffReader& tiff, std::uint64_t directory, bool big_endian);

// A tag outside TIFF, EXIF and other named metadata: a microscope's, a map's.
bool is_private_tag(std::uint16_t tag);

// Directories and their values, for one place in a file.
class TiffDirectoryWriter {
 public:
  TiffDirectoryWriter(std::uint64_t place, bool big, bool big_endian)
      : place_(place), big_(big), big_endian_(big_endian) {}

  const std::vector<std::byte>& bytes() const { return bytes_; }

  // Returns the directory's offset in the file.
  std::uint64_t put(const std::vector<TiffEntry>& entries, std::uint64_t next);

 private:
  std::uint16_t pointer_type() const { return big_ ? tiff_type::directory64 : tiff_type::uint32; }
  std::size_t aligned_end() const;
  void set_number(std::size_t at, std::uint64_t value, std::size_t size);

  std::uint64_t place_;
  bool big_;
  bool big_endian_;
  std::vector<std::byte> bytes_;
};

std::vector<std::byte> tiff_number(std::uint64_t value, std::size_t size, bool big_endian);

}  // namespace ungrain::io
