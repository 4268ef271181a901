// What ImageJ writes into the description of a TIFF file: lines of "key=value" behind "ImageJ=1.53t".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ungrain::io {

struct ImageJStack {
  std::int64_t images = 1;  // of the whole stack, whatever the number of directories
};

// Nothing where the description is not ImageJ's.
std::optional<ImageJStack> parse_imagej(std::string_view description);

// The description of a stack of another number of images: its channels, slices and frames no longer hold.
std::string with_images(std::string_view description, std::int64_t images);

}  // namespace ungrain::io
