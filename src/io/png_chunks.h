// The chunks of a PNG file that libvips does not copy unchanged.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "io/metadata.h"
#include "io/source_file.h"

namespace ungrain::io {

struct PngContents {
  std::vector<PngText> texts;  // without XMP
  Bytes xmp;
  std::int64_t frames = 1;  // that an animation announces
  bool has_resolution = false;
  bool complete = false;  // the last chunk is present
};

// Reads up to the first damaged chunk.
PngContents read_png_contents(const SourceFile& file);

// Inserts the chunks before the pixels of a complete file, where every reader looks. Errors name `named`.
void add_png_texts(const std::filesystem::path& file, const std::vector<PngText>& texts, const Bytes& xmp,
                   const std::filesystem::path& named);

// libpng before 1.6.40 writes a file's EXIF block a second time behind the pixels, which makes readers warn.
// Removes the second block. Errors name `named`.
void drop_second_exif(const std::filesystem::path& file, const std::filesystem::path& named);

}  // namespace ungrain::io
