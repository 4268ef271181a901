#include "io/vips_output.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <exception>
#include <span>
#include <string_view>
#include <thread>
#include <utility>

#include "io/failure.h"
#include "io/formats.h"
#include "io/packed_rows.h"
#include "io/row_queue.h"
#include "io/temporary_file.h"
#include "io/tiff_exif.h"
#include "io/vips_exif.h"
#include "io/vips_input.h"
#include "io/vips_session.h"

namespace ungrain::io {
namespace {

// Everything else that libvips knows of an image says how its file was made, and would be wrong for ours.
constexpr std::array carried_fields = {
    std::string_view(VIPS_META_EXIF_NAME),
    std::string_view(VIPS_META_XMP_NAME),
    std::string_view(VIPS_META_IPTC_NAME),
    std::string_view(VIPS_META_PHOTOSHOP_NAME),
    std::string_view(VIPS_META_IMAGEDESCRIPTION),
    std::string_view(VIPS_META_RESOLUTION_UNIT),
    std::string_view(VIPS_META_ORIENTATION),
    std::string_view("jpeg-thumbnail-data"),
    std::string_view("delay"),
    std::string_view("loop"),
};
// The EXIF block is written anew from these single tags: without them it would be empty.
constexpr std::array carried_prefixes = {std::string_view("exif-ifd"), std::string_view("png-comment-")};

bool is_carried(std::string_view field) {
  return std::find(carried_fields.begin(), carried_fields.end(), field) != carried_fields.end() ||
         std::any_of(carried_prefixes.begin(), carried_prefixes.end(),
                     [&](std::string_view prefix) { return field.starts_with(prefix); });
}

// A profile describes the channels: it stays only with as many of them.
void copy_metadata(VipsImage* from, VipsImage* to) {
  to->Xres = from->Xres;
  to->Yres = from->Yres;
  const std::unique_ptr<char*, decltype(&g_strfreev)> fields(vips_image_get_fields(from), &g_strfreev);
  for (char** field = fields.get(); field != nullptr && *field != nullptr; ++field) {
    const bool profile = std::string_view(*field) == VIPS_META_ICC_NAME;
    if (profile ? from->Bands == to->Bands : is_carried(*field)) copy_vips_field(from, to, *field);
  }
}

VipsBandFormat band_format(PixelType type) {
  switch (type) {
    case PixelType::u8:
      return VIPS_FORMAT_UCHAR;
    case PixelType::u16:
      return VIPS_FORMAT_USHORT;
    default:
      return VIPS_FORMAT_FLOAT;
  }
}

VipsInterpretation gray_as(PixelType type) {
  return type == PixelType::u16 ? VIPS_INTERPRETATION_GREY16 : VIPS_INTERPRETATION_B_W;
}
VipsInterpretation rgb_as(PixelType type) {
  return type == PixelType::u8    ? VIPS_INTERPRETATION_sRGB
         : type == PixelType::u16 ? VIPS_INTERPRETATION_RGB16
                                  : VIPS_INTERPRETATION_scRGB;
}

// Where the channels are independent: what they were in the file they come from, and else what the format
// takes them for.
VipsInterpretation multi_as(const Format& format, const ImageSpec& spec, const VipsInput* like) {
  if (like != nullptr && like->info().spec.channels == spec.channels && like->info().spec.type == spec.type) {
    const VipsInterpretation was = vips_image_guess_interpretation(like->image());
    if (was == VIPS_INTERPRETATION_CMYK || was == VIPS_INTERPRETATION_LAB) return was;
  }
  if (spec.channels == 4 && format.name == "JPEG") return VIPS_INTERPRETATION_CMYK;
  if (format.name == "TIFF") return VIPS_INTERPRETATION_MULTIBAND;
  return spec.colour_channels() == 1 ? gray_as(spec.type) : rgb_as(spec.type);
}

VipsInterpretation interpretation_of(const Format& format, const ImageSpec& spec, const VipsInput* like) {
  switch (spec.colour) {
    case Colour::gray:
      return gray_as(spec.type);
    case Colour::rgb:
      return rgb_as(spec.type);
    case Colour::multi:
      return multi_as(format, spec, like);
  }
  return VIPS_INTERPRETATION_MULTIBAND;
}

// An encoder that replaces our temporary file instead of writing to it must not open it to others. The umask
// is the whole process's unless a thread parts from it; where the system forbids that, commit() sets the
// permissions all the same.
void make_new_files_private() {
#ifdef __linux__
  if (unshare(CLONE_FS) == 0) umask(077);
#endif
}

// Encoders pull and the program pushes: the encoder runs in a thread of its own over an image whose pixels it
// takes from a queue, waiting where they are not there yet.
class VipsOutput final : public OutputFile {
 public:
  VipsOutput(const std::filesystem::path& path, const FileInfo& info, const VipsInput* like,
             const SaveOptions& options)
      : file_(path, info.access),
        format_(*format_of_extension(path)),
        spec_(info.spec),
        pages_(info.pages),
        cursor_(path, info.spec.height, info.pages),
        queue_(row_bytes(info.spec), queue_rows(info.spec)),
        saver_(format_.saver) {
    make_image(like);
    set_options(like, options);
    thread_ = std::thread([this] { save(); });
  }

