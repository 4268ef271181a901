#include "io/vips_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <span>
#include <string_view>
#include <thread>
#include <utility>

#include "io/boxes.h"
#include "io/failure.h"
#include "io/formats.h"
#include "io/packed_rows.h"
#include "io/png_chunks.h"
#include "io/row_queue.h"
#include "io/temporary_file.h"
#include "io/vips_metadata.h"
#include "io/vips_session.h"
#include "platform/files.h"

namespace ungrain::io {
namespace {

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

// How the format interprets independent channels.
VipsInterpretation multi_as(const Format& format, const ImageSpec& spec) {
  if (spec.channels == 4 && format.name == "JPEG") return VIPS_INTERPRETATION_CMYK;
  return spec.colour_channels() == 1 ? gray_as(spec.type) : rgb_as(spec.type);
}

VipsInterpretation interpretation_of(const Format& format, const ImageSpec& spec) {
  switch (spec.colour) {
    case Colour::gray:
      return gray_as(spec.type);
    case Colour::rgb:
      return rgb_as(spec.type);
    case Colour::multi:
      return multi_as(format, spec);
    case Colour::ycbcr:
      break;
  }
  return VIPS_INTERPRETATION_MULTIBAND;
}

// Encoders pull rows and the program pushes them: the encoder runs in its own thread over an image whose
// pixels come from a queue, and waits for missing rows.
class VipsOutput final : public OutputFile {
 public:
  VipsOutput(const std::filesystem::path& path, const FileInfo& info, const InputFile* like,
             const SaveOptions& options)
      : metadata_(metadata_for(info, like)),
        file_(path, info.access),
        format_(*format_of_extension(path)),
        spec_(info.spec),
        pages_(info.pages),
        cursor_(path, info.spec.height, info.pages),
        queue_(row_bytes(info.spec), queue_rows(info.spec)),
        saver_(format_.saver) {
    make_image();
    set_options(options);
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
      const auto* data = static_cast<const std::byte*>(vips_blob_get(encoded_.get(), &size));
      const Bytes whole = with_boxes({data, data + size});
      file_.write(whole.data(), whole.size(), 0);
    }
    if (format_.name == "PNG") {
      drop_second_exif(file_.path(), file_.target());
      add_png_texts(file_.path(), metadata_.png_texts, metadata_.xmp, file_.target());
    }
    file_.commit();
  }

 private:
  static std::size_t queue_rows(const ImageSpec& spec) {
    constexpr std::size_t queue_bytes = std::size_t{8} << 20U;
    return std::clamp<std::size_t>(queue_bytes / row_bytes(spec), 2, 1024);
  }

  // A profile is kept only where the number of channels is the same.
  static Metadata metadata_for(const FileInfo& info, const InputFile* like) {
    if (like == nullptr) return {};
    Metadata metadata = like->metadata();
    if (like->info().spec.channels != info.spec.channels) metadata.icc.clear();
    return metadata;
  }

  Bytes with_boxes(Bytes encoded) const {
    if (format_.name == "JPEG XL") return with_jxl_boxes(std::move(encoded), metadata_);
    if (format_.name == "JPEG 2000") return with_jp2_boxes(std::move(encoded), metadata_);
    return encoded;
  }

  void make_image() {
    image_.reset(vips_image_new());
    VipsImage* image = image_.get();
    const std::int64_t height = static_cast<std::int64_t>(spec_.height) * pages_;
    if (spec_.width > VIPS_MAX_COORD || height > VIPS_MAX_COORD) {
      fail(file_.target(), fmt::format("{} x {} pixels are too many a side for libvips ({})", spec_.width,
                                       height, VIPS_MAX_COORD));
    }
    vips_image_init_fields(image, spec_.width, static_cast<int>(height), spec_.channels,
                           band_format(spec_.type), VIPS_CODING_NONE, interpretation_of(format_, spec_), 1,
                           1);
    write_vips_metadata(metadata_, format_, image);
    if (pages_ > 1) {
      vips_image_set_int(image, VIPS_META_PAGE_HEIGHT, spec_.height);
      vips_image_set_int(image, VIPS_META_N_PAGES, pages_);
    }
    if (vips_image_pipelinev(image, VIPS_DEMAND_STYLE_THINSTRIP, nullptr) != 0 ||
        vips_image_generate(image, nullptr, &generate, nullptr, this, nullptr) != 0) {
      fail(file_.target(), take_vips_message());
    }
  }

  void set_options(const SaveOptions& options) {
    saver_.set("in", image_.get()).set_if_there("filename", file_.path().c_str());
    if (format_.name == "PNG") return;  // its Q applies to palettes
    saver_.set_if_there("Q", options.quality);
    saver_.set_if_there("subsample_mode", VIPS_FOREIGN_SUBSAMPLE_OFF);
    saver_.set_if_there("smart_subsample", TRUE);
    saver_.set_if_there("alpha_q", 100);
    saver_.set_if_there("optimize_coding", fits_two_passes() ? TRUE : FALSE);
    if (spec_.type == PixelType::u16 && format_.name == "HEIF") saver_.set_if_there("bitdepth", 12);
  }

  // Optimal Huffman tables make libjpeg hold all coefficients, 2 bytes a sample: not used for large images.
  bool fits_two_passes() const {
    constexpr double most_samples = 100e6;
    return static_cast<double>(spec_.width) * spec_.height * spec_.channels <= most_samples;
  }

  static int generate(VipsRegion* region, void* /*sequence*/, void* output, void* /*unused*/,
                      gboolean* /*stop*/) {
    return static_cast<VipsOutput*>(output)->give(region);
  }

  // Encoders request rows from top to bottom (libvips has one thread), any number at a time.
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
    // An encoder that replaces our temporary file instead of writing to it must not make it readable by
    // others. Where the system has no such setting, commit() still sets the permissions.
    platform::make_new_files_private();
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

  Metadata metadata_;
  TemporaryFile file_;
  const Format& format_;
  ImageSpec spec_;
  int pages_;
  RowCursor cursor_;
  RowQueue queue_;
  VipsPointer<VipsImage> image_;
  VipsCall saver_;
  std::thread thread_;
  // Owned by the thread until it is joined.
  bool saved_ = false;
  VipsCall::Blob encoded_;  // the whole file, of an encoder to memory
  std::string message_;
};

}  // namespace

std::unique_ptr<OutputFile> create_vips(const std::filesystem::path& path, const FileInfo& info,
                                        const InputFile* like, const SaveOptions& options) {
  start_vips();
  return std::make_unique<VipsOutput>(path, info, like, options);
}

}  // namespace ungrain::io
