// The pages of a TIFF file: the offsets of their directories, and whether all of them can be found.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/image_file.h"
#include "io/source_file.h"

namespace ungrain::io {

struct TiffPages {
  std::vector<std::uint64_t> directories;
  int reduced = 0;  // smaller copies of a page, which are not pages
  int masks = 0;    // transparency masks, which are not pages either
};

// Throws where a directory or the link to the next is damaged or the links are cyclic (the message says how
// many pages were found), and where the wanted pages differ in size or samples.
TiffPages find_tiff_pages(const SourceFile& file, const PageList& wanted);

// "DNG", "camera raw": kind of a TIFF file whose first page is a preview of a sensor's pixels or these pixels
// themselves; empty where it is an image.
std::string raw_kind_of_tiff(const SourceFile& file);

}  // namespace ungrain::io
