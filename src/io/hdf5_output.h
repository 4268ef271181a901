// HDF5 files as outputs.
#pragma once

#include <filesystem>
#include <memory>

#include "io/image_file.h"

namespace ungrain::io {

// An output of the shape of `like` (may be null) is a copy of its file in which one dataset is replaced.
std::unique_ptr<OutputFile> create_hdf5(const std::filesystem::path& path, const FileInfo& info,
                                        const InputFile* like, const SaveOptions& options);

}  // namespace ungrain::io
