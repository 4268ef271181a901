// The EXIF of TIFF files, which libvips neither reads nor writes.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "io/source_file.h"
#include "io/tiff_entries.h"

namespace ungrain::io {

// EXIF of the first page in a JPEG file's form: "Exif\0\0", then a small little-endian TIFF file with the
// tags that describe the picture and the Exif, GPS and interoperability directories. Empty where no tag tells
// a camera, a time or an author. Damaged entries are left out, and the largest values beyond what a JPEG
// segment holds.
//
// Values are copied unchanged. A maker's note with offsets from the start of its file becomes invalid, as in
// every program that moves it.
std::vector<std::byte> exif_of_tiff(const SourceFile& file);

// The same from given entries, in little endian.
std::vector<std::byte> exif_of_entries(const std::vector<TiffEntry>& entries);

// Sets orientation 1 and removes the thumbnail, which is not upright. `exif` is without "Exif\0\0".
void set_exif_upright(std::vector<std::byte>& exif);

std::span<const std::byte> without_exif_mark(std::span<const std::byte> exif);

// Adds the tags of an EXIF block ("Exif\0\0" may be missing) that a TIFF file's first page lacks: a new
// directory at the end of the file replaces the first. The file stays unchanged where it cannot grow (4 GB
// without being a BigTIFF) or the block is damaged. Errors name `named`, which may differ from the name of a
// temporary file.
void add_exif_to_tiff(const std::filesystem::path& file, std::span<const std::byte> exif,
                      const std::filesystem::path& named);
inline void add_exif_to_tiff(const std::filesystem::path& file, std::span<const std::byte> exif) {
  add_exif_to_tiff(file, exif, file);
}

}  // namespace ungrain::io
