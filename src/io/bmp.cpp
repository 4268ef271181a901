// BMP: palettes of 1 to 8 bits, 16, 24 and 32 bits, uncompressed, with the headers of OS/2 1 and of Windows.
//
// A palette of grays makes a gray image, any other rgb. A fourth channel is alpha only where the header has a
// mask for it: in a plain 32-bit file those bytes mean nothing. Written are 8-bit gray, 24-bit rgb, and
// 32-bit rgb with alpha.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "io/builtin_formats.h"
#include "io/failure.h"
#include "io/packed_rows.h"
#include "io/sample_matrix.h"
#include "io/temporary_file.h"

namespace ungrain::io {
namespace {

constexpr std::uint32_t file_header_bytes = 14;
constexpr std::uint32_t core_header = 12;  // of OS/2 1: 16-bit sizes and colours of three bytes
constexpr std::uint32_t info_header = 40;
constexpr std::uint32_t v2_header = 52;  // with masks for three channels
constexpr std::uint32_t v3_header = 56;  // with one for alpha
constexpr std::uint32_t os2_header = 64;
constexpr std::uint32_t v4_header = 108;
constexpr std::uint32_t v5_header = 124;

enum Compression : std::uint32_t { uncompressed = 0, bitfields = 3, alpha_bitfields = 6 };

struct Header {
  std::uint32_t bytes = 0;  // of the second header
  std::int64_t width = 0;
  std::int64_t height = 0;
  bool top_down = false;
  unsigned bits = 0;  // a pixel
  std::uint32_t compression = 0;
  std::uint32_t colours = 0;                // entries of the palette; 0: as many as the bits can address
  std::array<std::uint32_t, 4> masks = {};  // red, green, blue, alpha; of 16 and 32 bits
  std::uint64_t palette_at = 0;
  std::uint64_t pixels_at = 0;
  bool has_profile = false;
};

[[noreturn]] void damaged(const SourceFile& file, const std::string& how) {
  fail(file.path(), fmt::format("its BMP header is damaged: {}", how));
}

// Little-endian numbers of a part of the file. Throws where the file is too short for that part.
class Fields {
 public:
  Fields(const SourceFile& file, std::uint64_t offset, std::size_t size) : bytes_(size) {
    if (file.read_some(bytes_.data(), size, offset) < size) {
      fail(file.path(), "truncated: it ends in its header");
    }
  }

  std::uint32_t u32(std::size_t at) const { return number(at, 4); }
  std::uint32_t u16(std::size_t at) const { return number(at, 2); }
  std::int32_t i32(std::size_t at) const { return std::bit_cast<std::int32_t>(number(at, 4)); }
  std::uint8_t u8(std::size_t at) const { return bytes_[at]; }

