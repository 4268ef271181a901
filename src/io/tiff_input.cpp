#include "io/tiff_input.h"

#include <fmt/format.h>
#include <tiffio.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "io/failure.h"
#include "io/imagej.h"
#include "io/packed_rows.h"
#include "io/page_stack.h"
#include "io/tiff_exif.h"
#include "io/tiff_handle.h"
#include "io/tiff_pages.h"
#include "io/tiff_rows.h"
#include "io/tiff_samples.h"
#include "io/tiff_tags.h"

namespace ungrain::io {
namespace {

// Names of compressions that this build of libtiff may lack.
std::string compression_name(int compression) {
  switch (compression) {
    case 33003:
    case 33004:
    case 33005:
    case COMPRESSION_JP2000:
      return "JPEG 2000";
    case 22610:
    case 34934:
      return "JPEG XR";
    case 50002:
    case 52546:
      return "JPEG XL";
    default:
      break;
  }
  const TIFFCodec* codec = TIFFFindCODEC(static_cast<std::uint16_t>(compression));
  return codec == nullptr ? fmt::format("compression {}", compression) : std::string(codec->name);
}

struct PageTags {
  TiffLayout layout;
  int sample_format = SAMPLEFORMAT_UINT;
  int photometric = PHOTOMETRIC_MINISBLACK;
  int compression = COMPRESSION_NONE;
  std::vector<std::uint16_t> extra;
  int max_sample = 0;  // 0: not in the file
};

PageTags read_tags(const SourceFile& file, const TiffHandle& handle) {
  PageTags tags;
  TiffLayout& layout = tags.layout;
  layout.width = handle.field<std::uint32_t>(TIFFTAG_IMAGEWIDTH, 0);
  layout.height = handle.field<std::uint32_t>(TIFFTAG_IMAGELENGTH, 0);
  layout.bits = handle.field<std::uint16_t>(TIFFTAG_BITSPERSAMPLE, 1);
  layout.samples = handle.field<std::uint16_t>(TIFFTAG_SAMPLESPERPIXEL, 1);
  layout.planar = layout.samples > 1 && handle.field<std::uint16_t>(TIFFTAG_PLANARCONFIG, 1) != 1;
  if (TIFFIsTiled(handle.get()) != 0) {
    layout.tile_width = handle.field<std::uint32_t>(TIFFTAG_TILEWIDTH, 0);
    layout.tile_height = handle.field<std::uint32_t>(TIFFTAG_TILELENGTH, 0);
    const std::uint64_t tile_bits = static_cast<std::uint64_t>(layout.tile_width) * layout.bits;
    if (layout.tile_width == 0 || layout.tile_height == 0 || tile_bits % 8 != 0) {
      fail(file.path(), "damaged: its tiles have no size that tiles can have");
    }
  } else {
    layout.strip_rows = std::clamp<std::uint32_t>(handle.field<std::uint32_t>(TIFFTAG_ROWSPERSTRIP, 0), 1,
                                                  std::max<std::uint32_t>(layout.height, 1));
  }
  tags.sample_format = handle.field<std::uint16_t>(TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_UINT);
  tags.compression = handle.field<std::uint16_t>(TIFFTAG_COMPRESSION, COMPRESSION_NONE);
  std::uint16_t photometric = 0;
  if (TIFFGetField(handle.get(), TIFFTAG_PHOTOMETRIC, &photometric) != 1) {
    photometric = layout.samples >= 3 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK;
  }
  tags.photometric = photometric;
  std::uint16_t count = 0;
  const std::uint16_t* kinds = nullptr;
  if (TIFFGetField(handle.get(), TIFFTAG_EXTRASAMPLES, &count, &kinds) == 1) {
    tags.extra.assign(kinds, kinds + count);
  }
  std::uint16_t most = 0;
  if (TIFFGetField(handle.get(), TIFFTAG_MAXSAMPLEVALUE, &most) == 1) tags.max_sample = most;
  return tags;
}

int colours_of(int photometric) {
  switch (photometric) {
    case PHOTOMETRIC_RGB:
    case PHOTOMETRIC_YCBCR:
    case PHOTOMETRIC_CIELAB:
    case PHOTOMETRIC_ICCLAB:
      return 3;
    case PHOTOMETRIC_SEPARATED:
      return 4;
    default:
      return 1;
  }
}

void check_readable(const SourceFile& file, const PageTags& tags) {
  if (TIFFIsCODECConfigured(static_cast<std::uint16_t>(tags.compression)) != 1) {
    fail(file.path(), fmt::format("its pixels are compressed as {}, which this build cannot read",
                                  compression_name(tags.compression)));
  }
  switch (tags.photometric) {
    case PHOTOMETRIC_MINISBLACK:
    case PHOTOMETRIC_MINISWHITE:
    case PHOTOMETRIC_RGB:
    case PHOTOMETRIC_PALETTE:
    case PHOTOMETRIC_SEPARATED:
    case PHOTOMETRIC_CIELAB:
    case PHOTOMETRIC_ICCLAB:
    case PHOTOMETRIC_YCBCR:
    case PHOTOMETRIC_MASK:
      return;
    case PHOTOMETRIC_LOGL:
    case PHOTOMETRIC_LOGLUV:
      fail(file.path(), "its colours are LogLuv, which cannot be read");
    default:
      fail(file.path(), fmt::format("its colours are of a kind that cannot be read (photometric "
                                    "interpretation {})",
                                    tags.photometric));
  }
}

std::string sample_text(const PageTags& tags) {
  const bool complex =
      tags.sample_format == SAMPLEFORMAT_COMPLEXINT || tags.sample_format == SAMPLEFORMAT_COMPLEXIEEEFP;
  return complex ? "complex numbers"
                 : fmt::format("{}-bit {}", tags.layout.bits,
                               tags.sample_format == SAMPLEFORMAT_IEEEFP ? "floats" : "integers");
}

Bytes value_bytes(const TiffReader& reader, const TiffDirectory& directory, std::uint16_t tag) {
  constexpr std::uint64_t most = std::uint64_t{64} << 20U;
  for (const TiffField& field : directory.fields) {
    if (field.tag == tag && reader.holds(field) && field.bytes <= most) {
      return reader.bytes(field.at, static_cast<std::size_t>(field.bytes));
    }
  }
  return {};
}

std::string text_value(const TiffReader& reader, const TiffDirectory& directory, std::uint16_t tag) {
  std::string text;
  for (const std::byte byte : value_bytes(reader, directory, tag)) {
    if (byte == std::byte{0}) break;
    text.push_back(static_cast<char>(byte));
  }
  return text;
}

// An ImageJ stack in one directory: all images uncompressed and contiguous.
struct RawStack {
  std::uint64_t offset = 0;
  std::uint64_t page_bytes = 0;
  bool big_endian = false;
};

class TiffInput final : public InputFile {
 public:
  TiffInput(SourceFile source, const OpenOptions& options)
      : file_(std::make_shared<SourceFile>(std::move(source))) {
    pages_ = find_tiff_pages(*file_, options.pages);
    const TiffHandle first(*file_, first_wanted(options.pages));
    tags_ = read_tags(*file_, first);
    check_readable(*file_, tags_);
    choose_decoding(first);
    describe(options);
    read_metadata();
    find_raw_stack(first);
    info_.stack = described_stack(metadata_.description, {.pages = info_.pages,
                                                          .samples = tags_.layout.samples,
                                                          .left_out = pages_.reduced + pages_.masks,
                                                          .resolution = metadata_.resolution});
    read_palette(first);
    count_memory(first);
  }

