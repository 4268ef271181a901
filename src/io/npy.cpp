// NPY, NumPy's file of one array: (height, width) is gray, (height, width, 3) rgb, and 2 or 4 in the last
// place are independent channels, as the file cannot say that one is alpha.
//
// The header is a Python dictionary. We read the one form that NumPy writes and evaluate nothing.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "io/builtin_formats.h"
#include "io/failure.h"
#include "io/header_text.h"
#include "io/sample_matrix.h"

namespace ungrain::io {
namespace {

constexpr std::string_view magic = "\x93NUMPY";

struct Header {
  std::string dtype;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

class HeaderParser {
 public:
  HeaderParser(const std::filesystem::path& file, std::string_view text) : file_(file), text_(text) {}

  Header parse() {
    Header header;
    bool has_dtype = false;
    bool has_order = false;
    bool has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr") {
        if (peek() == '[' || peek() == '(') fail(file_, "its samples are structured records, not numbers");
        header.dtype = string();
        has_dtype = true;
      } else if (key == "fortran_order") {
        header.fortran_order = boolean();
        has_order = true;
      } else if (key == "shape") {
        header.shape = tuple();
        has_shape = true;
      } else {
        damaged();
      }
      if (!accept(',') && peek() != '}') damaged();
    }
    if (peek() != '\0' || !has_dtype || !has_order || !has_shape) damaged();
    return header;
  }

 private:
  [[noreturn]] void damaged() const { fail(file_, "its NPY header is damaged"); }

  char peek() {
    while (!text_.empty() && is_space(text_.front())) text_.remove_prefix(1);
    return text_.empty() ? '\0' : text_.front();
  }
  bool accept(char wanted) {
    if (peek() != wanted || text_.empty()) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) damaged();
  }

  std::string string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') damaged();
    const std::size_t end = text_.find(quote, 1);
    if (end == std::string_view::npos) damaged();
    std::string value(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return value;
  }

  bool boolean() {
    peek();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.starts_with(word)) {
        text_.remove_prefix(word.size());
        return value;
      }
    }
    damaged();
  }

  std::vector<std::int64_t> tuple() {
    constexpr std::size_t most_axes = 64;  // NumPy's own limit
    std::vector<std::int64_t> values;
    expect('(');
    while (!accept(')')) {
      values.push_back(integer());
      if (values.size() > most_axes) damaged();
      if (!accept(',') && peek() != ')') damaged();
    }
    return values;
  }

  std::int64_t integer() {
    peek();
    std::int64_t value = 0;
    const auto [stop, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error == std::errc::invalid_argument) damaged();
    text_.remove_prefix(static_cast<std::size_t>(stop - text_.data()));
    return error == std::errc::result_out_of_range ? std::numeric_limits<std::int64_t>::max() : value;
  }

  const std::filesystem::path& file_;
  std::string_view text_;
};

// Version 1 has a 2-byte length after the version, later ones 4 bytes; all little endian.
Header read_header(const SourceFile& file, std::uint64_t* samples_at) {
  constexpr std::size_t version_at = magic.size();
  std::array<unsigned char, 12> start{};
  const std::size_t got = file.read_some(start.data(), start.size(), 0);
  const unsigned version = start[version_at];
  if (got < start.size()) fail(file.path(), "truncated: it ends in its header");
  if (version < 1 || version > 3) fail(file.path(), fmt::format("NPY version {} is not known", version));
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  std::uint64_t length = 0;
  for (std::size_t i = length_bytes; i-- > 0;) length = length << 8U | start[version_at + 2 + i];

  constexpr std::uint64_t longest = 1U << 20U;
  const std::uint64_t text_at = version_at + 2 + length_bytes;
  if (length > longest) fail(file.path(), fmt::format("its NPY header is damaged: {} bytes long", length));
  if (text_at + length > file.size()) fail(file.path(), "truncated: it ends in its header");
  std::string text(length, '\0');
  file.read(text.data(), text.size(), text_at);
  *samples_at = text_at + length;
  return HeaderParser(file.path(), text).parse();
}

struct SampleKind {
  std::string_view code;
  Sample sample;
  PixelType type;
  std::string_view note;
  double range;
};