 private:
  std::uint32_t number(std::size_t at, std::size_t size) const {
    std::uint32_t value = 0;
    for (std::size_t i = size; i-- > 0;) value = value << 8U | bytes_[at + i];
    return value;
  }
  std::vector<std::uint8_t> bytes_;
};

void check_compression(const SourceFile& file, const Header& header) {
  static constexpr std::array names = {"", "RLE8", "RLE4", "", "JPEG", "PNG"};
  const std::uint32_t kind = header.compression;
  // In OS/2's header, kinds 3 and 4 are Huffman and RLE24.
  const bool os2_only = header.bytes == os2_header && kind > 2;
  if (kind < names.size() && *names[kind] != '\0' && !os2_only) {
    fail(file.path(),
         fmt::format("a BMP file with {} compression, which is not supported: save it uncompressed",
                     names[kind]));
  }
  if (os2_only || (kind != uncompressed && kind != bitfields && kind != alpha_bitfields)) {
    damaged(file, fmt::format("the compression {} is not known", kind));
  }
}

void check_mask(const SourceFile& file, std::uint32_t mask) {
  if (mask == 0) return;
  const std::uint32_t ones = mask >> static_cast<unsigned>(std::countr_zero(mask));
  if ((ones & (ones + 1)) != 0) damaged(file, fmt::format("the mask 0x{:08x} has gaps", mask));
}

// Masks of 16- and 32-bit pixels: the header's own, those behind a header without a place for them, or the
// default ones.
void read_masks(const SourceFile& file, Header& header) {
  const bool own = header.compression != uncompressed;
  if (own && header.bits != 16 && header.bits != 32) {
    damaged(file, fmt::format("masks for {} bits a pixel", header.bits));
  }
  if (header.bits != 16 && header.bits != 32) return;
  const bool alpha = header.bytes >= v3_header || header.compression == alpha_bitfields;
  const std::size_t count = alpha ? 4 : 3;
  std::array<std::uint32_t, 4> masks = {};
  if (own || (header.bytes >= v2_header && header.bytes != os2_header)) {
    const Fields fields(file, file_header_bytes + info_header, 4 * count);
    for (std::size_t i = 0; i < count; ++i) masks[i] = fields.u32(4 * i);
    header.palette_at =
        std::max(header.palette_at, file_header_bytes + info_header + 4 * std::uint64_t{count});
  }
  if (!own && header.bits == 16) masks = {0x7c00, 0x03e0, 0x001f, masks[3]};
  if (!own && header.bits == 32) masks = {0xff0000, 0xff00, 0xff, masks[3]};
  for (const std::uint32_t mask : masks) check_mask(file, mask);
  if ((masks[0] | masks[1] | masks[2]) == 0) damaged(file, "no mask has a bit");
  header.masks = masks;
}

Header read_header(const SourceFile& file) {
  const Fields start(file, 0, file_header_bytes + 4);
  Header header;
  header.pixels_at = start.u32(10);
  header.bytes = start.u32(14);
  static constexpr std::array known = {core_header, info_header, v2_header, v3_header,
                                       os2_header,  v4_header,   v5_header};
  if (std::find(known.begin(), known.end(), header.bytes) == known.end()) {
    damaged(file, fmt::format("it has {} bytes", header.bytes));
  }
  header.palette_at = file_header_bytes + header.bytes;
  const Fields fields(file, file_header_bytes, header.bytes);
  const bool core = header.bytes == core_header;
  header.width = core ? std::int64_t{fields.u16(4)} : fields.i32(4);
  header.height = core ? std::int64_t{fields.u16(6)} : fields.i32(8);
  header.top_down = header.height < 0;
  if (header.top_down) header.height = -header.height;
  const unsigned planes = fields.u16(core ? 8 : 12);
  header.bits = fields.u16(core ? 10 : 14);
  if (!core) {
    header.compression = fields.u32(16);
    header.colours = fields.u32(32);
  }
  // "LINK" or "MBED".
  header.has_profile =
      header.bytes == v5_header && (fields.u32(56) == 0x4c494e4b || fields.u32(56) == 0x4d424544);

  check_compression(file, header);
  check_size(file.path(), header.width, header.height, 1);
  if (planes != 1) damaged(file, fmt::format("{} planes", planes));
  static constexpr std::array depths = {1U, 2U, 4U, 8U, 16U, 24U, 32U};
  if (std::find(depths.begin(), depths.end(), header.bits) == depths.end()) {
    damaged(file, fmt::format("{} bits a pixel", header.bits));
  }
  read_masks(file, header);
  if (header.pixels_at < header.palette_at) {
    damaged(file, fmt::format("the pixels begin at byte {}, in the header", header.pixels_at));
  }
  return header;
}

// Rows end at multiples of four bytes. Fits 64 bits for any header: 2^31 * 4.
std::uint64_t stored_row_bytes(std::int64_t width, unsigned bits) {
  return (static_cast<std::uint64_t>(width) * bits + 31) / 32 * 4;
}

void check_file_size(const SourceFile& file, const Header& header) {
  const std::uint64_t bytes =
      stored_row_bytes(header.width, header.bits) * static_cast<std::uint64_t>(header.height);
  const std::uint64_t there = file.size() - std::min(header.pixels_at, file.size());
  if (bytes > there) {
    fail(file.path(),
         fmt::format("truncated: the header promises {} bytes of pixels ({} x {}), the file has {}", bytes,
                     header.width, header.height, there));
  }
}

using Rgb = std::array<std::uint8_t, 3>;

// The colours between the header and the pixels, at most as many as the header announces.
std::vector<Rgb> read_palette(const SourceFile& file, const Header& header) {
  const std::uint64_t entry = header.bytes == core_header ? 3 : 4;
  std::uint64_t count = std::uint64_t{1} << header.bits;
  if (header.colours != 0) count = std::min<std::uint64_t>(count, header.colours);
  count = std::min(count, (header.pixels_at - header.palette_at) / entry);
  if (count == 0) damaged(file, fmt::format("{} bits a pixel without a palette", header.bits));
  const Fields fields(file, header.palette_at, count * entry);
  std::vector<Rgb> palette(count);
  for (std::size_t i = 0; i < count; ++i) {
    palette[i] = {fields.u8(i * entry + 2), fields.u8(i * entry + 1), fields.u8(i * entry)};
  }
  return palette;
}

bool is_gray(const std::vector<Rgb>& palette) {
  return std::all_of(palette.begin(), palette.end(),
                     [](const Rgb& c) { return c[0] == c[1] && c[1] == c[2]; });
}

// One channel's bits, scaled to 0 to 255.
class MaskedChannel {
 public:
  explicit MaskedChannel(std::uint32_t mask)
      : mask_(mask), shift_(mask == 0 ? 0U : static_cast<unsigned>(std::countr_zero(mask))) {}

