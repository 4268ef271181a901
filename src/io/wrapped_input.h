// Input files that wrap another one and change its pixels or pages.
#pragma once

#include <memory>
#include <vector>

#include "io/image_file.h"

namespace ungrain::io {

// The upright pixels of a file that stores them on a side (EXIF's orientation 2 to 8). A page is decoded
// whole: in memory if it takes at most `memory` bytes (0: no limit), else in an unnamed file in the folder
// for temporary files.
std::unique_ptr<InputFile> upright(std::unique_ptr<InputFile> file, std::uint64_t memory);

// Selected pages, counted from 0.
std::unique_ptr<InputFile> with_pages(std::unique_ptr<InputFile> file, std::vector<int> pages);

}  // namespace ungrain::io