  const FileInfo& info() const override { return info_; }
  const Metadata& metadata() const override { return metadata_; }
  std::uint64_t decoding_bytes() const override { return decoding_bytes_; }
  void check_unchanged() override { file_->check_unchanged(); }

  void select_page(int page) override {
    if (page < 0 || page >= info_.pages) fail(file_->path(), fmt::format("has no page {}", page + 1));
    if (page != page_) rows_.reset();
    page_ = page;
  }

  void read_rows(int first, const ImageView& rows) override {
    check_rows(file_->path(), info_.spec, first, rows);
    if (!raw_ && !rows_) open_page();
    for (int y = 0; y < rows.spec.height; ++y) unpack_row(decoded_row(first + y), rows, y);
  }

 private:
  std::uint64_t first_wanted(const PageList& wanted) const {
    for (std::size_t page = 0; page < pages_.directories.size(); ++page) {
      if (wanted.contains(page + 1)) return pages_.directories[page];
    }
    return pages_.directories.front();
  }

  void open_page() {
    const std::uint64_t directory = pages_.directories[static_cast<std::size_t>(page_)];
    if (page_ > 0) {
      const TiffHandle handle(*file_, directory);
      const PageTags here = read_tags(*file_, handle);
      const bool alike = here.sample_format == tags_.sample_format && here.photometric == tags_.photometric;
      if (!alike) fail(file_->path(), fmt::format("page {} has other samples than the first", page_ + 1));
      check_readable(*file_, here);
      tags_.layout.planar = here.layout.planar;
      tags_.layout.tile_width = here.layout.tile_width;
      tags_.layout.tile_height = here.layout.tile_height;
      tags_.layout.strip_rows = here.layout.strip_rows;
    }
    try {
      rows_ = tiff_rows(*file_, directory, tags_.layout);
    } catch (const std::bad_alloc&) {
      fail(file_->path(), "damaged: its strips or tiles are larger than the memory");
    }
  }

