// PBM, PGM, PPM (ASCII and binary) and PAM.
//
// A largest sample (maxval) up to 255 makes u8, above that u16. A maxval other than 255 and 65535 is the
// image's range. On reading, a sample above the file's maxval is an error; on writing, samples are clamped to
// it. Black and white files become 0 and 255.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "io/builtin_formats.h"
#include "io/failure.h"
#include "io/header_text.h"
#include "io/packed_rows.h"
#include "io/sample_matrix.h"

namespace ungrain::io {
namespace {

struct Header {
  char kind = '5';
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::int64_t depth = 1;
  std::int64_t max_sample = 1;
  std::string tuple_type;    // of P7
  std::uint64_t offset = 0;  // of the samples
};

bool is_ascii(char kind) { return kind <= '3'; }
bool is_bitmap(char kind) { return kind == '1' || kind == '4'; }

Header read_plain_header(const SourceFile& file, ByteStream& bytes, char kind) {
  Header header;
  header.kind = kind;
  header.width = next_integer(file, bytes, "width");
  header.height = next_integer(file, bytes, "height");
  header.depth = kind == '3' || kind == '6' ? 3 : 1;
  if (!is_bitmap(kind)) header.max_sample = next_integer(file, bytes, "largest sample");
  if (!is_ascii(kind)) end_header(file, bytes);
  header.offset = bytes.offset();
  return header;
}

Header read_pam_header(const SourceFile& file, ByteStream& bytes) {
  Header header;
  header.kind = '7';
  header.depth = 0;
  header.max_sample = 0;
  for (;;) {
    const std::string word = next_word(bytes);
    if (word == "WIDTH") {
      header.width = next_integer(file, bytes, "width");
    } else if (word == "HEIGHT") {
      header.height = next_integer(file, bytes, "height");
    } else if (word == "DEPTH") {
      header.depth = next_integer(file, bytes, "depth");
    } else if (word == "MAXVAL") {
      header.max_sample = next_integer(file, bytes, "largest sample");
    } else if (word == "TUPLTYPE") {
      header.tuple_type = next_word(bytes);
    } else if (word == "ENDHDR") {
      break;
    } else {
      fail(file.path(), fmt::format("its PAM header is damaged: \"{}\" is not a part of one", word));
    }
  }
  end_header(file, bytes);
  header.offset = bytes.offset();
  return header;
}

Header read_header(const SourceFile& file) {
  ByteStream bytes(file);
  bytes.next();  // skips the P
  const char kind = static_cast<char>(bytes.next());
  Header header = kind == '7' ? read_pam_header(file, bytes) : read_plain_header(file, bytes, kind);
  check_size(file.path(), header.width, header.height, header.depth);
  if (header.max_sample < 1 || header.max_sample > 65535) {
    fail(file.path(), fmt::format("its header says {} for the largest sample: 1 to 65535 are possible",
                                  header.max_sample));
  }
  return header;
}

bool is_black_and_white(const Header& header) {
  return is_bitmap(header.kind) || (header.max_sample == 1 && header.tuple_type.starts_with("BLACKANDWHITE"));
}

// A PAM with an unknown tuple type has independent channels.
void set_colour(const Header& header, ImageSpec& spec) {
  const std::string& tuple = header.tuple_type;
  const bool gray_tuple = tuple.starts_with("GRAYSCALE") || tuple.starts_with("BLACKANDWHITE");
  spec.alpha = tuple.ends_with("_ALPHA") && (spec.channels == 2 || spec.channels == 4);
  if (header.kind != '7') {
    spec.colour = spec.channels == 3 ? Colour::rgb : Colour::gray;
  } else if (spec.colour_channels() == 1 && (gray_tuple || spec.channels == 1)) {
    spec.colour = Colour::gray;
  } else if (spec.colour_channels() == 3 && tuple.starts_with("RGB")) {
    spec.colour = Colour::rgb;
  } else {
    spec.colour = Colour::multi;
    spec.alpha = false;
  }
}

FileInfo describe(const Header& header) {
  FileInfo info;
  ImageSpec& spec = info.spec;
  spec.width = static_cast<int>(header.width);
  spec.height = static_cast<int>(header.height);
  spec.channels = static_cast<int>(header.depth);
  spec.type = header.max_sample <= 255 ? PixelType::u8 : PixelType::u16;
  const auto range = static_cast<double>(header.max_sample);
  if (range != natural_range(spec.type) && !is_black_and_white(header)) spec.range = range;
  set_colour(header, spec);
  static constexpr std::array names = {"PBM", "PGM", "PPM", "PBM", "PGM", "PPM", "PAM"};
  info.format = names[static_cast<std::size_t>(header.kind - '1')];
  return info;
}

// P1, P2 and P3: numbers in ASCII, which can only be read in order.
class AsciiInput final : public InputFile {
 public:
  AsciiInput(SourceFile file, FileInfo info, const Header& header)
      : file_(std::move(file)), info_(std::move(info)), header_(header), bytes_(file_, header.offset) {
    // A sample takes at least a digit and, except in bitmaps, the space before it.
    const double least = static_cast<double>(header.width) * static_cast<double>(header.height) *
                         static_cast<double>(header.depth) * (is_bitmap(header.kind) ? 1 : 2);
    if (least > static_cast<double>(file_.size() - header.offset)) {
      fail(file_.path(),
           fmt::format("truncated: the header promises {} x {} pixels, the file has {} bytes for them",
                       header.width, header.height, file_.size() - header.offset));
    }
  }

