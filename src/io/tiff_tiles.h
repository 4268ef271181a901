// Whether a TIFF file is tiled, which libvips does not tell.
#pragma once

#include <optional>

#include "io/source_file.h"

namespace ungrain::io {

struct TileSize {
  int width = 0;
  int height = 0;
};

// Of the first page; nothing for strips, for what is not TIFF, and for tiles of sizes that TIFF does not
// allow.
std::optional<TileSize> tiff_tiles(const SourceFile& file);

}  // namespace ungrain::io
