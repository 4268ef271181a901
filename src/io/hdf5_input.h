// HDF5 files as inputs.
#pragma once

#include <memory>

#include "io/image_file.h"
#include "io/source_file.h"

namespace ungrain::io {

std::unique_ptr<InputFile> open_hdf5(SourceFile file, const OpenOptions& options);

}  // namespace ungrain::io
