// The rows of one page of a TIFF file as stored: from strips or tiles, with interleaved or planar channels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "io/source_file.h"

namespace ungrain::io {

struct TiffLayout {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  int bits = 1;
  int samples = 1;               // a pixel
  bool planar = false;           // each channel in its own strips or tiles
  std::uint32_t tile_width = 0;  // 0: strips
  std::uint32_t tile_height = 0;
  std::uint32_t strip_rows = 0;
  bool as_rgba = false;  // libtiff converts it to 8-bit red, green, blue and alpha

  int planes() const { return planar && !as_rgba ? samples : 1; }
  int samples_of_plane() const { return as_rgba ? 4 : planar ? 1 : samples; }
};

class TiffRows {
 public:
  virtual ~TiffRows() = default;
  // Any order; top to bottom is fast. The memory is valid until the next call for this plane. Samples of 16
  // bits and more are in the processor's byte order.
  virtual const std::byte* row(int plane, std::uint32_t y) = 0;
};

// `file` must outlive the rows.
std::unique_ptr<TiffRows> tiff_rows(const SourceFile& file, std::uint64_t directory,
                                    const TiffLayout& layout);

// Memory that the rows take at most, besides the file's compressed strips.
std::uint64_t row_memory(const TiffLayout& layout);

}  // namespace ungrain::io
