// What the rest of this folder asks of libvips.
//
// libvips brings a hundred shared libraries, which take 30 ms to load (64-bit ARM, 2 cores). The program
// therefore has it in a module of its own, which is loaded for the first file that needs it
// (vips_loaded.cpp). Tests and benchmarks link it instead (vips_linked.cpp).
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "io/browser_picture.h"
#include "io/image_file.h"
#include "io/module_loader.h"
#include "io/source_file.h"

namespace ungrain::io {

struct VipsFunctions : ModuleVersion {
  std::unique_ptr<InputFile> (*open)(SourceFile file, const OpenOptions& options);
  std::unique_ptr<OutputFile> (*create)(const std::filesystem::path& path, const FileInfo& info,
                                        const InputFile* like, const SaveOptions& options);
  bool (*has_operation)(std::string_view nickname);
  BrowserPicture (*browser_picture)(const std::vector<std::uint8_t>& samples, int width, int height,
                                    int channels);
};

extern const VipsFunctions vips_table;  // only where libvips is linked: in the module, tests and benchmarks

// Any thread may call it. Throws Error(io) where the module is missing or cannot be loaded.
const VipsFunctions& vips_functions();

}  // namespace ungrain::io