  // Whether libtiff converts the colours to rgb.
  void choose_decoding(const TiffHandle& first) {
    TiffLayout& layout = tags_.layout;
    const bool jpeg = tags_.compression == COMPRESSION_JPEG;
    if (tags_.compression == COMPRESSION_OJPEG || (tags_.photometric == PHOTOMETRIC_YCBCR && !jpeg)) {
      std::array<char, 1024> why{};
      if (TIFFRGBAImageOK(first.get(), why.data()) != 1) {
        fail(file_->path(), fmt::format("its colours cannot be read: {}", one_line(why.data())));
      }
      layout.as_rgba = true;
    }
    const bool is_8_bit = layout.bits == 8 && tags_.sample_format == SAMPLEFORMAT_UINT;
    const bool palette = tags_.photometric == PHOTOMETRIC_PALETTE;
    const std::optional<TiffCoding> coding = coding_of(layout.bits, tags_.sample_format);
    if (!coding) {
      fail(file_->path(), fmt::format("its samples are {}, which cannot be read", sample_text(tags_)));
    }
    coding_ = layout.as_rgba ? TiffCoding{} : *coding;
    if (jpeg && !is_8_bit) fail(file_->path(), "its pixels are 12-bit JPEG, which this build cannot read");
    if (tags_.photometric == PHOTOMETRIC_MINISWHITE && coding->number == TiffNumber::floating) {
      fail(file_->path(), "its samples are floats where 0 is white, which cannot be read");
    }
    if (palette && (layout.bits > 8 || layout.samples != 1)) {
      fail(file_->path(),
           fmt::format("a palette of {} bits and {} samples cannot be read", layout.bits, layout.samples));
    }
  }

  void describe(const OpenOptions& options) {
    const TiffLayout& layout = tags_.layout;
    constexpr std::uint32_t most = std::numeric_limits<int>::max();
    if (layout.width == 0 || layout.height == 0 || layout.width > most || layout.height > most) {
      fail(file_->path(), fmt::format("its header says {} x {} pixels: 1 to {} a side are possible",
                                      layout.width, layout.height, most));
    }
    const bool palette = tags_.photometric == PHOTOMETRIC_PALETTE;
    const int channels = layout.as_rgba ? 3 : palette ? 3 : layout.samples;
    if (channels > max_channels) {
      fail(file_->path(), fmt::format("has {} channels: 1 to {} are supported", channels, max_channels));
    }
    info_.format = "TIFF";
    info_.pages = static_cast<int>(pages_.directories.size());
    add_note(coding_.note);
    if (pages_.reduced > 0) add_note(fmt::format("{} reduced copies of pages left out", pages_.reduced));
    if (pages_.masks > 0) add_note(fmt::format("{} transparency masks left out", pages_.masks));
    ImageSpec& spec = info_.spec;
    spec.width = static_cast<int>(layout.width);
    spec.height = static_cast<int>(layout.height);
    spec.channels = channels;
    spec.type = coding_.type;
    spec.range = coding_.range;
    info_.white_unknown = coding_.white_unknown;
    if (!is_float(spec.type) && tags_.max_sample > 1 && tags_.max_sample < natural_range(spec.type) &&
        !palette) {
      spec.range = tags_.max_sample;
    }
    describe_colours(options);
  }

