// The chunks of a PNG file that libvips does not carry over as they are.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "io/metadata.h"
#include "io/source_file.h"

namespace ungrain::io {

struct PngContents {
  std::vector<PngText> texts;  // but for XMP
  Bytes xmp;
  std::int64_t frames = 1;  // that an animation promises
  bool has_resolution = false;
  bool complete = false;  // the last chunk is there
};

// Nothing is trusted: what is damaged ends the list.
PngContents read_png_contents(const SourceFile& file);

// In front of a complete file's pixels, where every reader looks. Errors are of `named`.
void add_png_texts(const std::filesystem::path& file, const std::vector<PngText>& texts, const Bytes& xmp,
                   const std::filesystem::path& named);

// libpng before 1.6.40 writes the EXIF block of a file again behind its pixels, which readers warn of: that one
// goes. Errors are of `named`.
void drop_second_exif(const std::filesystem::path& file, const std::filesystem::path& named);

}  // namespace ungrain::io