  const FileInfo& info() const override { return info_; }
  void check_unchanged() override { file_.check_unchanged(); }
  void select_page(int page) override {
    if (page != 0) fail(file_.path(), fmt::format("has no page {}", page + 1));
  }

  void read_rows(int first, const ImageView& rows) override {
    check_rows(file_.path(), info_.spec, first, rows);
    if (first < next_row_) {
      bytes_.seek(header_.offset);
      next_row_ = 0;
    }
    while (next_row_ < first) parse_row();
    for (int y = 0; y < rows.spec.height; ++y) {
      parse_row();
      unpack_row(row_.data(), rows, y);
    }
  }

 private:
  void parse_row() {
    row_.resize(row_bytes(info_.spec));
    const std::size_t count = static_cast<std::size_t>(info_.spec.width) * info_.spec.channels;
    for (std::size_t i = 0; i < count; ++i) {
      if (is_bitmap(header_.kind)) {
        row_[i] = next_sample(1) == 1 ? std::byte{0} : std::byte{255};
      } else if (info_.spec.type == PixelType::u8) {
        row_[i] = static_cast<std::byte>(next_sample(max_digits));
      } else {
        const auto sample = static_cast<std::uint16_t>(next_sample(max_digits));
        std::memcpy(row_.data() + 2 * i, &sample, 2);
      }
    }
    ++next_row_;
  }

  // Digits of bitmaps need no space between them.
  unsigned next_sample(int digits) {
    skip_space(bytes_);
    const int first = bytes_.peek();
    if (first == ByteStream::end) {
      fail(file_.path(), fmt::format("truncated: it ends in row {} of {}", next_row_, info_.spec.height));
    }
    if (!is_digit(first))
      fail(file_.path(), fmt::format("row {} has something that is not a number", next_row_));
    unsigned sample = 0;
    for (int i = 0; i < digits && is_digit(bytes_.peek()); ++i) {
      sample = std::min(sample * 10 + static_cast<unsigned>(bytes_.next() - '0'), 100000U);
    }
    if (sample > static_cast<unsigned>(header_.max_sample)) {
      fail(file_.path(), fmt::format("row {} has the sample {}: the header says {} at most", next_row_,
                                     sample, header_.max_sample));
    }
    return sample;
  }

