// The list of file formats: extensions, contents, and the code that reads and writes each.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/metadata.h"
#include "ungrain/image.h"

namespace ungrain::io {

// The code that reads and writes a format.
enum class Codec : std::uint8_t { pnm, pfm, bmp, npy, nifti, hdf5, tiff, vips, dng, raw, dicom };

// Meanings of a file's channels, one bit each.
enum Layout : std::uint8_t {
  layout_gray = 1,
  layout_gray_alpha = 2,
  layout_rgb = 4,
  layout_rgb_alpha = 8,
  layout_two = 16,   // two channels, neither of them alpha
  layout_four = 32,  // four channels, none of them alpha
};

struct Format {
  std::string_view name;
  std::vector<std::string_view> extensions;
  Codec codec;
  std::string_view loader;       // libvips' name of the loader; empty: libvips does not read it
  std::string_view saver;        // one that ends in "_buffer" encodes to memory, and we write the file
  std::vector<PixelType> types;  // on writing
  unsigned layouts = 0;          // on writing; 0: read only
  bool pages = false;            // can hold several pages
  unsigned keeps = 0;            // kinds of metadata on writing: MetadataKind
};

std::span<const Format> formats();

bool can_read(const Format& format);
bool can_write(const Format& format);
bool holds(const Format& format, PixelType type);
bool holds(const Format& format, const ImageSpec& spec);  // its type with its number of channels
Layout layout_of(const ImageSpec& spec);
std::string layout_names(unsigned layouts);  // "gray, rgb with alpha"

// Null where no format has this extension.
const Format* format_of_extension(const std::filesystem::path& path);
// Null for loaders that are not allowed. `loader` is as in an image's metadata: "jpegload".
const Format* format_of_loader(std::string_view loader);

}  // namespace ungrain::io