  void describe_colours(const OpenOptions& options) {
    ImageSpec& spec = info_.spec;
    const bool palette = tags_.photometric == PHOTOMETRIC_PALETTE;
    const int colours = palette || tags_.layout.as_rgba ? 3 : colours_of(tags_.photometric);
    const int extra = spec.channels - colours;
    const bool said = !tags_.extra.empty() && tags_.extra.front() != EXTRASAMPLE_UNSPECIFIED;
    const bool possible = extra == 1 && (spec.channels == 2 || spec.channels == 4);
    spec.alpha = possible && options.alpha.value_or(said);
    if (options.alpha == true && !possible) {
      fail(file_->path(), fmt::format("--alpha yes: none of its {} channels can be alpha", spec.channels));
    }
    if (tags_.photometric == PHOTOMETRIC_SEPARATED && spec.channels == 4) info_.model = ColourModel::cmyk;
    const bool lab = tags_.photometric == PHOTOMETRIC_CIELAB || tags_.photometric == PHOTOMETRIC_ICCLAB;
    if (lab) info_.model = ColourModel::lab;
    const bool whole = spec.channels == colours || spec.alpha;  // no samples beside the colours
    spec.colour = whole && colours == 1           ? Colour::gray
                  : whole && colours == 3 && !lab ? Colour::rgb
                                                  : Colour::multi;
    metadata_.tiff_storage = TiffStorage{.compression = tags_.compression,
                                         .tile_width = static_cast<int>(tags_.layout.tile_width),
                                         .tile_height = static_cast<int>(tags_.layout.tile_height),
                                         .photometric = tags_.photometric,
                                         .samples = spec.channels,
                                         .planar = tags_.layout.planar,
                                         .extra = tags_.extra};
    if (!tags_.extra.empty() && options.alpha) {
      metadata_.tiff_storage->extra = {static_cast<std::uint16_t>(!*options.alpha ? EXTRASAMPLE_UNSPECIFIED
                                                                  : said          ? tags_.extra.front()
                                                                                  : EXTRASAMPLE_UNASSALPHA)};
    }
  }

  void add_note(const std::string& note) {
    if (note.empty()) return;
    if (!info_.note.empty()) info_.note += "; ";
    info_.note += note;
  }

  void read_metadata() {
    const TiffReader reader(*file_);
    const TiffDirectory directory = reader.directory(pages_.directories.front());
    const std::vector<std::byte> exif = exif_of_tiff(*file_);
    const std::span<const std::byte> block = without_exif_mark(exif);
    metadata_.exif.assign(block.begin(), block.end());
    metadata_.xmp = value_bytes(reader, directory, tiff_tag::xmp);
    metadata_.iptc = value_bytes(reader, directory, tiff_tag::iptc);
    metadata_.photoshop = value_bytes(reader, directory, tiff_tag::photoshop);
    if (metadata_.iptc.empty()) metadata_.iptc = iptc_in_photoshop(metadata_.photoshop);
    metadata_.icc = value_bytes(reader, directory, tiff_tag::icc_profile);
    metadata_.description = text_value(reader, directory, tiff_tag::image_description);
    metadata_.tiff_tags = std::make_shared<TiffTagSource>(file_, pages_.directories);
  }

  void read_tagged_numbers(const TiffHandle& first) {
    const auto orientation = first.field<std::uint16_t>(TIFFTAG_ORIENTATION, 1);
    if (orientation >= 1 && orientation <= 8) metadata_.orientation = orientation;
    float x = 0;
    float y = 0;
    if (TIFFGetField(first.get(), TIFFTAG_XRESOLUTION, &x) == 1 &&
        TIFFGetField(first.get(), TIFFTAG_YRESOLUTION, &y) == 1 && x > 0 && y > 0 && std::isfinite(x) &&
        std::isfinite(y)) {
      const auto unit = first.field<std::uint16_t>(TIFFTAG_RESOLUTIONUNIT, RESUNIT_INCH);
      metadata_.resolution = Resolution{x, y,
                                        unit == RESUNIT_INCH         ? Resolution::Unit::inch
                                        : unit == RESUNIT_CENTIMETER ? Resolution::Unit::centimetre
                                                                     : Resolution::Unit::none};
    }
  }

