// What ImageJ writes into the description of a TIFF file: lines of "key=value" behind "ImageJ=1.53t".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ungrain::io {

struct ImageJStack {
  std::int64_t images = 1;  // of the whole stack, for any number of directories
  std::int64_t channels = 1;
  std::int64_t slices = 1;
  std::int64_t frames = 1;
  std::string order = "czt";           // of the images: the axis that changes fastest first
  std::optional<double> spacing = {};  // of slices, in ImageJ's unit or its own
  std::string unit = {};               // of pixels: XResolution counts those of one unit
  std::string depth_unit = {};         // of the spacing; empty: the same
};

// Nothing where ImageJ did not write the description.
std::optional<ImageJStack> parse_imagej(std::string_view description);

// The description of a stack with another number of images, without its counts of channels, slices and
// frames, which no longer hold.
std::string with_images(std::string_view description, std::int64_t images);

}  // namespace ungrain::io
