// ungrain noise --camera into a DNG file: the simulated sensor's data before any processing.
#pragma once

#include <filesystem>

#include "io/image_file.h"
#include "ungrain/noise.h"

namespace ungrain::cli {

// `spec` is the scene's, with its white level.
void write_mosaic(io::InputFile& scene, const ImageSpec& spec, const CameraSettings& camera,
                  const std::filesystem::path& path);

}  // namespace ungrain::cli