  static constexpr int max_digits = std::numeric_limits<int>::max();

  SourceFile file_;
  FileInfo info_;
  Header header_;
  ByteStream bytes_;
  int next_row_ = 0;
  std::vector<std::byte> row_;
};

MatrixLayout binary_layout(const Header& header, PixelType type) {
  MatrixLayout layout;
  layout.offset = header.offset;
  layout.big_endian = true;
  layout.sample = header.kind == '4' ? Sample::bit : type == PixelType::u8 ? Sample::u8 : Sample::u16;
  if (layout.sample != Sample::bit && static_cast<double>(header.max_sample) != natural_range(type)) {
    layout.max_sample = static_cast<unsigned>(header.max_sample);
  }
  if (header.kind == '7' && is_black_and_white(header)) layout.multiplier = 255;
  return layout;
}

std::string tuple_type(const ImageSpec& spec) {
  if (spec.colour == Colour::multi) return {};
  return fmt::format("TUPLTYPE {}{}\n", spec.colour == Colour::rgb ? "RGB" : "GRAYSCALE",
                     spec.alpha ? "_ALPHA" : "");
}

// P5 or P6 where they can hold the image and the name does not ask for PAM.
std::string header_text(const std::filesystem::path& path, const ImageSpec& spec, int max_sample) {
  const std::string extension = path.extension().string();
  const bool pam = extension == ".pam" || extension == ".PAM" || spec.alpha || spec.channels % 2 == 0 ||
                   (spec.colour == Colour::multi && extension != ".pgm" && extension != ".ppm");
  if (!pam) {
    return fmt::format("P{}\n{} {}\n{}\n", spec.channels == 3 ? 6 : 5, spec.width, spec.height, max_sample);
  }
  return fmt::format("P7\nWIDTH {}\nHEIGHT {}\nDEPTH {}\nMAXVAL {}\n{}ENDHDR\n", spec.width, spec.height,
                     spec.channels, max_sample, tuple_type(spec));
}

}  // namespace

bool is_pnm(const SourceFile& file) {
  std::array<char, 3> magic{};
  return file.read_some(magic.data(), magic.size(), 0) == magic.size() && magic[0] == 'P' &&
         magic[1] >= '1' && magic[1] <= '7' && (is_space(magic[2]) || magic[2] == '#');
}

std::unique_ptr<InputFile> open_pnm(SourceFile file) {
  const Header header = read_header(file);
  FileInfo info = describe(header);
  if (is_ascii(header.kind)) return std::make_unique<AsciiInput>(std::move(file), std::move(info), header);
  const MatrixLayout layout = binary_layout(header, info.spec.type);
  const std::uint64_t more = check_file_size(file, info.spec, layout);
  if (more > 0) info.note = fmt::format("{} bytes after the image ignored", more);
  return open_matrix(std::move(file), std::move(info), layout);
}

std::unique_ptr<OutputFile> create_pnm(const std::filesystem::path& path, const FileInfo& info) {
  const double largest = natural_range(info.spec.type);
  const double white = std::min(info.spec.white(), largest);
  // Other programs choose between one and two bytes a sample by this number alone.
  const double least = info.spec.type == PixelType::u16 ? 256 : 1;
  if (white != std::floor(white) || white < least) {
    fail(path,
         fmt::format("PNM cannot hold {} samples with a range of {}: a whole number from {} to {} is needed",
                     name(info.spec.type), white, least, largest));
  }
  const int max_sample = static_cast<int>(white);
  const std::string header = header_text(path, info.spec, max_sample);
  MatrixLayout layout;
  layout.sample = info.spec.type == PixelType::u8 ? Sample::u8 : Sample::u16;
  layout.big_endian = true;
  layout.offset = header.size();
  layout.max_sample = white < largest ? static_cast<unsigned>(max_sample) : 0;
  return create_matrix(path, info, header, layout);
}

}  // namespace ungrain::io
