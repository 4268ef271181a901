// TIFF files, decoded by libtiff page by page and row by row.
#pragma once

#include <memory>

#include "io/image_file.h"
#include "io/source_file.h"

namespace ungrain::io {

bool is_tiff(const SourceFile& file);
std::unique_ptr<InputFile> open_tiff(SourceFile file, const OpenOptions& options);

}  // namespace ungrain::io
