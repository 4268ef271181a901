#include "io/y4m.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "io/failure.h"
#include "ungrain/error.h"

namespace ungrain::io {
namespace {

constexpr std::string_view frame_word = "FRAME";
constexpr std::size_t longest_line = 4096;

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number value = 0;
  const auto [stopped, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || stopped != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Ratio> ratio_in(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto num = number_in<std::int64_t>(text.substr(0, colon));
  const auto den = number_in<std::int64_t>(text.substr(colon + 1));
  if (!num || !den || *num < 0 || *den < 0) return std::nullopt;
  return Ratio{*num, *den};
}

// The colour spaces by the beginnings of their names.
struct Space {
  std::string_view name;
  Subsampling chroma;
  bool more_bits;  // "p10" and so on may follow
};
constexpr std::array<Space, 8> spaces{{
    {"420jpeg", {2, 2}, false},
    {"420mpeg2", {2, 2}, false},
    {"420paldv", {2, 2}, false},
    {"420", {2, 2}, true},
    {"411", {4, 1}, true},
    {"422", {2, 1}, true},
    {"444alpha", {1, 1}, false},
    {"444", {1, 1}, true},
}};

// 9 to 16 of "p10"; the letter may lack for mono.
std::optional<int> bits_in(std::string_view text) {
  const std::optional<int> bits = number_in<int>(text);
  if (!bits || *bits < 9 || *bits > 16) return std::nullopt;
  return bits;
}

std::optional<ImageSpec> spec_of(std::string_view space, int width, int height) {
  constexpr std::string_view mono = "mono";
  if (space.starts_with(mono)) {
    if (space == mono) return gray_frame(width, height, 8);
    const std::optional<int> bits = bits_in(space.substr(mono.size()));
    if (!bits) return std::nullopt;
    return gray_frame(width, height, *bits);
  }
  for (const Space& known : spaces) {
    if (!space.starts_with(known.name)) continue;
    const std::string_view rest = space.substr(known.name.size());
    if (rest.empty()) {
      ImageSpec spec = ycbcr_frame(width, height, 8, known.chroma);
      spec.alpha = known.name == "444alpha";
      if (spec.alpha) spec.channels = 4;
      return spec;
    }
    const std::optional<int> bits = rest.starts_with('p') ? bits_in(rest.substr(1)) : std::nullopt;
    if (known.more_bits && bits) return ycbcr_frame(width, height, *bits, known.chroma);
  }
  return std::nullopt;
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  while (!line.empty()) {
    const std::size_t space = std::min(line.find(' '), line.size());
    if (space > 0) words.emplace_back(line.substr(0, space));
    line.remove_prefix(std::min(space + 1, line.size()));
  }
  return words;
}

// What can stand in a message.
std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest = 40;
  return one_line(fmt::format("'{}'", text.substr(0, longest)));
}

class Header {
 public:
  Header(const std::string& name, std::string_view line) : name_(name) {
    info_.format = "Y4M";
    info_.words = words_of(line);
    for (const std::string& word : info_.words) read(word);
    if (width_ == 0 || height_ == 0) fail(name_, "the Y4M header tells no width or no height");
    const std::optional<ImageSpec> spec = spec_of(space_, width_, height_);
    if (!spec) {
      fail(name_, fmt::format("the Y4M colour space {} is not supported: mono, 420, 411, 422, 444 (each also "
                              "of 9 to 16 bits, such as 420p10 or mono16), 420jpeg, 420mpeg2, 420paldv and "
                              "444alpha are",
                              in_quotes(space_)));
    }
    info_.spec = *spec;
  }
  ClipInfo info() && { return std::move(info_); }

 private:
  void read(const std::string& word) {
    const std::string_view value = std::string_view(word).substr(1);
    switch (word.front()) {
      case 'W':
        width_ = side(word, value);
        break;
      case 'H':
        height_ = side(word, value);
        break;
      case 'F':
        info_.rate = ratio(word, value);
        break;
      case 'A':
        info_.aspect = ratio(word, value);
        break;
      case 'C':
        space_ = value;
        break;
      case 'I':
        check_progressive(word, value);
        break;
      case 'X':
        if (constexpr std::string_view range = "COLORRANGE="; value.starts_with(range))
          info_.range = value.substr(range.size());
        break;
      default:
        break;
    }
  }

