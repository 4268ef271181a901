// DNG files: uncompressed 16-bit samples of a camera raw file.
#pragma once

#include <memory>

#include "io/image_file.h"
#include "io/raw_file.h"

namespace ungrain::io {

// `info.spec` has raw_spec()'s size and channels and any type and white level. Samples are scaled to the
// file's numbers and black is added. EXIF and XMP of `metadata` are written.
std::unique_ptr<OutputFile> create_dng(const std::filesystem::path& path, const FileInfo& info,
                                       const RawInfo& raw, const Metadata& metadata);

}  // namespace ungrain::io
