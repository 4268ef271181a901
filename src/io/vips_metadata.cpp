#include "io/vips_metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string_view>

#include "io/boxes.h"
#include "io/jpeg_segments.h"
#include "io/png_chunks.h"
#include "io/tiff_exif.h"
#include "io/vips_exif.h"

namespace ungrain::io {
namespace {

constexpr std::string_view photoshop_mark = {"Photoshop 3.0\0", 14};
constexpr std::string_view fits_prefix = "fits-";
constexpr double mm_per_inch = 25.4;
constexpr double mm_per_cm = 10;

Bytes blob_of(VipsImage* image, const char* field) {
  const void* data = nullptr;
  std::size_t size = 0;
  if (vips_image_get_typeof(image, field) == 0) return {};
  if (vips_image_get_blob(image, field, &data, &size) != 0) {
    vips_error_clear();
    return {};
  }
  const auto* bytes = static_cast<const std::byte*>(data);
  return {bytes, bytes + size};
}

void set_blob(VipsImage* image, const char* field, const Bytes& bytes) {
  if (!bytes.empty()) vips_image_set_blob_copy(image, field, bytes.data(), bytes.size());
}

std::string text_of(VipsImage* image, const char* field) {
  const char* text = nullptr;
  if (vips_image_get_typeof(image, field) == 0) return {};
  if (vips_image_get_string(image, field, &text) != 0) {
    vips_error_clear();
    return {};
  }
  return text;
}

// Of a JPEG: libvips gives the whole segment with Photoshop's resources, which contain IPTC.
void read_iptc(VipsImage* image, Metadata& metadata) {
  const Bytes segment = blob_of(image, VIPS_META_IPTC_NAME);
  const bool wrapped = segment.size() > photoshop_mark.size() &&
                       std::memcmp(segment.data(), photoshop_mark.data(), photoshop_mark.size()) == 0;
  if (!wrapped) {
    metadata.iptc = segment;
    return;
  }
  metadata.photoshop.assign(segment.begin() + static_cast<std::ptrdiff_t>(photoshop_mark.size()),
                            segment.end());
  metadata.iptc = iptc_in_photoshop(metadata.photoshop);
}

std::optional<Resolution> resolution_of(VipsImage* image) {
  // libvips reports 1 pixel a millimetre where a file says nothing.
  if ((image->Xres == 1 && image->Yres == 1) || !(image->Xres > 0) || !(image->Yres > 0)) return std::nullopt;
  if (text_of(image, VIPS_META_RESOLUTION_UNIT) == "in") {
    return Resolution{image->Xres * mm_per_inch, image->Yres * mm_per_inch, Resolution::Unit::inch};
  }
  return Resolution{image->Xres * mm_per_cm, image->Yres * mm_per_cm, Resolution::Unit::centimetre};
}

// Whether a card describes the pixels: the encoder writes those itself.
bool describes_pixels(std::string_view card) {
  static constexpr std::array keys = {
      std::string_view("SIMPLE"),  std::string_view("BITPIX"),   std::string_view("NAXIS"),
      std::string_view("EXTEND"),  std::string_view("BZERO"),    std::string_view("BSCALE"),
      std::string_view("END"),     std::string_view("PCOUNT"),   std::string_view("GCOUNT"),
      std::string_view("BLANK"),   std::string_view("CHECKSUM"), std::string_view("DATASUM"),
      std::string_view("DATAMIN"), std::string_view("DATAMAX"),  std::string_view("XTENSION")};
  const std::string_view key = card.substr(0, std::min(card.find_first_of(" ="), card.size()));
  return std::any_of(keys.begin(), keys.end(), [&](std::string_view known) {
    return key == known || (known == "NAXIS" && key.starts_with(known) && key.size() <= known.size() + 3);
  });
}

// Cards that every FITS writer adds to a standard header.
bool is_boilerplate(std::string_view card) {
  return card.starts_with("COMMENT   FITS (Flexible Image Transport System)") ||
         card.starts_with("COMMENT   and Astrophysics', volume 376");
}

std::vector<std::string> fits_cards_of(VipsImage* image) {
  std::vector<std::string> cards;
  for (int i = 0;; ++i) {
    const std::string card = text_of(image, fmt::format("{}{}", fits_prefix, i).c_str());
    if (card.empty()) return cards;
    if (!describes_pixels(card) && !is_boilerplate(card)) cards.push_back(card);
  }
}

// libvips 8.14 names items of HEIF files other than EXIF by their number.
Bytes heif_xmp(VipsImage* image) {
  constexpr int most_items = 16;
  constexpr std::string_view mark = "<x:xmpmeta";
  for (int i = 0; i < most_items; ++i) {
    Bytes item = blob_of(image, fmt::format("heif-mime-{}", i).c_str());
    const std::string_view text(reinterpret_cast<const char*>(item.data()), item.size());
    if (text.find(mark) != std::string_view::npos) return item;
  }
  return {};
}

void read_animation(VipsImage* image, Metadata& metadata) {
  int* delays = nullptr;
  int count = 0;
  if (vips_image_get_typeof(image, "delay") != 0 &&
      vips_image_get_array_int(image, "delay", &delays, &count) == 0) {
    metadata.delays.assign(delays, delays + count);
  }
  int loops = 0;
  if (vips_image_get_typeof(image, "loop") != 0 && vips_image_get_int(image, "loop", &loops) == 0) {
    metadata.loops = loops;
  }
  vips_error_clear();
}

// These decoders turn pixels upright themselves, regardless of the EXIF tag.
bool decoder_rotates(const Format& format) { return format.name == "HEIF" || format.name == "JPEG XL"; }

void write_resolution(const Resolution& resolution, VipsImage* image) {
  const double mm = resolution.unit == Resolution::Unit::centimetre ? mm_per_cm : mm_per_inch;
  image->Xres = resolution.x / mm;
  image->Yres = resolution.y / mm;
  vips_image_set_string(image, VIPS_META_RESOLUTION_UNIT,
                        resolution.unit == Resolution::Unit::centimetre ? "cm" : "in");
}

Bytes iptc_segment(const Metadata& metadata) {
  Bytes segment;
  const Bytes resources = photoshop_with_iptc(metadata.photoshop, metadata.iptc);
  if (resources.empty()) return segment;
  for (const char c : photoshop_mark) segment.push_back(static_cast<std::byte>(c));
  segment.insert(segment.end(), resources.begin(), resources.end());
  constexpr std::size_t largest = 0xffff - 2;  // of a JPEG's segment
  if (segment.size() > largest && !metadata.photoshop.empty()) {
    Metadata less;
    less.iptc = metadata.iptc;
    return iptc_segment(less);
  }
  return segment.size() > largest ? Bytes{} : segment;
}

}  // namespace

Metadata read_vips_metadata(VipsImage* image, const Format& format, const SourceFile& file) {
  Metadata metadata;
  const Bytes exif = blob_of(image, VIPS_META_EXIF_NAME);
  const std::span<const std::byte> block = without_exif_mark(exif);
  metadata.exif.assign(block.begin(), block.end());
  metadata.xmp = blob_of(image, VIPS_META_XMP_NAME);
  metadata.icc = blob_of(image, VIPS_META_ICC_NAME);
  read_iptc(image, metadata);
  metadata.resolution = resolution_of(image);
  metadata.description = text_of(image, VIPS_META_IMAGEDESCRIPTION);
  metadata.orientation = vips_image_get_orientation(image);
  read_animation(image, metadata);
  if (format.name == "PNG") {
    PngContents contents = read_png_contents(file);
    metadata.png_texts = std::move(contents.texts);
    metadata.xmp = std::move(contents.xmp);
    if (!contents.has_resolution) metadata.resolution.reset();  // libvips' default
  }
  if (format.name == "HEIF" && metadata.xmp.empty()) metadata.xmp = heif_xmp(image);
  if (format.name == "JPEG") {
    JpegSegments segments = read_jpeg_segments(file);
    metadata.jpeg_comments = std::move(segments.comments);
    metadata.jpeg_steps = std::move(segments.steps);
  }
  if (format.name == "FITS") metadata.fits_cards = fits_cards_of(image);
  if (format.name == "JPEG XL" || format.name == "JPEG 2000") read_box_metadata(file, metadata);
  if (decoder_rotates(format)) set_upright(metadata);
  return metadata;
}

void write_vips_metadata(const Metadata& metadata, const Format& format, VipsImage* image) {
  const auto keeps = [&](MetadataKind kind) { return (format.keeps & kind) != 0; };
  if (keeps(keeps_exif)) {
    if (const VipsPointer<VipsImage> fields = exif_fields(metadata.exif))
      copy_exif_fields(fields.get(), image);
  }
  vips_image_set_int(image, VIPS_META_ORIENTATION, metadata.orientation);
  if (keeps(keeps_xmp) && format.name != "PNG") set_blob(image, VIPS_META_XMP_NAME, metadata.xmp);
  if (keeps(keeps_iptc)) set_blob(image, VIPS_META_IPTC_NAME, iptc_segment(metadata));
  if (keeps(keeps_icc)) set_blob(image, VIPS_META_ICC_NAME, metadata.icc);
  if (metadata.resolution) write_resolution(*metadata.resolution, image);
  if (keeps(keeps_animation) && !metadata.delays.empty()) {
    vips_image_set_array_int(image, "delay", metadata.delays.data(),
                             static_cast<int>(metadata.delays.size()));
  }
  if (metadata.loops) vips_image_set_int(image, "loop", *metadata.loops);
  for (std::size_t i = 0; keeps(keeps_comments) && i < metadata.jpeg_comments.size(); ++i) {
    vips_image_set_string(image, fmt::format("jpeg-comment-{}", i).c_str(),
                          metadata.jpeg_comments[i].c_str());
  }
  int number = 0;
  for (const std::string& card : metadata.fits_cards) {
    if (!keeps(keeps_fits_cards)) break;
    vips_image_set_string(image, fmt::format("{}{}", fits_prefix, number++).c_str(), card.c_str());
  }
}

}  // namespace ungrain::io
