// TIFF files, encoded by libtiff row by row.
#pragma once

#include <memory>

#include "io/image_file.h"

namespace ungrain::io {

std::unique_ptr<OutputFile> create_tiff(const std::filesystem::path& path, const FileInfo& info,
                                        const InputFile* like, const SaveOptions& options);

}  // namespace ungrain::io