  // ImageJ writes one directory, before the pixels, and the number of images into the description.
  void find_raw_stack(const TiffHandle& first) {
    read_tagged_numbers(first);
    const std::optional<ImageJStack> stack = parse_imagej(metadata_.description);
    if (!stack || stack->images == 1 || stack->images == info_.pages) return;
    if (pages_.directories.size() > 1) {
      fail(file_->path(),
           fmt::format("damaged or truncated: {} pages were found, its description promises {}",
                       pages_.directories.size(), stack->images));
    }
    const TiffLayout& layout = tags_.layout;
    const std::uint64_t* offsets = nullptr;
    if (tags_.compression != COMPRESSION_NONE || layout.tile_width != 0 || layout.planar ||
        TIFFGetField(first.get(), TIFFTAG_STRIPOFFSETS, &offsets) != 1) {
      fail(file_->path(), fmt::format("its description promises {} images, 1 was found", stack->images));
    }
    const std::uint64_t page_bytes =
        stored_bytes(coding_, static_cast<std::size_t>(layout.width) * layout.samples) *
        static_cast<std::uint64_t>(layout.height);
    const std::uint64_t room = offsets[0] < file_->size() ? file_->size() - offsets[0] : 0;
    const auto images = static_cast<std::uint64_t>(stack->images);
    if (images > std::numeric_limits<int>::max() || images > room / page_bytes) {
      // A page extracted from a stack keeps the description, but its directory lies behind its pixels.
      if (pages_.directories.front() > offsets[0]) return;
      fail(file_->path(), fmt::format("truncated: {} images were found, its description promises {}",
                                      room / page_bytes, stack->images));
    }
    raw_ = RawStack{offsets[0], page_bytes, TIFFIsBigEndian(first.get()) != 0};
    info_.pages = static_cast<int>(images);
  }

  void read_palette(const TiffHandle& first) {
    if (tags_.photometric != PHOTOMETRIC_PALETTE) return;
    std::array<const std::uint16_t*, 3> maps{};
    if (TIFFGetField(first.get(), TIFFTAG_COLORMAP, &maps[0], &maps[1], &maps[2]) != 1) {
      fail(file_->path(), "damaged: its palette is missing");
    }
    const std::size_t colours = std::size_t{1} << static_cast<unsigned>(tags_.layout.bits);
    bool bytes_only = true;  // some programs fill only the lower byte
    for (const std::uint16_t* map : maps) {
      bytes_only = bytes_only && std::all_of(map, map + colours, [](std::uint16_t v) { return v < 256; });
    }
    palette_.resize(3 * colours);
    for (std::size_t i = 0; i < colours; ++i) {
      for (std::size_t c = 0; c < 3; ++c) {
        palette_[3 * i + c] = static_cast<std::uint8_t>(bytes_only ? maps[c][i] : maps[c][i] >> 8U);
      }
    }
    info_.spec.type = PixelType::u8;
    info_.note = "";
    add_note("palette colours converted to rgb");
  }

  // A compressed strip is held while it is decoded.
  void count_memory(const TiffHandle& first) {
    if (raw_) return;
    decoding_bytes_ = row_memory(tags_.layout);
    if (tags_.compression == COMPRESSION_NONE) return;
    const std::uint32_t parts =
        tags_.layout.tile_width != 0 ? TIFFNumberOfTiles(first.get()) : TIFFNumberOfStrips(first.get());
    std::uint64_t largest = 0;
    for (std::uint32_t i = 0; i < parts; ++i) {
      largest = std::max<std::uint64_t>(largest, TIFFGetStrileByteCount(first.get(), i));
    }
    decoding_bytes_ += std::min<std::uint64_t>(largest, file_->size()) * tags_.layout.planes();
  }

  const std::byte* decoded_row(int y) {
    const ImageSpec& spec = info_.spec;
    decoded_.resize(row_bytes(spec));
    const TiffLayout& layout = tags_.layout;
    if (raw_) {
      decode_into(raw_row(y), static_cast<std::size_t>(spec.width) * spec.channels, decoded_.data(), y);
    } else if (layout.as_rgba) {
      const std::byte* rgba = rows_->row(0, static_cast<std::uint32_t>(y));
      for (int x = 0; x < spec.width; ++x) std::memcpy(decoded_.data() + 3 * x, rgba + 4 * x, 3);
      return decoded_.data();
    } else if (!palette_.empty()) {
      expand_palette(y);
      return decoded_.data();
    } else if (layout.planar) {
      gather_planes(y);
    } else {
      decode_into(rows_->row(0, static_cast<std::uint32_t>(y)),
                  static_cast<std::size_t>(spec.width) * spec.channels, decoded_.data(), y);
    }
    if (tags_.photometric == PHOTOMETRIC_MINISWHITE) invert();
    if (tags_.photometric == PHOTOMETRIC_CIELAB) shift_lab();
    return decoded_.data();
  }

  void decode_into(const std::byte* stored, std::size_t samples, std::byte* to, int y) {
    if (const std::optional<double> beyond = decode_samples(coding_, stored, samples, to)) {
      fail_beyond_float(file_->path(), y, *beyond);
    }
  }

