// Input files that change how another is seen.
#pragma once

#include <memory>
#include <vector>

#include "io/image_file.h"

namespace ungrain::io {

// The pixels of a file that says that they lie on a side (EXIF's orientation 2 to 8), upright. A page is
// decoded whole: in memory where it takes no more than `memory` bytes (0: any number), else in a file without
// a name in the folder for temporary files.
std::unique_ptr<InputFile> upright(std::unique_ptr<InputFile> file, std::uint64_t memory);

// Some of the pages, counted from 0.
std::unique_ptr<InputFile> with_pages(std::unique_ptr<InputFile> file, std::vector<int> pages);

}  // namespace ungrain::io
