// NPY, NumPy's file of one array: (height, width) is gray, (height, width, 3) rgb. A last axis of 2 or 4
// gives independent channels, because the file cannot mark alpha. With one more axis, which the user names,
// an array is a stack of such images: its pages.
//
// The header is a Python dictionary. We parse the form that NumPy writes and evaluate nothing.
#include <fmt/format.h>

#include <algorithm>
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
    SampleKind{"b1", Sample::u8, PixelType::u8, "bool samples converted to u8", 0},
    SampleKind{"i1", Sample::i8, PixelType::f32, "i8 samples converted to f32", 127},
    SampleKind{"i2", Sample::i16, PixelType::f32, "i16 samples converted to f32", 32767},
    SampleKind{"i4", Sample::i32, PixelType::f32, "i32 samples converted to f32", 2147483647},
    SampleKind{"u4", Sample::u32, PixelType::f32, "u32 samples converted to f32", 4294967295},
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
       fmt::format("its samples have the type \"{}\": b1, u1, u2, u4, i1, i2, i4, f2, f4 and f8 can be read",
                   dtype));
}

// The axes of an array, by their places in its shape.
struct Axes {
  std::optional<std::size_t> page;
  std::size_t row = 0;
  std::size_t column = 1;
  std::optional<std::size_t> channel;
};

bool is_image(const std::vector<std::int64_t>& shape) {
  return shape.size() == 2 || (shape.size() == 3 && shape[2] >= 1 && shape[2] <= max_channels);
}

std::vector<std::int64_t> without(std::vector<std::int64_t> shape, std::size_t axis) {
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  return shape;
}

// The shortest axis whose removal makes the array an image.
std::optional<std::size_t> likely_axis(const std::vector<std::int64_t>& shape) {
  std::optional<std::size_t> best;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (is_image(without(shape, axis)) && (!best || shape[axis] < shape[*best])) best = axis;
  }
  return best;
}

[[noreturn]] void refuse_shape(const SourceFile& file, const std::vector<std::int64_t>& shape,
                               std::optional<std::size_t> axis) {
  const std::string image =
      fmt::format("an image is (height, width) or (height, width, 1 to {} channels)", max_channels);
  const std::string text = fmt::format("shape ({})", fmt::join(shape, ", "));
  if (axis) {
    fail(file.path(), fmt::format("{} without its axis {} is ({}): {}", text, *axis,
                                  fmt::join(without(shape, *axis), ", "), image));
  }
  if (const std::optional<std::size_t> likely = likely_axis(shape); likely && shape.size() > 2) {
    const std::vector<std::int64_t> one = without(shape, *likely);
    fail(file.path(), fmt::format("{}: {}; for a stack of {} images of {} x {} give --axis {}", text, image,
                                  shape[*likely], one[1], one[0], *likely));
  }
  fail(file.path(), fmt::format("{}: {}", text, image));
}

Axes find_axes(const SourceFile& file, const std::vector<std::int64_t>& shape, std::optional<int> asked) {
  Axes axes;
  if (asked) {
    const auto count = static_cast<int>(shape.size());
    const int axis = *asked < 0 ? *asked + count : *asked;
    if (axis < 0 || axis >= count) {
      fail(file.path(), fmt::format("shape ({}) has no axis {}", fmt::join(shape, ", "), *asked));
    }
    axes.page = static_cast<std::size_t>(axis);
  }
  if (!is_image(axes.page ? without(shape, *axes.page) : shape)) refuse_shape(file, shape, axes.page);
  const auto place = [&](std::size_t of_image) {
    return of_image + (axes.page && of_image >= *axes.page ? 1 : 0);
  };
  axes.row = place(0);
  axes.column = place(1);
  if (shape.size() > (axes.page ? 3 : 2)) axes.channel = place(2);
  return axes;
}

void set_shape(const SourceFile& file, const std::vector<std::int64_t>& shape, const Axes& axes,
               FileInfo& info) {
  const std::int64_t channels = axes.channel ? shape[*axes.channel] : 1;
  check_size(file.path(), shape[axes.column], shape[axes.row], channels);
  ImageSpec& spec = info.spec;
  spec.height = static_cast<int>(shape[axes.row]);
  spec.width = static_cast<int>(shape[axes.column]);
  spec.channels = static_cast<int>(channels);
  spec.colour = channels == 1 ? Colour::gray : channels == 3 ? Colour::rgb : Colour::multi;
  info.channel_axis = axes.channel.has_value();
  if (!axes.page) return;
  const std::int64_t pages = shape[*axes.page];
  if (pages < 1 || pages > std::numeric_limits<int>::max()) {
    fail(file.path(), fmt::format("shape ({}): a stack has 1 to {} images", fmt::join(shape, ", "),
                                  std::numeric_limits<int>::max()));
  }
  info.pages = static_cast<int>(pages);
  info.page_axis = static_cast<int>(*axes.page);
}