  int side(const std::string& word, std::string_view value) const {
    constexpr int largest = 1 << 16;
    const std::optional<int> pixels = number_in<int>(value);
    if (!pixels || *pixels < 1 || *pixels > largest)
      fail(name_, fmt::format("{} in the Y4M header is no size from 1 to {}", in_quotes(word), largest));
    return *pixels;
  }

  Ratio ratio(const std::string& word, std::string_view value) const {
    const std::optional<Ratio> found = ratio_in(value);
    if (!found)
      fail(name_, fmt::format("{} in the Y4M header is no ratio such as 30000:1001", in_quotes(word)));
    return *found;
  }

  void check_progressive(const std::string& word, std::string_view value) const {
    if (value == "p" || value == "?") return;
    if (value == "t" || value == "b" || value == "m") {
      fail(name_,
           "the frames are interlaced, and their fields would be mixed up: make them progressive first, for "
           "example with ffmpeg -vf bwdif");
    }
    fail(name_, fmt::format("{} in the Y4M header is no interlacing", in_quotes(word)));
  }

  const std::string& name_;
  ClipInfo info_;
  int width_ = 0;
  int height_ = 0;
  std::string space_ = "420";
};

class Y4mReader : public FrameReader {
 public:
  explicit Y4mReader(std::unique_ptr<ByteSource> bytes) : bytes_(std::move(bytes)) {
    if (!bytes_->starts_with(y4m_signature)) {
      const bool empty = bytes_->next() == ByteSource::end;
      fail(bytes_->name(),
           empty ? "there is nothing in it" : "is no Y4M stream: it does not begin with YUV4MPEG2");
    }
    const std::string line = *next_line("the Y4M header");
    info_ = header(line);
    const std::uint64_t frame_bytes = packed_bytes(info_.spec);
    if (const auto size = bytes_->size()) {
      const std::uint64_t rest = *size - std::min<std::uint64_t>(*size, line.size() + 1);
      // A header that promises more than the file has must not make us take the memory for it.
      if (rest > 0 && rest < frame_bytes)
        fail_cut(rest - std::min<std::uint64_t>(rest, frame_word.size() + 1));
      info_.frames = static_cast<std::int64_t>(rest / (frame_bytes + frame_word.size() + 1));
    }
    info_.access = bytes_->access();
    check_frame_memory(bytes_->name(), info_.spec);
  }

  const ClipInfo& info() const override { return info_; }

  bool read(Frame& frame) override {
    std::optional<std::string> line = next_line(fmt::format("the line of frame {}", frame_));
    while (line && line->starts_with(y4m_signature)) {  // streams that were put one behind the other
      check_same(header(*line));
      line = next_line(fmt::format("the line of frame {}", frame_));
    }
    if (!line) return false;
    if (!line->starts_with(frame_word) ||
        (line->size() > frame_word.size() && (*line)[frame_word.size()] != ' '))
      fail(bytes_->name(),
           fmt::format("frame {} does not begin with FRAME but with {}", frame_, in_quotes(*line)));
    frame.words = line->substr(frame_word.size());
    check_frame_words(frame.words);
    const std::uint64_t got = read_packed(*bytes_, frame.pixels);
    if (got < packed_bytes(info_.spec)) fail_cut(got);
    frame.number = frame_++;
    return true;
  }

 private:
  ClipInfo header(const std::string& line) const {
    if (line.size() > y4m_signature.size() && line[y4m_signature.size()] != ' ')
      fail(bytes_->name(), fmt::format("the Y4M header begins with {}", in_quotes(line)));
    return Header(bytes_->name(), std::string_view(line).substr(y4m_signature.size())).info();
  }

  void check_same(const ClipInfo& next) const {
    const ImageSpec& now = info_.spec;
    if (next.spec == now) return;
    if (next.spec.width != now.width || next.spec.height != now.height) {
      fail(bytes_->name(), fmt::format("the size changes from {}x{} to {}x{} at frame {}", now.width,
                                       now.height, next.spec.width, next.spec.height, frame_));
    }
    fail(bytes_->name(), fmt::format("the colour space changes at frame {}", frame_));
  }

  // A frame's own interlacing: Ip, or three letters, the second of which tells its sampling in time.
  void check_frame_words(const std::string& words) const {
    for (const std::string& word : words_of(words)) {
      if (word.size() == 4 && word.front() == 'I' && word[2] == 'i')
        fail(bytes_->name(),
             fmt::format(
                 "frame {} is interlaced: make the frames progressive first, for example with ffmpeg -vf "
                 "bwdif",
                 frame_));
    }
  }