  std::byte of(std::uint32_t pixel) const {
    if (mask_ == 0) return std::byte{0};
    const std::uint64_t most = mask_ >> shift_;
    const std::uint64_t value = (pixel & mask_) >> shift_;
    return static_cast<std::byte>((value * 255 + most / 2) / most);
  }

 private:
  std::uint32_t mask_;
  unsigned shift_;
};

std::string note_of(const Header& header) {
  int widest = 0;
  for (const std::uint32_t mask : header.masks) widest = std::max(widest, std::popcount(mask));
  std::string note;
  if (widest > 8) note = fmt::format("{}-bit samples converted to u8", widest);
  if (header.has_profile) note += fmt::format("{}its colour profile left out", note.empty() ? "" : ", ");
  return note;
}

class BmpInput final : public InputFile {
 public:
  BmpInput(SourceFile file, const Header& header) : file_(std::move(file)), header_(header) {
    if (header.bits <= 8) palette_ = read_palette(file_, header);
    const bool gray = header.bits <= 8 && is_gray(palette_);
    ImageSpec& spec = info_.spec;
    spec.width = static_cast<int>(header.width);
    spec.height = static_cast<int>(header.height);
    spec.alpha = header.masks[3] != 0;
    spec.channels = gray ? 1 : spec.alpha ? 4 : 3;
    spec.colour = gray ? Colour::gray : Colour::rgb;
    spec.type = PixelType::u8;
    info_.format = "BMP";
    info_.note = note_of(header);
  }

  const FileInfo& info() const override { return info_; }
  void check_unchanged() override { file_.check_unchanged(); }
  void select_page(int page) override {
    if (page != 0) fail(file_.path(), fmt::format("has no page {}", page + 1));
  }