// The order of each page's samples: contiguous where they are, else by their strides.
void set_order(const FileInfo& info, const Axes& axes, bool fortran, std::uint64_t sample_bytes,
               MatrixLayout& layout) {
  const ImageSpec& spec = info.spec;
  const ArrayAxes counts = {info.pages, spec.height, spec.width, spec.channels};
  // By place in the shape. A missing axis has length 1 and comes first.
  std::vector<std::pair<std::size_t, std::size_t>> places = {{axes.row + 1, 1}, {axes.column + 1, 2}};
  places.emplace_back(axes.page ? *axes.page + 1 : 0, 0);
  places.emplace_back(axes.channel ? *axes.channel + 1 : 0, 3);
  std::sort(places.begin(), places.end());
  std::array<std::size_t, 4> order{};
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = places[fortran ? order.size() - 1 - i : i].second;
  const ArrayAxes strides = packed_strides(counts, order);
  const auto [page, row, column, channel] = strides;
  const auto bytes = [&](std::int64_t samples) { return static_cast<std::uint64_t>(samples) * sample_bytes; };

  const std::int64_t row_samples = static_cast<std::int64_t>(spec.width) * spec.channels;
  const std::int64_t page_samples = row_samples * spec.height;
  const auto lies = [](std::int64_t count, std::int64_t stride, std::int64_t wanted) {
    return count == 1 || stride == wanted;
  };
  layout.page_stride = bytes(page);
  if (lies(spec.channels, channel, 1) && lies(spec.width, column, spec.channels)) {
    if (!lies(spec.height, row, row_samples)) layout.row_stride = bytes(row);
  } else if (lies(spec.height, row, 1) && lies(spec.width, column, spec.height) &&
             lies(spec.channels, channel, static_cast<std::int64_t>(spec.width) * spec.height) &&
             lies(info.pages, page, page_samples)) {
    layout.order = MatrixLayout::Order::columns;
  } else {
    layout.order = MatrixLayout::Order::scattered;
    layout.strides = strides;
  }
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

// A stack from another format has no place for its page axis: the page axis comes first.
Axes axes_of(const FileInfo& info) {
  const bool channel = info.spec.channels > 1 || info.channel_axis;
  Axes axes;
  if (info.page_axis || info.pages > 1) {
    const std::size_t last = channel ? 3 : 2;
    axes.page = std::min(static_cast<std::size_t>(std::max(info.page_axis.value_or(0), 0)), last);
  }
  const auto place = [&](std::size_t of_image) {
    return of_image + (axes.page && of_image >= *axes.page ? 1 : 0);
  };
  axes.row = place(0);
  axes.column = place(1);
  if (channel) axes.channel = place(2);
  return axes;
}

// Version 1, padded as NumPy does so that the samples begin at a multiple of 64.
std::string header_text(const FileInfo& info, const Axes& axes) {
  const ImageSpec& spec = info.spec;
  std::vector<int> shape(2 + (axes.page ? 1 : 0) + (axes.channel ? 1 : 0));
  shape[axes.row] = spec.height;
  shape[axes.column] = spec.width;
  if (axes.channel) shape[*axes.channel] = spec.channels;
  if (axes.page) shape[*axes.page] = info.pages;
  std::string dictionary = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                       dtype_of(spec.type), fmt::join(shape, ", "));
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

std::unique_ptr<InputFile> open_npy(SourceFile file, const OpenOptions& options) {
  MatrixLayout layout;
  const Header header = read_header(file, &layout.offset);
  const SampleKind& kind = kind_of(file, header.dtype);
  const Axes axes = find_axes(file, header.shape, options.axis);
  FileInfo info;
  info.format = "NPY";
  info.note = kind.note;
  info.spec.type = kind.type;
  info.spec.range = kind.range;
  info.white_unknown = is_float(kind.type);
  set_shape(file, header.shape, axes, info);
  layout.sample = kind.sample;
  layout.big_endian = header.dtype[0] == '>';
  if (kind.code == "b1") {
    layout.max_sample = 1;
    layout.multiplier = 255;
  }
  check_file_size(file, info.spec, layout, info.pages);
  set_order(info, axes, header.fortran_order, static_cast<std::uint64_t>(kind.code[1] - '0'), layout);
  return open_matrix(std::move(file), std::move(info), layout);
}

std::unique_ptr<OutputFile> create_npy(const std::filesystem::path& path, const FileInfo& info) {
  const Axes axes = axes_of(info);
  const std::string header = header_text(info, axes);
  MatrixLayout layout;
  layout.sample = sample_of(info.spec.type);
  layout.offset = header.size();
  set_order(info, axes, false, bytes_per_sample(info.spec.type), layout);
  return create_matrix(path, info, header, layout);
}

}  // namespace ungrain::io
