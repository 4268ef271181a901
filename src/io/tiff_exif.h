// The EXIF of TIFF files, which libvips neither reads nor writes.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "io/source_file.h"
#include "io/tiff_entries.h"

namespace ungrain::io {

// Of the first page, as a JPEG file would hold it: "Exif\0\0", then a small TIFF file, little-endian, with
// the tags that describe the picture and the Exif, GPS and interoperability directories. Empty where there is
// nothing of a camera, a time or an author. What is damaged is left out, and so are the largest values of
// what is more than a JPEG's segment holds.
//
// Values go over as they are: a maker's note that counts offsets from the start of its file loses its way, as
// in every program that moves it.
std::vector<std::byte> exif_of_tiff(const SourceFile& file);

// The same of other entries, in little endian.
std::vector<std::byte> exif_of_entries(const std::vector<TiffEntry>& entries);

// Orientation 1, and no thumbnail: it shows the picture as it lay. `exif` is without "Exif\0\0".
void set_exif_upright(std::vector<std::byte>& exif);

std::span<const std::byte> without_exif_mark(std::span<const std::byte> exif);

// Gives a TIFF file the tags of an EXIF block ("Exif\0\0" may be missing) that its first page does not have:
// a new directory at the end of the file takes the first's place. A file that cannot hold more (4 GB without
// being a BigTIFF) or a block that is damaged leaves the file as it is. Errors are of `named`, which may be
// another name than that of a temporary file.
void add_exif_to_tiff(const std::filesystem::path& file, std::span<const std::byte> exif,
                      const std::filesystem::path& named);
inline void add_exif_to_tiff(const std::filesystem::path& file, std::span<const std::byte> exif) {
  add_exif_to_tiff(file, exif, file);
}

}  // namespace ungrain::io