  void read_rows(int first, const ImageView& rows) override {
    check_rows(file_.path(), info_.spec, first, rows);
    const std::uint64_t stored = stored_row_bytes(header_.width, header_.bits);
    constexpr std::uint64_t block_bytes = 4U << 20U;
    const int block_rows = static_cast<int>(
        std::clamp<std::uint64_t>(block_bytes / stored, 1, static_cast<std::uint64_t>(info_.spec.height)));
    decoded_.resize(row_bytes(info_.spec));
    for (int done = 0; done < rows.spec.height; done += block_rows) {
      const int count = std::min(block_rows, rows.spec.height - done);
      const int top = first + done;
      const int lowest = header_.top_down ? top : info_.spec.height - top - count;
      block_.resize(stored * static_cast<std::uint64_t>(count));
      file_.read(block_.data(), block_.size(),
                 header_.pixels_at + static_cast<std::uint64_t>(lowest) * stored);
      for (int y = 0; y < count; ++y) {
        const int place = header_.top_down ? y : count - 1 - y;
        decode(block_.data() + static_cast<std::uint64_t>(place) * stored, top + y);
        unpack_row(decoded_.data(), rows, done + y);
      }
    }
  }

 private:
  void decode(const std::uint8_t* stored, int y) {
    if (header_.bits <= 8) {
      decode_indices(stored, y);
    } else if (header_.bits == 24) {
      for (std::size_t i = 0; i < decoded_.size(); ++i) decoded_[i] = std::byte{stored[i + 2 - 2 * (i % 3)]};
    } else {
      decode_masked(stored);
    }
  }

  void decode_indices(const std::uint8_t* stored, int y) {
    const unsigned per_byte = 8 / header_.bits;
    const unsigned mask = (1U << header_.bits) - 1;
    const auto channels = static_cast<std::size_t>(info_.spec.channels);
    for (std::size_t x = 0; x < static_cast<std::size_t>(info_.spec.width); ++x) {
      const unsigned shift = header_.bits * (per_byte - 1 - static_cast<unsigned>(x % per_byte));
      const unsigned index = stored[x / per_byte] >> shift & mask;
      if (index >= palette_.size()) {
        fail(file_.path(),
             fmt::format("row {} has the colour {}: the palette has {}", y, index, palette_.size()));
      }
      for (std::size_t c = 0; c < channels; ++c) decoded_[x * channels + c] = std::byte{palette_[index][c]};
    }
  }

  void decode_masked(const std::uint8_t* stored) {
    const std::array channels = {MaskedChannel(header_.masks[0]), MaskedChannel(header_.masks[1]),
                                 MaskedChannel(header_.masks[2]), MaskedChannel(header_.masks[3])};
    const std::size_t size = header_.bits / 8;
    const auto count = static_cast<std::size_t>(info_.spec.channels);
    for (std::size_t x = 0; x < static_cast<std::size_t>(info_.spec.width); ++x) {
      std::uint32_t pixel = 0;
      for (std::size_t i = size; i-- > 0;) pixel = pixel << 8U | stored[x * size + i];
      for (std::size_t c = 0; c < count; ++c) decoded_[x * count + c] = channels[c].of(pixel);
    }
  }

