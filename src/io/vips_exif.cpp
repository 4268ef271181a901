#include "io/vips_exif.h"

#include <string_view>
#include <vector>

namespace ungrain::io {
namespace {

// Savers write only the tags that the image has as fields, and libvips creates those only when it loads a
// file. So this loads the smallest possible JPEG with the block in it. Null where this libvips has no JPEG.
VipsPointer<VipsImage> parsed(const std::vector<std::byte>& jpeg) {
  VipsImage* image = nullptr;
  // The bytes are not needed afterwards, because no pixels are requested.
  if (vips_jpegload_buffer(const_cast<std::byte*>(jpeg.data()), jpeg.size(), &image, nullptr) != 0) {
    vips_error_clear();
  }
  return VipsPointer<VipsImage>(image);
}

std::vector<std::byte> jpeg_with(std::span<const std::byte> block) {
  VipsImage* pixel = nullptr;
  if (vips_black(&pixel, 1, 1, nullptr) != 0) {
    vips_error_clear();
    return {};
  }
  const VipsPointer<VipsImage> owned(pixel);
  void* data = nullptr;
  std::size_t size = 0;
  constexpr std::size_t start_bytes = 2;
  if (vips_jpegsave_buffer(pixel, &data, &size, "strip", TRUE, nullptr) != 0 || size < start_bytes) {
    vips_error_clear();
    return {};
  }
  const auto* bytes = static_cast<const std::byte*>(data);
  std::vector<std::byte> jpeg(bytes, bytes + start_bytes);
  const std::size_t segment = block.size() + 2;  // its length counts itself
  for (const std::size_t byte : {std::size_t{0xff}, std::size_t{0xe1}, segment >> 8U, segment & 0xffU}) {
    jpeg.push_back(static_cast<std::byte>(byte));
  }
  jpeg.insert(jpeg.end(), block.begin(), block.end());
  jpeg.insert(jpeg.end(), bytes + start_bytes, bytes + size);
  g_free(data);
  return jpeg;
}

}  // namespace

VipsPointer<VipsImage> exif_fields(std::span<const std::byte> exif) {
  constexpr std::size_t largest_segment = 0xffff - 2;
  constexpr std::string_view mark = {"Exif\0\0", 6};
  if (exif.empty() || exif.size() + mark.size() > largest_segment) return nullptr;
  std::vector<std::byte> block;
  for (const char c : mark) block.push_back(static_cast<std::byte>(c));
  block.insert(block.end(), exif.begin(), exif.end());
  VipsPointer<VipsImage> fields(vips_image_new());
  const std::vector<std::byte> jpeg = jpeg_with(block);
  if (!jpeg.empty()) {
    if (const VipsPointer<VipsImage> image = parsed(jpeg)) copy_exif_fields(image.get(), fields.get());
  }
  vips_image_set_blob_copy(fields.get(), VIPS_META_EXIF_NAME, block.data(), block.size());
  return fields;
}

void copy_exif_fields(VipsImage* from, VipsImage* to) {
  if (vips_image_get_typeof(to, VIPS_META_EXIF_NAME) != 0) return;
  const std::unique_ptr<char*, decltype(&g_strfreev)> fields(vips_image_get_fields(from), &g_strfreev);
  for (char** field = fields.get(); field != nullptr && *field != nullptr; ++field) {
    const std::string_view name(*field);
    if (name == VIPS_META_EXIF_NAME || name.starts_with("exif-ifd") || name == "jpeg-thumbnail-data") {
      copy_vips_field(from, to, *field);
    }
  }
}

}  // namespace ungrain::io