  const std::byte* raw_row(int y) {
    const std::uint64_t bytes = raw_->page_bytes / static_cast<std::uint64_t>(info_.spec.height);
    stored_.resize(static_cast<std::size_t>(bytes));
    file_->read(stored_.data(), stored_.size(),
                raw_->offset + static_cast<std::uint64_t>(page_) * raw_->page_bytes +
                    static_cast<std::uint64_t>(y) * bytes);
    if (raw_->big_endian) {
      const auto size = static_cast<std::ptrdiff_t>(coding_.bits / 8);
      for (auto i = stored_.begin(); size > 1 && i != stored_.end(); i += size) std::reverse(i, i + size);
    }
    return stored_.data();
  }

  void expand_palette(int y) {
    const auto width = static_cast<std::size_t>(info_.spec.width);
    stored_.resize(width);
    const std::byte* indices = rows_->row(0, static_cast<std::uint32_t>(y));
    decode_into(indices, width, stored_.data(), y);
    const unsigned step =
        tags_.layout.bits < 8 ? 255U / ((1U << static_cast<unsigned>(tags_.layout.bits)) - 1) : 1;
    for (std::size_t x = 0; x < width; ++x) {
      const std::size_t index = std::to_integer<unsigned>(stored_[x]) / step;
      std::memcpy(decoded_.data() + 3 * x, palette_.data() + 3 * index, 3);
    }
  }

  void gather_planes(int y) {
    const auto width = static_cast<std::size_t>(info_.spec.width);
    const auto size = static_cast<std::size_t>(bytes_per_sample(info_.spec.type));
    const auto channels = static_cast<std::size_t>(info_.spec.channels);
    stored_.resize(width * size);
    for (std::size_t plane = 0; plane < channels; ++plane) {
      decode_into(rows_->row(static_cast<int>(plane), static_cast<std::uint32_t>(y)), width, stored_.data(),
                  y);
      for (std::size_t x = 0; x < width; ++x) {
        std::memcpy(decoded_.data() + (x * channels + plane) * size, stored_.data() + x * size, size);
      }
    }
  }

  // For images in which 0 is white.
  void invert() {
    const ImageSpec& spec = info_.spec;
    if (is_float(spec.type)) return;
    const auto white = static_cast<unsigned>(spec.white());
    for_each_sample([&](unsigned value, int channel) {
      return spec.alpha && channel == spec.channels - 1 ? value : white - std::min(value, white);
    });
  }

  // a* and b* are signed; shifted, they do not jump from 127 to -128 when filtered.
  void shift_lab() {
    if (is_float(info_.spec.type)) return;
    const unsigned half = info_.spec.type == PixelType::u8 ? 0x80U : 0x8000U;
    for_each_sample(
        [&](unsigned value, int channel) { return channel == 1 || channel == 2 ? value ^ half : value; });
  }

  template <class Change>
  void for_each_sample(Change change) {
    const std::size_t samples = static_cast<std::size_t>(info_.spec.width) * info_.spec.channels;
    for (std::size_t i = 0; i < samples; ++i) {
      const int channel = static_cast<int>(i % static_cast<std::size_t>(info_.spec.channels));
      if (info_.spec.type == PixelType::u8) {
        decoded_[i] = static_cast<std::byte>(change(std::to_integer<unsigned>(decoded_[i]), channel));
      } else {
        std::uint16_t value = 0;
        std::memcpy(&value, decoded_.data() + 2 * i, 2);
        value = static_cast<std::uint16_t>(change(value, channel));
        std::memcpy(decoded_.data() + 2 * i, &value, 2);
      }
    }
  }

  std::shared_ptr<SourceFile> file_;
  TiffPages pages_;
  PageTags tags_;
  TiffCoding coding_;
  FileInfo info_;
  Metadata metadata_;
  std::optional<RawStack> raw_;
  std::vector<std::uint8_t> palette_;
  std::uint64_t decoding_bytes_ = 0;
  int page_ = 0;
  std::unique_ptr<TiffRows> rows_;
  std::vector<std::byte> stored_;
  std::vector<std::byte> decoded_;
};

}  // namespace

bool is_tiff(const SourceFile& file) { return TiffReader(file).is_tiff(); }

std::unique_ptr<InputFile> open_tiff(SourceFile file, const OpenOptions& options) {
  return std::make_unique<TiffInput>(std::move(file), options);
}

}  // namespace ungrain::io