  [[noreturn]] void fail_cut(std::uint64_t got) const {
    fail(bytes_->name(),
         fmt::format("is cut short: frame {} has {} of {} bytes", frame_, got, packed_bytes(info_.spec)));
  }

  // Without its end; nothing at the end of the stream.
  std::optional<std::string> next_line(const std::string& what) {
    std::string line;
    for (;;) {
      const int byte = bytes_->next();
      if (byte == '\n') return line;
      if (byte == ByteSource::end) {
        if (line.empty()) return std::nullopt;
        fail(bytes_->name(), fmt::format("is cut short in {}", what));
      }
      line += static_cast<char>(byte);
      if (line.size() > longest_line) {
        fail(bytes_->name(),
             fmt::format("{} has more than {} characters: the stream is damaged", what, longest_line));
      }
    }
  }

  std::unique_ptr<ByteSource> bytes_;
  ClipInfo info_;
  int frame_ = 0;
};

std::string space_name(const ImageSpec& spec) {
  const int bits = bits_of(spec);
  if (spec.colour == Colour::gray) return bits == 8 ? "mono" : fmt::format("mono{}", bits);
  if (spec.alpha) return "444alpha";
  std::string name = spec.chroma == Subsampling{2, 2}   ? "420"
                     : spec.chroma == Subsampling{2, 1} ? "422"
                     : spec.chroma == Subsampling{4, 1} ? "411"
                                                        : "444";
  if (bits > 8) return fmt::format("{}p{}", name, bits);
  return name == "420" ? "420jpeg" : name;
}

std::vector<std::string> header_words(const ClipInfo& info) {
  if (!info.words.empty()) return info.words;
  constexpr Ratio usual_rate{25, 1};  // the format has no word for a rate that is not known
  const Ratio rate = info.rate.known() ? info.rate : usual_rate;
  std::vector<std::string> words{fmt::format("W{}", info.spec.width),
                                 fmt::format("H{}", info.spec.height),
                                 fmt::format("F{}:{}", rate.num, rate.den),
                                 "Ip",
                                 fmt::format("A{}:{}", info.aspect.num, info.aspect.den),
                                 fmt::format("C{}", space_name(info.spec))};
  if (!info.range.empty()) words.push_back(fmt::format("XCOLORRANGE={}", info.range));
  return words;
}

class Y4mWriter : public FrameWriter {
 public:
  Y4mWriter(std::unique_ptr<ByteSink> bytes, const ClipInfo& info)
      : bytes_(std::move(bytes)), spec_(info.spec) {
    append(fmt::format("{} {}\n", y4m_signature, fmt::join(header_words(info), " ")));
  }

  const ImageSpec& spec() const override { return spec_; }

  // Header or line and samples at once, so that no frame stays half written when another fails.
  void write(const Frame& frame) override {
    append(fmt::format("{}{}\n", frame_word, frame.words));
    append_packed(frame.pixels, block_);
    flush();
  }

  void finish() override {
    flush();
    bytes_->finish();
  }

 private:
  void append(std::string_view text) {
    const auto* start = reinterpret_cast<const std::byte*>(text.data());
    block_.insert(block_.end(), start, start + text.size());
  }

  void flush() {
    bytes_->write(block_.data(), block_.size());
    block_.clear();
  }

  std::unique_ptr<ByteSink> bytes_;
  ImageSpec spec_;
  std::vector<std::byte> block_;
};

}  // namespace

std::unique_ptr<FrameReader> open_y4m(std::unique_ptr<ByteSource> bytes) {
  return std::make_unique<Y4mReader>(std::move(bytes));
}

bool fits_y4m(const ImageSpec& spec) {
  if (is_float(spec.type)) return false;
  const int bits = bits_of(spec);
  if (spec.white() != (1 << bits) - 1 || bits < 8) return false;
  if (spec.colour == Colour::gray) return !spec.alpha;
  if (spec.colour != Colour::ycbcr) return false;
  return !spec.alpha || (bits == 8 && spec.chroma == Subsampling{});
}

std::unique_ptr<FrameWriter> create_y4m(std::unique_ptr<ByteSink> bytes, const ClipInfo& info) {
  return std::make_unique<Y4mWriter>(std::move(bytes), info);
}

}  // namespace ungrain::io
