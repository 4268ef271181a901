#include "io/vips_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "io/failure.h"
#include "io/formats.h"
#include "io/packed_rows.h"
#include "io/signature.h"
#include "io/tiff_exif.h"
#include "io/vips_exif.h"

namespace ungrain::io {
namespace {

// What a libvips format becomes.
struct Conversion {
  VipsBandFormat from;
  PixelType to;
  std::string_view name;  // of what is converted; empty: nothing is
  double range;           // 0: the type's own
};

constexpr std::array conversions = {
    Conversion{VIPS_FORMAT_UCHAR, PixelType::u8, "", 0},
    Conversion{VIPS_FORMAT_USHORT, PixelType::u16, "", 0},
    Conversion{VIPS_FORMAT_FLOAT, PixelType::f32, "", 0},
    Conversion{VIPS_FORMAT_DOUBLE, PixelType::f32, "f64", 0},
    Conversion{VIPS_FORMAT_CHAR, PixelType::f32, "i8", 127},
    Conversion{VIPS_FORMAT_SHORT, PixelType::f32, "i16", 32767},
    Conversion{VIPS_FORMAT_INT, PixelType::f32, "i32", 2147483647},
    Conversion{VIPS_FORMAT_UINT, PixelType::f32, "u32", 4294967295},
};

const Conversion* conversion_from(VipsBandFormat format) {
  const auto* found = std::find_if(conversions.begin(), conversions.end(),
                                   [&](const Conversion& conversion) { return conversion.from == format; });
  return found == conversions.end() ? nullptr : found;
}

Colour colour_of(VipsInterpretation interpretation, int colour_channels) {
  switch (interpretation) {
    case VIPS_INTERPRETATION_sRGB:
    case VIPS_INTERPRETATION_RGB:
    case VIPS_INTERPRETATION_RGB16:
    case VIPS_INTERPRETATION_scRGB:
      return colour_channels == 3 ? Colour::rgb : Colour::multi;
    default:
      return colour_channels == 1 ? Colour::gray : Colour::multi;
  }
}

// libvips takes every channel beyond the colours for alpha; we only a second or fourth that is the only one.
bool has_alpha(VipsImage* image, VipsInterpretation interpretation) {
  const int bands = image->Bands;
  const bool gray = interpretation == VIPS_INTERPRETATION_B_W || interpretation == VIPS_INTERPRETATION_GREY16;
  return vips_image_hasalpha(image) && (gray ? bands == 2 : bands == 4);
}

VipsPointer<VipsImage> replaced_by(VipsImage* image) { return VipsPointer<VipsImage>(image); }

}  // namespace

VipsInput::VipsInput(SourceFile file) : file_(std::move(file)) {
  find_loader();
  if (info_.format == "TIFF") exif_ = exif_fields(exif_of_tiff(file_));  // libvips reads none of TIFF
  open();
  describe();
}

void VipsInput::find_loader() {
  const std::string name = file_.path().string();
  const char* found = nullptr;
  // libvips would take "[...]" at the end of a name for options; the bytes alone have no name.
  by_source_ = name.ends_with(']');
  if (by_source_) {
    const VipsPointer<VipsSource> source(vips_source_new_from_file(name.c_str()));
    if (source) found = vips_foreign_find_load_source(source.get());
  } else {
    found = vips_foreign_find_load(name.c_str());
  }
  vips_error_clear();
  const Format* format = found == nullptr ? nullptr : format_of_loader(vips_nickname(found));
  if (format == nullptr) {
    const std::string_view claimed = format_by_signature(file_);
    if (!claimed.empty()) fail(file_.path(), fmt::format("a {} file that is damaged or truncated", claimed));
    fail(file_.path(), "not an image that this build can read");
  }
  loader_ = found;
  info_.format = format->name;
}

VipsPointer<VipsImage> VipsInput::load(bool all_pages) {
  const std::string name = file_.path().string();
  VipsCall call(loader_);
  VipsPointer<VipsSource> source;
  if (by_source_) {
    source.reset(vips_source_new_from_file(name.c_str()));
    if (!source) return nullptr;
    call.set("source", source.get());
  } else {
    call.set("filename", name.c_str());
  }
  call.set("access", VIPS_ACCESS_SEQUENTIAL);
  call.set_if_there("fail_on", VIPS_FAIL_ON_ERROR);
  if (all_pages) call.set_if_there("n", -1);
  return call.run() ? call.output() : nullptr;
}

void VipsInput::fail_to_load() {
  std::string message = take_vips_message();
  // What libvips says of a TIFF with more than 32 bits a sample.
  if (message == "samples out of range") message = "samples of this type cannot be read (64 bits?)";
  const VipsPointer<VipsImage> first_page = load(false);
  vips_error_clear();
  if (first_page && vips_image_get_n_pages(first_page.get()) > 1) {
    fail(file_.path(), fmt::format("its {} pages cannot be read together: {}",
                                   vips_image_get_n_pages(first_page.get()), message));
  }
  fail(file_.path(), message);
}

void VipsInput::open() {
  image_ = nullptr;  // first, so that two decoders never hold their buffers at once
  image_ = load(true);
  if (!image_) fail_to_load();
  convert();
  if (exif_) copy_exif_fields(exif_.get(), image_.get());
  next_row_ = 0;
}

// To pixels of one of our types.
void VipsInput::convert() {
  VipsImage* decoded = nullptr;
  if (vips_image_decode(image_.get(), &decoded) != 0) fail(file_.path(), take_vips_message());
  image_ = replaced_by(decoded);
  const Conversion* conversion = conversion_from(image_->BandFmt);
  if (conversion == nullptr) fail(file_.path(), "its samples are complex numbers");
  if (conversion->name.empty()) return;
  info_.note = fmt::format("{} samples converted to f32", conversion->name);
  info_.spec.range = conversion->range;
  VipsImage* cast = nullptr;
  if (vips_cast_float(image_.get(), &cast, nullptr) != 0) fail(file_.path(), take_vips_message());
  image_ = replaced_by(cast);
}

void VipsInput::describe() {
  VipsImage* image = image_.get();
  if (image->Bands > max_channels) {
    fail(file_.path(), fmt::format("has {} channels: 1 to {} are supported", image->Bands, max_channels));
  }

  const int page_height = vips_image_get_page_height(image);
  info_.pages = image->Ysize / page_height;
  ImageSpec& spec = info_.spec;
  spec.width = image->Xsize;
  spec.height = page_height;
  spec.channels = image->Bands;
  spec.type = conversion_from(image->BandFmt)->to;
  const VipsInterpretation interpretation = vips_image_guess_interpretation(image);
  spec.alpha = has_alpha(image, interpretation);
  spec.colour = colour_of(interpretation, spec.colour_channels());
}

void VipsInput::select_page(int page) {
  if (page < 0 || page >= info_.pages) fail(file_.path(), fmt::format("has no page {}", page + 1));
  page_ = page;
}

void VipsInput::read_rows(int first, const ImageView& rows) {
  check_rows(file_.path(), info_.spec, first, rows);
  const int top = page_ * info_.spec.height + first;
  if (top < next_row_) open();
  constexpr std::size_t strip_bytes = std::size_t{1} << 20U;
  const int strip_rows =
      static_cast<int>(std::clamp<std::size_t>(strip_bytes / row_bytes(info_.spec), 1, info_.spec.height));
  // Of its own for each call: a region belongs to the thread that made it.
  const VipsPointer<VipsRegion> region(vips_region_new(image_.get()));
  for (int done = 0; done < rows.spec.height; done += strip_rows) {
    const int count = std::min(strip_rows, rows.spec.height - done);
    const VipsRect strip = {0, top + done, info_.spec.width, count};
    if (vips_region_prepare(region.get(), &strip) != 0) {
      fail(file_.path(), fmt::format("damaged or truncated: {}", take_vips_message()));
    }
    for (int y = 0; y < count; ++y) {
      unpack_row(reinterpret_cast<const std::byte*>(VIPS_REGION_ADDR(region.get(), 0, strip.top + y)), rows,
                 done + y);
    }
  }
  next_row_ = top + rows.spec.height;
}

std::unique_ptr<InputFile> open_vips(SourceFile file) {
  start_vips();
  return std::make_unique<VipsInput>(std::move(file));
}

}  // namespace ungrain::io
