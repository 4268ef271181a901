// Camera raw files through LibRaw.
#pragma once

#include <memory>
#include <string_view>

#include "io/raw_file.h"
#include "io/source_file.h"

namespace ungrain::io {

// `kind` is raw_kind()'s. Throws where LibRaw cannot read the file, and where its pixels are neither a Bayer
// mosaic of red, green and blue nor a monochrome sensor's.
std::unique_ptr<RawFile> open_raw(SourceFile file, std::string_view kind);

}  // namespace ungrain::io