  ~VipsOutput() override {
    queue_.abandon();
    if (thread_.joinable()) thread_.join();
  }

  void write_rows(int first, const ConstImageView& rows) override {
    check_rows(file_.target(), spec_, first, rows);
    cursor_.take(first, rows.spec.height);
    for (int y = 0; y < rows.spec.height; ++y) {
      RowQueue::Row row = queue_.blank();
      pack_row(rows, y, row.data());
      if (!queue_.push(std::move(row))) fail_as_saver();
    }
  }

  void next_page() override { cursor_.next_page(); }

  void commit() override {
    cursor_.check_complete();
    if (thread_.joinable()) thread_.join();
    if (!saved_) fail_as_saver();
    if (encoded_) {
      std::size_t size = 0;
      const void* bytes = vips_blob_get(encoded_.get(), &size);
      file_.write(bytes, size, 0);
    }
    if (format_.name == "TIFF") add_exif();
    file_.commit();
  }

 private:
  static std::size_t queue_rows(const ImageSpec& spec) {
    constexpr std::size_t queue_bytes = std::size_t{8} << 20U;
    return std::clamp<std::size_t>(queue_bytes / row_bytes(spec), 2, 1024);
  }

  void make_image(const VipsInput* like) {
    image_.reset(vips_image_new());
    VipsImage* image = image_.get();
    const std::int64_t height = static_cast<std::int64_t>(spec_.height) * pages_;
    if (spec_.width > VIPS_MAX_COORD || height > VIPS_MAX_COORD) {
      fail(file_.target(), fmt::format("{} x {} pixels are too many a side for libvips ({})", spec_.width,
                                       height, VIPS_MAX_COORD));
    }
    vips_image_init_fields(image, spec_.width, static_cast<int>(height), spec_.channels,
                           band_format(spec_.type), VIPS_CODING_NONE, interpretation_of(format_, spec_, like),
                           1, 1);
    if (like != nullptr) copy_metadata(like->image(), image);
    if (pages_ > 1) {
      vips_image_set_int(image, VIPS_META_PAGE_HEIGHT, spec_.height);
      vips_image_set_int(image, VIPS_META_N_PAGES, pages_);
    }
    if (vips_image_pipelinev(image, VIPS_DEMAND_STYLE_THINSTRIP, nullptr) != 0 ||
        vips_image_generate(image, nullptr, &generate, nullptr, this, nullptr) != 0) {
      fail(file_.target(), take_vips_message());
    }
  }