  SourceFile file_;
  Header header_;
  FileInfo info_;
  std::vector<Rgb> palette_;
  std::vector<std::uint8_t> block_;
  std::vector<std::byte> decoded_;
};

void put(std::string& bytes, std::uint64_t value, int size) {
  for (int i = 0; i < size; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xffU);
}

std::string header_text(const std::filesystem::path& path, const ImageSpec& spec) {
  const auto bits = static_cast<unsigned>(8 * spec.channels);
  const std::uint32_t header = spec.alpha ? v4_header : info_header;
  const std::uint64_t pixels_at = file_header_bytes + header + (spec.channels == 1 ? 4 * 256 : 0);
  const std::uint64_t pixels = stored_row_bytes(spec.width, bits) * static_cast<std::uint64_t>(spec.height);
  if (pixels > std::numeric_limits<std::uint32_t>::max() - pixels_at) {
    fail(path, fmt::format("BMP holds 4 GiB at most, and {} x {} pixels need {} bytes; write .tif",
                           spec.width, spec.height, pixels_at + pixels));
  }
  std::string text = "BM";
  put(text, pixels_at + pixels, 4);
  put(text, 0, 4);
  put(text, pixels_at, 4);
  put(text, header, 4);
  put(text, static_cast<std::uint64_t>(spec.width), 4);
  put(text, static_cast<std::uint64_t>(spec.height), 4);
  put(text, 1, 2);
  put(text, bits, 2);
  put(text, spec.alpha ? bitfields : uncompressed, 4);
  put(text, pixels, 4);
  put(text, 0, 8);  // pixels a metre: unknown
  put(text, spec.channels == 1 ? 256 : 0, 4);
  put(text, 0, 4);
  if (spec.alpha) {
    for (const std::uint32_t mask : {0x00ff0000U, 0x0000ff00U, 0x000000ffU, 0xff000000U}) put(text, mask, 4);
    put(text, 0x73524742, 4);  // the colours are sRGB
    text.resize(file_header_bytes + header, '\0');
  }
  for (unsigned gray = 0; spec.channels == 1 && gray < 256; ++gray) put(text, gray * 0x010101U, 4);
  return text;
}

class BmpOutput final : public OutputFile {
 public:
  BmpOutput(const std::filesystem::path& path, const FileInfo& info)
      : header_(header_text(path, info.spec)),
        file_(path, info.access),
        spec_(info.spec),
        stored_(stored_row_bytes(info.spec.width, static_cast<unsigned>(8 * info.spec.channels))),
        cursor_(path, info.spec.height, 1) {
    file_.write(header_.data(), header_.size(), 0);
  }

  void write_rows(int first, const ConstImageView& rows) override {
    check_rows(file_.target(), spec_, first, rows);
    cursor_.take(first, rows.spec.height);
    constexpr std::uint64_t block_bytes = 4U << 20U;
    const int block_rows = static_cast<int>(
        std::clamp<std::uint64_t>(block_bytes / stored_, 1, static_cast<std::uint64_t>(spec_.height)));
    for (int done = 0; done < rows.spec.height; done += block_rows) {
      const int count = std::min(block_rows, rows.spec.height - done);
      block_.assign(stored_ * static_cast<std::uint64_t>(count), std::byte{0});
      for (int y = 0; y < count; ++y) {
        std::byte* row = block_.data() + static_cast<std::uint64_t>(count - 1 - y) * stored_;
        pack_row(rows, done + y, row);
        swap_red_and_blue(row);
      }
      const int lowest = spec_.height - (first + done) - count;
      file_.write(block_.data(), block_.size(),
                  header_.size() + static_cast<std::uint64_t>(lowest) * stored_);
    }
  }

  void next_page() override { cursor_.next_page(); }

  void commit() override {
    cursor_.check_complete();
    file_.commit();
  }

 private:
  void swap_red_and_blue(std::byte* row) const {
    if (spec_.channels < 3) return;
    const auto channels = static_cast<std::size_t>(spec_.channels);
    for (std::size_t x = 0; x < static_cast<std::size_t>(spec_.width); ++x) {
      std::swap(row[x * channels], row[x * channels + 2]);
    }
  }

  std::string header_;
  TemporaryFile file_;
  ImageSpec spec_;
  std::uint64_t stored_;
  RowCursor cursor_;
  std::vector<std::byte> block_;
};

}  // namespace

bool is_bmp(const SourceFile& file) {
  std::array<char, 2> magic{};
  return file.read_some(magic.data(), magic.size(), 0) == magic.size() && magic[0] == 'B' && magic[1] == 'M';
}

std::unique_ptr<InputFile> open_bmp(SourceFile file) {
  const Header header = read_header(file);
  check_file_size(file, header);
  return std::make_unique<BmpInput>(std::move(file), header);
}

std::unique_ptr<OutputFile> create_bmp(const std::filesystem::path& path, const FileInfo& info) {
  return std::make_unique<BmpOutput>(path, info);
}

}  // namespace ungrain::io
