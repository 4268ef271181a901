// What the rest of this folder asks of libhdf5.
//
// Debian's libhdf5 brings thirty shared libraries, which take some 20 ms to load (64-bit ARM, 2 cores). The
// program therefore has it in a module of its own, as it has libvips (vips_functions.h).
#pragma once

#include <filesystem>
#include <memory>

#include "io/image_file.h"
#include "io/module_loader.h"
#include "io/source_file.h"

namespace ungrain::io {

struct Hdf5Functions : ModuleVersion {
  std::unique_ptr<InputFile> (*open)(SourceFile file, const OpenOptions& options);
  std::unique_ptr<OutputFile> (*create)(const std::filesystem::path& path, const FileInfo& info,
                                        const InputFile* like, const SaveOptions& options);
};

extern const Hdf5Functions hdf5_table;  // only where libhdf5 is linked: in the module and in tests

// Any thread may call it. Throws Error(io) where the module is missing or cannot be loaded.
const Hdf5Functions& hdf5_functions();

}  // namespace ungrain::io