  void set_options(const VipsInput* like, const SaveOptions& options) {
    saver_.set("in", image_.get()).set_if_there("filename", file_.path().c_str());
    if (format_.name == "TIFF") {
      set_tiff_options(like);
      return;
    }
    if (format_.name == "PNG") return;  // its Q is of palettes
    saver_.set_if_there("Q", options.quality);
    saver_.set_if_there("subsample_mode", VIPS_FOREIGN_SUBSAMPLE_OFF);
    saver_.set_if_there("smart_subsample", TRUE);
    saver_.set_if_there("alpha_q", 100);
    saver_.set_if_there("optimize_coding", fits_two_passes() ? TRUE : FALSE);
    if (spec_.type == PixelType::u16 && format_.name == "HEIF") saver_.set_if_there("bitdepth", 12);
  }

  // Optimal Huffman tables make libjpeg hold all coefficients, 2 bytes a sample: not for large images.
  bool fits_two_passes() const {
    constexpr double most_samples = 100e6;
    return static_cast<double>(spec_.width) * spec_.height * spec_.channels <= most_samples;
  }

  void set_tiff_options(const VipsInput* like) {
    constexpr double classic_bytes = 3.5e9;  // offsets have 32 bits; room for metadata is left
    saver_.set("compression", VIPS_FOREIGN_TIFF_COMPRESSION_NONE);
    const double bytes = static_cast<double>(row_bytes(spec_)) * spec_.height * pages_;
    if (bytes > classic_bytes) saver_.set("bigtiff", TRUE);
    if (pages_ > 1) saver_.set("page_height", spec_.height);
    if (const std::optional<TileSize> tiles = like == nullptr ? std::nullopt : like->tiles()) {
      saver_.set("tile", TRUE).set("tile_width", tiles->width).set("tile_height", tiles->height);
    }
  }

  // libvips writes none to TIFF.
  void add_exif() {
    const std::span<const std::byte> exif = exif_block(image_.get());
    if (!exif.empty()) add_exif_to_tiff(file_.path(), exif, file_.target());
  }

  static int generate(VipsRegion* region, void* /*sequence*/, void* output, void* /*unused*/,
                      gboolean* /*stop*/) {
    return static_cast<VipsOutput*>(output)->give(region);
  }

  // Encoders ask from top to bottom (libvips has one thread), for as many rows as they like.
  int give(VipsRegion* region) {
    const VipsRect& wanted = region->valid;
    const std::size_t pixel = VIPS_IMAGE_SIZEOF_PEL(image_.get());
    queue_.release_before(wanted.top);
    for (int y = wanted.top; y < wanted.top + wanted.height; ++y) {
      const std::byte* row = queue_.wait_for(y);
      if (row == nullptr) {
        vips_error("ungrain", "row %d is not to be had", y);
        return -1;
      }
      const std::byte* from = row + static_cast<std::size_t>(wanted.left) * pixel;
      std::copy_n(from, static_cast<std::size_t>(wanted.width) * pixel,
                  reinterpret_cast<std::byte*>(VIPS_REGION_ADDR(region, wanted.left, y)));
    }
    return 0;
  }

  void save() noexcept {
    make_new_files_private();
    try {
      saved_ = saver_.run();
      if (saved_) {
        encoded_ = saver_.buffer();
      } else {
        message_ = take_vips_message();
      }
    } catch (const std::exception& error) {
      message_ = error.what();
    }
    queue_.close();
    vips_thread_shutdown();
  }

  [[noreturn]] void fail_as_saver() {
    if (thread_.joinable()) thread_.join();
    fail(file_.target(),
         saved_ ? "the encoder ended before the image did" : fmt::format("cannot be written: {}", message_));
  }

  TemporaryFile file_;
  const Format& format_;
  ImageSpec spec_;
  int pages_;
  RowCursor cursor_;
  RowQueue queue_;
  VipsPointer<VipsImage> image_;
  VipsCall saver_;
  std::thread thread_;
  // The thread's until it is joined.
  bool saved_ = false;
  VipsCall::Blob encoded_;  // the whole file, of an encoder to memory
  std::string message_;
};

}  // namespace

std::unique_ptr<OutputFile> create_vips(const std::filesystem::path& path, const FileInfo& info,
                                        const InputFile* like, const SaveOptions& options) {
  start_vips();
  return std::make_unique<VipsOutput>(path, info, dynamic_cast<const VipsInput*>(like), options);
}

}  // namespace ungrain::io