constexpr std::array kinds = {
    SampleKind{"u1", Sample::u8, PixelType::u8, "", 0},
    SampleKind{"u2", Sample::u16, PixelType::u16, "", 0},
    SampleKind{"f2", Sample::f16, PixelType::f16, "", 0},
    SampleKind{"f4", Sample::f32, PixelType::f32, "", 0},
    SampleKind{"f8", Sample::f64, PixelType::f32, "f64 samples converted to f32", 0},
    SampleKind{"i2", Sample::i16, PixelType::f32, "i16 samples converted to f32", 32767},
};

const SampleKind& kind_of(const SourceFile& file, const std::string& dtype) {
  const bool order_known =
      !dtype.empty() && std::string_view("<>|=").find(dtype[0]) != std::string_view::npos;
  if (order_known) {
    for (const SampleKind& kind : kinds) {
      if (std::string_view(dtype).substr(1) == kind.code) return kind;
    }
  }
  fail(file.path(),
       fmt::format("its samples have the type \"{}\": u1, u2, f2, f4, f8 and i2 can be read", dtype));
}

void set_shape(const SourceFile& file, const std::vector<std::int64_t>& shape, ImageSpec& spec) {
  const bool image = shape.size() == 2 || (shape.size() == 3 && shape[2] >= 1 && shape[2] <= max_channels);
  if (!image) {
    fail(file.path(),
         fmt::format("shape ({}): an image is (height, width) or (height, width, 1 to {} channels)",
                     fmt::join(shape, ", "), max_channels));
  }
  const std::int64_t channels = shape.size() == 2 ? 1 : shape[2];
  check_size(file.path(), shape[1], shape[0], channels);
  spec.height = static_cast<int>(shape[0]);
  spec.width = static_cast<int>(shape[1]);
  spec.channels = static_cast<int>(channels);
  spec.colour = channels == 1 ? Colour::gray : channels == 3 ? Colour::rgb : Colour::multi;
}

std::string_view dtype_of(PixelType type) {
  switch (type) {
    case PixelType::u8:
      return "|u1";
    case PixelType::u16:
      return "<u2";
    case PixelType::f16:
      return "<f2";
    case PixelType::f32:
      return "<f4";
  }
  return "";
}

Sample sample_of(PixelType type) {
  switch (type) {
    case PixelType::u8:
      return Sample::u8;
    case PixelType::u16:
      return Sample::u16;
    case PixelType::f16:
      return Sample::f16;
    case PixelType::f32:
      return Sample::f32;
  }
  return Sample::u8;
}

// Version 1, padded as NumPy does so that the samples begin at a multiple of 64.
std::string header_text(const ImageSpec& spec) {
  const std::string shape = spec.channels == 1
                                ? fmt::format("({}, {})", spec.height, spec.width)
                                : fmt::format("({}, {}, {})", spec.height, spec.width, spec.channels);
  std::string dictionary =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", dtype_of(spec.type), shape);
  constexpr std::size_t before = magic.size() + 4;
  const std::size_t whole = (before + dictionary.size() + 1 + 63) / 64 * 64;
  dictionary.resize(whole - before - 1, ' ');
  dictionary.push_back('\n');
  std::string header(magic);
  header += {'\x01', '\x00', static_cast<char>(dictionary.size() % 256),
             static_cast<char>(dictionary.size() / 256)};
  return header + dictionary;
}

}  // namespace

bool is_npy(const SourceFile& file) {
  std::array<char, magic.size()> start{};
  return file.read_some(start.data(), start.size(), 0) == start.size() &&
         std::string_view(start.data(), start.size()) == magic;
}

std::unique_ptr<InputFile> open_npy(SourceFile file) {
  MatrixLayout layout;
  const Header header = read_header(file, &layout.offset);
  const SampleKind& kind = kind_of(file, header.dtype);
  FileInfo info;
  info.format = "NPY";
  info.note = kind.note;
  info.spec.type = kind.type;
  info.spec.range = kind.range;
  set_shape(file, header.shape, info.spec);
  layout.sample = kind.sample;
  layout.big_endian = header.dtype[0] == '>';
  if (header.fortran_order) layout.order = MatrixLayout::Order::columns;
  check_file_size(file, info.spec, layout);
  return open_matrix(std::move(file), std::move(info), layout);
}

std::unique_ptr<OutputFile> create_npy(const std::filesystem::path& path, const FileInfo& info) {
  const std::string header = header_text(info.spec);
  MatrixLayout layout;
  layout.sample = sample_of(info.spec.type);
  layout.offset = header.size();
  return create_matrix(path, info, header, layout);
}

}  // namespace ungrain::io
