// What ImageJ writes into the description of a TIFF file: lines of "key=value" behind "ImageJ=1.53t".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ungrain::io {

struct ImageJStack {
  std::int64_t images = 1;  // of the whole stack, for any number of directories
};

// Nothing where ImageJ did not write the description.
std::optional<ImageJStack> parse_imagej(std::string_view description);

// The description of a stack with another number of images, without its counts of channels, slices and
// frames, which no longer hold.
std::string with_images(std::string_view description, std::int64_t images);

}  // namespace ungrain::io
