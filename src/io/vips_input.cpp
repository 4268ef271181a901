#include "io/vips_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "io/container_checks.h"
#include "io/exr_header.h"
#include "io/failure.h"
#include "io/formats.h"
#include "io/packed_rows.h"
#include "io/signature.h"
#include "io/vips_metadata.h"

namespace ungrain::io {
namespace {

// The pixel type that a libvips format becomes.
struct Conversion {
  VipsBandFormat from;
  PixelType to;
  std::string_view name;  // of the converted format; empty: no conversion
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

// libvips treats every channel beyond the colours as alpha; we only a single extra one, the second or fourth.
bool has_alpha(VipsImage* image, VipsInterpretation interpretation) {
  const int bands = image->Bands;
  const bool gray = interpretation == VIPS_INTERPRETATION_B_W || interpretation == VIPS_INTERPRETATION_GREY16;
  return vips_image_hasalpha(image) && (gray ? bands == 2 : bands == 4);
}

// Formats whose decoders hold the whole image, and how many copies.
constexpr std::array whole_image_decoders = {
    std::pair{std::string_view("WebP"), 3.0},      std::pair{std::string_view("GIF"), 2.0},
    std::pair{std::string_view("HEIF"), 3.0},      std::pair{std::string_view("JPEG XL"), 6.0},
    std::pair{std::string_view("JPEG 2000"), 4.0},
};

// libjpeg's warnings that mean wrong pixels. Surplus bytes and odd headers do no harm.
bool is_damage(std::string_view message) {
  const auto has = [&](std::string_view words) { return message.find(words) != std::string_view::npos; };
  return (has("Corrupt JPEG data") && !has("extraneous")) || has("Premature end");
}

VipsPointer<VipsImage> replaced_by(VipsImage* image) { return VipsPointer<VipsImage>(image); }

}  // namespace

VipsInput::VipsInput(SourceFile file, const OpenOptions& options) : file_(std::move(file)) {
  find_loader();
  check_frames(file_, info_.format, options.pages);
  open();
  describe(options);
  metadata_ = read_vips_metadata(image_.get(), *format_, file_);
  count_memory();
}

void VipsInput::find_loader() {
  const std::string name = file_.path().string();
  const char* found = nullptr;
  // libvips would parse "[...]" at the end of a name as options; a source of bytes has no name.
  by_source_ = name.ends_with(']');
  if (by_source_) {
    const VipsPointer<VipsSource> source(vips_source_new_from_file(name.c_str()));
    if (source) found = vips_foreign_find_load_source(source.get());
  } else {
    found = vips_foreign_find_load(name.c_str());
  }
  vips_error_clear();
  format_ = found == nullptr ? nullptr : format_of_loader(vips_nickname(found));
  if (format_ == nullptr) {
    const std::string_view claimed = format_by_signature(file_);
    if (!claimed.empty()) fail(file_.path(), fmt::format("a {} file that is damaged or truncated", claimed));
    fail(file_.path(), "not an image that this build can read");
  }
  loader_ = found;
  info_.format = format_->name;
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
  // Most of libjpeg's warnings mean wrong pixels.
  const bool strict = format_->name == "JPEG" && !tolerant_;
  call.set_if_there("fail_on", strict ? VIPS_FAIL_ON_WARNING : VIPS_FAIL_ON_ERROR);
  if (all_pages) call.set_if_there("n", -1);
  return call.run() ? call.output() : nullptr;
}

void VipsInput::fail_to_load() {
  const std::string message = take_vips_message();
  const VipsPointer<VipsImage> first_page = load(false);
  vips_error_clear();
  if (first_page && vips_image_get_n_pages(first_page.get()) > 1) {
    fail(file_.path(), fmt::format("its {} pages cannot be read together: {}",
                                   vips_image_get_n_pages(first_page.get()), message));
  }
  fail(file_.path(), fmt::format("cannot be decoded: {}", message));
}

void VipsInput::open() {
  image_ = nullptr;  // released first, so that two decoders never hold their buffers at once
  image_ = load(true);
  if (!image_ && format_->name == "JPEG" && !tolerant_) {
    vips_error_clear();
    tolerant_ = true;
    image_ = load(true);
  }
  if (!image_) fail_to_load();
  convert();
  next_row_ = 0;
}

// Converts to one of our pixel types.
void VipsInput::convert() {
  VipsImage* decoded = nullptr;
  if (vips_image_decode(image_.get(), &decoded) != 0) fail(file_.path(), take_vips_message());
  image_ = replaced_by(decoded);
  if (format_->name == "OpenEXR") choose_exr_channels();
  const Conversion* conversion = conversion_from(image_->BandFmt);
  if (conversion == nullptr) fail(file_.path(), "its samples are complex numbers");
  info_.white_unknown = conversion->to == PixelType::f32;
  if (conversion->name.empty()) return;
  info_.note = fmt::format("{} samples converted to f32", conversion->name);
  info_.spec.range = conversion->range;
  if (image_->BandFmt == VIPS_FORMAT_DOUBLE) return;  // read_rows() converts and checks each sample
  VipsImage* cast = nullptr;
  if (vips_cast_float(image_.get(), &cast, nullptr) != 0) fail(file_.path(), take_vips_message());
  image_ = replaced_by(cast);
}

// libvips gives red, green, blue and an alpha of 0 to 255 for any set of channels.
void VipsInput::choose_exr_channels() {
  const std::vector<std::string> channels = exr_channels(file_);
  const auto has = [&](std::string_view name) {
    return std::find(channels.begin(), channels.end(), name) != channels.end();
  };
  if (channels.empty() || image_->Bands != 4) return;
  std::vector<std::string> others;
  for (const std::string& channel : channels) {
    if (std::string("RGBAY").find(channel) == std::string::npos || channel.size() != 1)
      others.push_back(channel);
  }
  if (!others.empty()) info_.note = fmt::format("channels left out: {}", fmt::join(others, ", "));
  const bool gray = has("Y") && !has("R");
  VipsImage* changed = nullptr;
  if (has("A")) {
    const std::array factors = {1.0, 1.0, 1.0, 1.0 / 255};
    const std::array offsets = {0.0, 0.0, 0.0, 0.0};
    if (vips_linear(image_.get(), &changed, factors.data(), offsets.data(), 4, nullptr) != 0) {
      fail(file_.path(), take_vips_message());
    }
    image_ = replaced_by(changed);
    if (!gray) return;
  }
  if (vips_extract_band(image_.get(), &changed, 0, "n", gray ? 1 : 3, nullptr) != 0) {
    fail(file_.path(), take_vips_message());
  }
  VipsPointer<VipsImage> colours = replaced_by(changed);
  if (gray && has("A")) {
    VipsImage* alpha = nullptr;
    if (vips_extract_band(image_.get(), &alpha, 3, nullptr) != 0) fail(file_.path(), take_vips_message());
    const VipsPointer<VipsImage> owned = replaced_by(alpha);
    if (vips_bandjoin2(colours.get(), owned.get(), &changed, nullptr) != 0)
      fail(file_.path(), take_vips_message());
    colours = replaced_by(changed);
  }
  if (gray) {
    VipsImage* named = nullptr;
    if (vips_copy(colours.get(), &named, "interpretation", VIPS_INTERPRETATION_B_W, nullptr) != 0) {
      fail(file_.path(), take_vips_message());
    }
    colours = replaced_by(named);
  }
  image_ = std::move(colours);
}

void VipsInput::describe(const OpenOptions& options) {
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
  const bool possible = spec.channels == 2 || spec.channels == 4;
  if (options.alpha == true && !possible) {
    fail(file_.path(), fmt::format("--alpha yes: none of its {} channels can be alpha", spec.channels));
  }
  if (interpretation == VIPS_INTERPRETATION_CMYK && spec.channels == 4) info_.model = ColourModel::cmyk;
  spec.alpha = possible && info_.model == ColourModel::usual &&
               options.alpha.value_or(has_alpha(image, interpretation));
  spec.colour = colour_of(interpretation, spec.colour_channels());
}

// Memory that libvips' decoder takes for the whole image, in bytes a sample; measured with libvips 8.14 on
// images of 36 Mpixel.
void VipsInput::count_memory() {
  VipsImage* image = image_.get();
  const auto samples = static_cast<double>(image->Xsize) * image->Ysize * image->Bands;
  const auto bytes = static_cast<double>(bytes_per_sample(info_.spec.type));
  const bool interlaced = vips_image_get_typeof(image, "interlaced") != 0;
  double each = 0;
  if (format_->name == "JPEG" && interlaced) each = 2;  // all coefficients
  if (format_->name == "PNG" && interlaced) each = bytes;
  for (const auto& [name, factor] : whole_image_decoders) {
    if (format_->name == name) each = factor * bytes;
  }
  decoding_bytes_ = static_cast<std::uint64_t>(each * samples);
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
  // One region for each call: a region belongs to the thread that made it.
  const VipsPointer<VipsRegion> region(vips_region_new(image_.get()));
  for (int done = 0; done < rows.spec.height; done += strip_rows) {
    const int count = std::min(strip_rows, rows.spec.height - done);
    const VipsRect strip = {0, top + done, info_.spec.width, count};
    if (vips_region_prepare(region.get(), &strip) != 0) {
      const std::string message = take_vips_message();
      if (!tolerant_ && format_->name == "JPEG" && !is_damage(message)) {
        tolerant_ = true;
        open();
        read_rows(first, rows);
        return;
      }
      fail(file_.path(), fmt::format("damaged or truncated: {}", message));
    }
    for (int y = 0; y < count; ++y) {
      const void* row = VIPS_REGION_ADDR(region.get(), 0, strip.top + y);
      if (image_->BandFmt == VIPS_FORMAT_DOUBLE)
        row = as_floats(static_cast<const double*>(row), first + done + y);
      unpack_row(static_cast<const std::byte*>(row), rows, done + y);
    }
  }
  next_row_ = top + rows.spec.height;
}

const float* VipsInput::as_floats(const double* row, int y) {
  floats_.resize(static_cast<std::size_t>(info_.spec.width) * info_.spec.channels);
  for (std::size_t i = 0; i < floats_.size(); ++i) {
    floats_[i] = static_cast<float>(row[i]);
    if (std::isfinite(row[i]) && !std::isfinite(floats_[i])) fail_beyond_float(file_.path(), y, row[i]);
  }
  return floats_.data();
}

std::unique_ptr<InputFile> open_vips(SourceFile file, const OpenOptions& options) {
  start_vips();
  return std::make_unique<VipsInput>(std::move(file), options);
}

}  // namespace ungrain::io
