#include "io/raw_frames.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "io/failure.h"
#include "ungrain/error.h"

namespace ungrain::io {
namespace {

struct RawFormat {
  std::string name;
  ImageSpec spec;  // without a size
};

std::vector<RawFormat> make_formats() {
  std::vector<RawFormat> list;
  const auto add = [&](const std::string& family, std::string_view plain, auto make) {
    for (const int bits : {8, 9, 10, 12, 14, 16}) {
      list.push_back({bits == 8 ? family + std::string(plain) : fmt::format("{}{}{}le", family, plain, bits),
                      make(bits)});
    }
  };
  add("gray", "", [](int bits) { return gray_frame(0, 0, bits); });
  const std::pair<const char*, Subsampling> families[] = {
      {"yuv420", {2, 2}}, {"yuv422", {2, 1}}, {"yuv444", {1, 1}}};
  for (const auto& [family, chroma] : families)
    add(family, "p", [chroma = chroma](int bits) { return ycbcr_frame(0, 0, bits, chroma); });
  list.push_back({"yuv411p", ycbcr_frame(0, 0, 8, {4, 1})});
  ImageSpec rgb{.channels = 3, .colour = Colour::rgb};
  list.push_back({"rgb24", rgb});
  rgb.type = PixelType::u16;
  list.push_back({"rgb48le", rgb});
  rgb.type = PixelType::f32;
  list.push_back({"rgbf32le", rgb});
  return list;
}

const std::vector<RawFormat>& formats() {
  static const std::vector<RawFormat> list = make_formats();
  return list;
}

class RawReader : public FrameReader {
 public:
  RawReader(std::unique_ptr<ByteSource> bytes, const ImageSpec& spec) : bytes_(std::move(bytes)) {
    info_.spec = spec;
    info_.format = "raw";
    info_.access = bytes_->access();
    if (const auto size = bytes_->size()) {
      const std::uint64_t frame = packed_bytes(spec);
      if (*size == 0) fail(bytes_->name(), "the file is empty");
      if (*size < frame) {
        fail(bytes_->name(), fmt::format("has {} bytes, a frame of {} x {} in {} has {}", *size, spec.width,
                                         spec.height, raw_format_of(spec), frame));
      }
      info_.frames = static_cast<std::int64_t>(*size / frame);
    }
    check_frame_memory(bytes_->name(), spec);
  }

  const ClipInfo& info() const override { return info_; }

  bool read(Frame& frame) override {
    const std::uint64_t got = read_packed(*bytes_, frame.pixels);
    if (got == 0) return false;
    if (got < packed_bytes(info_.spec)) {
      fail(bytes_->name(),
           fmt::format("is cut short, or --size or --format is not right: frame {} has {} of {} bytes",
                       frame_, got, packed_bytes(info_.spec)));
    }
    frame.words.clear();
    frame.number = frame_++;
    return true;
  }

 private:
  std::unique_ptr<ByteSource> bytes_;
  ClipInfo info_;
  int frame_ = 0;
};

class RawWriter : public FrameWriter {
 public:
  RawWriter(std::unique_ptr<ByteSink> bytes, const ImageSpec& spec) : bytes_(std::move(bytes)), spec_(spec) {}
  const ImageSpec& spec() const override { return spec_; }
  void write(const Frame& frame) override {
    block_.clear();
    append_packed(frame.pixels, block_);
    bytes_->write(block_.data(), block_.size());
  }
  void finish() override { bytes_->finish(); }

 private:
  std::unique_ptr<ByteSink> bytes_;
  ImageSpec spec_;
  std::vector<std::byte> block_;
};

}  // namespace

std::vector<std::string> raw_formats() {
  std::vector<std::string> names;
  for (const RawFormat& format : formats()) names.push_back(format.name);
  return names;
}

ImageSpec raw_spec(const std::string& format, int width, int height) {
  for (const RawFormat& known : formats()) {
    if (known.name != format) continue;
    ImageSpec spec = known.spec;
    spec.width = width;
    spec.height = height;
    return spec;
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("format takes one of {}, got '{}'", fmt::join(raw_formats(), ", "), format));
}

std::string raw_format_of(const ImageSpec& spec) {
  for (const RawFormat& known : formats()) {
    ImageSpec sized = known.spec;
    sized.width = spec.width;
    sized.height = spec.height;
    if (sized == spec) return known.name;
  }
  return "";
}

std::unique_ptr<FrameReader> open_raw_frames(std::unique_ptr<ByteSource> bytes, const ImageSpec& spec) {
  return std::make_unique<RawReader>(std::move(bytes), spec);
}

std::unique_ptr<FrameWriter> create_raw_frames(std::unique_ptr<ByteSink> bytes, const ImageSpec& spec) {
  return std::make_unique<RawWriter>(std::move(bytes), spec);
}

}  // namespace ungrain::io
