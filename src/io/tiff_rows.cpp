#include "io/tiff_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "io/failure.h"
#include "io/tiff_handle.h"

namespace ungrain::io {
namespace {

std::size_t bytes_of_samples(std::uint64_t samples, int bits) {
  return static_cast<std::size_t>((samples * static_cast<std::uint64_t>(bits) + 7) / 8);
}

// Every plane has its own handle: libtiff would decode a strip again from its start after a row of another
// plane.
std::vector<TiffHandle> open_planes(const SourceFile& file, std::uint64_t directory, int planes) {
  std::vector<TiffHandle> handles;
  for (int plane = 0; plane < planes; ++plane) {
    TiffHandle& handle = handles.emplace_back(file, directory);
    if (handle.field<std::uint16_t>(TIFFTAG_COMPRESSION, 0) == COMPRESSION_JPEG) {
      TIFFSetField(handle.get(), TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    }
  }
  return handles;
}

class Strips final : public TiffRows {
 public:
  Strips(const SourceFile& file, std::uint64_t directory, const TiffLayout& layout)
      : file_(file),
        handles_(open_planes(file, directory, layout.planes())),
        rows_(handles_.size()),
        next_(handles_.size()),
        strip_rows_(
            std::max<std::uint32_t>(1, handles_.front().field<std::uint32_t>(TIFFTAG_ROWSPERSTRIP, 1))) {
    for (std::size_t plane = 0; plane < handles_.size(); ++plane) {
      rows_[plane].resize(static_cast<std::size_t>(TIFFScanlineSize64(handles_[plane].get())));
    }
    const std::size_t wanted =
        bytes_of_samples(static_cast<std::uint64_t>(layout.width) * layout.samples_of_plane(), layout.bits);
    if (rows_.front().size() < wanted) fail(file.path(), "damaged: its rows are shorter than its width");
  }

  const std::byte* row(int plane, std::uint32_t y) override {
    const auto index = static_cast<std::size_t>(plane);
    std::uint32_t& next = next_[index];
    // Compressed rows can be read only in order, from the first of their strip on.
    const std::uint32_t strip_top = y - y % strip_rows_;
    for (std::uint32_t at = next >= strip_top && next <= y ? next : strip_top; at <= y; ++at) {
      if (TIFFReadScanline(handles_[index].get(), rows_[index].data(), at,
                           static_cast<std::uint16_t>(plane)) != 1) {
        fail(file_.path(),
             fmt::format("damaged or truncated at row {}: {}", at, handles_[index].take_message()));
      }
    }
    next = y + 1;
    return rows_[index].data();
  }

 private:
  const SourceFile& file_;
  std::vector<TiffHandle> handles_;
  std::vector<std::vector<std::byte>> rows_;
  std::vector<std::uint32_t> next_;  // the row after the last one read
  std::uint32_t strip_rows_;
};

// Decodes a whole row of tiles at once.
class Tiles final : public TiffRows {
 public:
  Tiles(const SourceFile& file, std::uint64_t directory, const TiffLayout& layout)
      : file_(file), layout_(layout), handles_(open_planes(file, directory, layout.planes())) {
    for (TiffHandle& handle : handles_) {
      Plane& plane = planes_.emplace_back();
      plane.tile.resize(static_cast<std::size_t>(TIFFTileSize64(handle.get())));
      if (plane.tile.size() < tile_row_bytes() * layout_.tile_height) {
        fail(file_.path(), "damaged: its tiles are smaller than their size");
      }
    }
  }

  const std::byte* row(int plane_index, std::uint32_t y) override {
    Plane& plane = planes_[static_cast<std::size_t>(plane_index)];
    const std::uint32_t top = y / layout_.tile_height * layout_.tile_height;
    if (plane.top != top) read_tiles(plane_index, plane, top);
    return plane.rows.data() + (y - top) * row_bytes();
  }

 private:
  struct Plane {
    std::optional<std::uint32_t> top;
    std::vector<std::byte> rows;
    std::vector<std::byte> tile;
  };

  std::uint64_t samples(std::uint32_t pixels) const {
    return static_cast<std::uint64_t>(pixels) * layout_.samples_of_plane();
  }
  std::size_t tile_row_bytes() const { return bytes_of_samples(samples(layout_.tile_width), layout_.bits); }
  std::size_t row_bytes() const { return across() * tile_row_bytes(); }
  std::size_t across() const { return (layout_.width + layout_.tile_width - 1) / layout_.tile_width; }

  void read_tiles(int plane_index, Plane& plane, std::uint32_t top) {
    TiffHandle& handle = handles_[static_cast<std::size_t>(plane_index)];
    plane.top.reset();
    plane.rows.resize(row_bytes() * layout_.tile_height);
    for (std::size_t i = 0; i < across(); ++i) {
      const auto left = static_cast<std::uint32_t>(i * layout_.tile_width);
      if (TIFFReadTile(handle.get(), plane.tile.data(), left, top, 0,
                       static_cast<std::uint16_t>(plane_index)) < 0) {
        fail(file_.path(), fmt::format("damaged or truncated at row {}: {}", top, handle.take_message()));
      }
      for (std::uint32_t y = 0; y < layout_.tile_height; ++y) {
        std::copy_n(plane.tile.data() + y * tile_row_bytes(), tile_row_bytes(),
                    plane.rows.data() + y * row_bytes() + i * tile_row_bytes());
      }
    }
    plane.top = top;
  }

  const SourceFile& file_;
  TiffLayout layout_;
  std::vector<TiffHandle> handles_;
  std::vector<Plane> planes_;
};

// Images that libtiff converts to 8-bit rgb itself: subsampled YCbCr, JPEG as in TIFF 6.0.
class RgbaRows final : public TiffRows {
 public:
  RgbaRows(const SourceFile& file, std::uint64_t directory, const TiffLayout& layout)
      : file_(file), layout_(layout), handle_(file, directory) {
    TIFFSetField(handle_.get(), TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT);  // rows as stored
  }

  const std::byte* row(int /*plane*/, std::uint32_t y) override {
    const std::uint32_t step = layout_.tile_width != 0 ? layout_.tile_height : layout_.strip_rows;
    const std::uint32_t top = y / step * step;
    if (top_ != top) {
      top_.reset();
      layout_.tile_width != 0 ? read_tiles(top) : read_strip(top, step);
      top_ = top;
    }
    return reinterpret_cast<const std::byte*>(rows_.data() +
                                              static_cast<std::size_t>(y - top) * layout_.width);
  }

 private:
  void read_strip(std::uint32_t top, std::uint32_t step) {
    const std::uint32_t count = std::min(step, layout_.height - top);
    raster_.resize(static_cast<std::size_t>(layout_.width) * step);
    rows_.resize(raster_.size());
    if (TIFFReadRGBAStripExt(handle_.get(), top, raster_.data(), 1) != 1) fail_at(top);
    for (std::uint32_t y = 0; y < count; ++y) {  // from the bottom up
      copy_row(raster_.data() + static_cast<std::size_t>(count - 1 - y) * layout_.width, layout_.width, y, 0);
    }
  }

  void read_tiles(std::uint32_t top) {
    const std::uint32_t width = layout_.tile_width;
    const std::uint32_t height = layout_.tile_height;
    raster_.resize(static_cast<std::size_t>(width) * height);
    rows_.resize(static_cast<std::size_t>(layout_.width) * height);
    for (std::uint32_t left = 0; left < layout_.width; left += width) {
      if (TIFFReadRGBATileExt(handle_.get(), left, top, raster_.data(), 1) != 1) fail_at(top);
      for (std::uint32_t y = 0; y < height; ++y) {
        copy_row(raster_.data() + static_cast<std::size_t>(height - 1 - y) * width,
                 std::min(width, layout_.width - left), y, left);
      }
    }
  }

  void copy_row(const std::uint32_t* from, std::uint32_t pixels, std::uint32_t y, std::uint32_t x) {
    std::uint32_t* to = rows_.data() + static_cast<std::size_t>(y) * layout_.width + x;
    std::copy_n(from, pixels, to);
  }

  [[noreturn]] void fail_at(std::uint32_t y) {
    fail(file_.path(), fmt::format("damaged or truncated at row {}: {}", y, handle_.take_message()));
  }

  const SourceFile& file_;
  TiffLayout layout_;
  TiffHandle handle_;
  std::optional<std::uint32_t> top_;
  std::vector<std::uint32_t> raster_;
  std::vector<std::uint32_t> rows_;
};

}  // namespace

std::unique_ptr<TiffRows> tiff_rows(const SourceFile& file, std::uint64_t directory,
                                    const TiffLayout& layout) {
  if (layout.as_rgba) return std::make_unique<RgbaRows>(file, directory, layout);
  if (layout.tile_width != 0) return std::make_unique<Tiles>(file, directory, layout);
  return std::make_unique<Strips>(file, directory, layout);
}

std::uint64_t row_memory(const TiffLayout& layout) {
  const std::uint64_t step = layout.tile_width != 0 ? layout.tile_height
                             : layout.as_rgba       ? layout.strip_rows
                                                    : 1;
  const std::uint64_t tile = layout.tile_width;
  const std::uint64_t across = tile == 0 ? layout.width : (layout.width + tile - 1) / tile * tile;
  const std::uint64_t samples =
      across * step * static_cast<std::uint64_t>(layout.as_rgba ? 4 : layout.samples);
  return (samples * static_cast<std::uint64_t>(layout.as_rgba ? 8 : layout.bits) + 7) / 8 *
         (layout.as_rgba ? 2 : 1);
}

}  // namespace ungrain::io
