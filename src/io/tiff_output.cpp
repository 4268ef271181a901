#include "io/tiff_output.h"

#include <fmt/format.h>
#include <tiffio.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "io/failure.h"
#include "io/imagej.h"
#include "io/ome_xml.h"
#include "io/packed_rows.h"
#include "io/temporary_file.h"
#include "io/tiff_handle.h"
#include "io/tiff_tags.h"

namespace ungrain::io {
namespace {

int libtiff_number(TiffCompression compression) {
  switch (compression) {
    case TiffCompression::none:
      return COMPRESSION_NONE;
    case TiffCompression::lzw:
      return COMPRESSION_LZW;
    case TiffCompression::deflate:
      return COMPRESSION_ADOBE_DEFLATE;
    case TiffCompression::packbits:
      return COMPRESSION_PACKBITS;
    case TiffCompression::zstd:
      return COMPRESSION_ZSTD;
    case TiffCompression::lzma:
      return COMPRESSION_LZMA;
    case TiffCompression::jpeg:
      return COMPRESSION_JPEG;
  }
  return COMPRESSION_NONE;
}

bool jpeg_can_hold(const FileInfo& info) {
  return info.spec.type == PixelType::u8 && !info.spec.alpha && info.spec.colour != Colour::multi;
}

// The compression of the TIFF source, or the nearest lossless one: one-bit fax codes cannot hold gray.
int compression_like(int compression, const FileInfo& info) {
  switch (compression) {
    case COMPRESSION_NONE:
    case COMPRESSION_LZW:
    case COMPRESSION_ADOBE_DEFLATE:
    case COMPRESSION_PACKBITS:
    case COMPRESSION_ZSTD:
    case COMPRESSION_LZMA:
      return compression;
    case COMPRESSION_JPEG:
    case COMPRESSION_OJPEG:
      return jpeg_can_hold(info) ? COMPRESSION_JPEG : COMPRESSION_ADOBE_DEFLATE;
    default:
      return COMPRESSION_ADOBE_DEFLATE;
  }
}

int compression_of(const std::filesystem::path& path, const FileInfo& info, const Metadata& like,
                   const SaveOptions& options) {
  if (!options.compression) {
    const int compression =
        like.tiff_storage ? compression_like(like.tiff_storage->compression, info) : COMPRESSION_NONE;
    const bool there = TIFFIsCODECConfigured(static_cast<std::uint16_t>(compression)) == 1;
    return there ? compression : COMPRESSION_LZW;
  }
  const int compression = libtiff_number(*options.compression);
  if (TIFFIsCODECConfigured(static_cast<std::uint16_t>(compression)) != 1) {
    fail(path, "this build's libtiff does not have the compression that was asked for");
  }
  if (compression == COMPRESSION_JPEG && !jpeg_can_hold(info)) {
    fail(path, "JPEG in TIFF holds 8-bit gray and rgb without alpha; another --compression would do");
  }
  return compression;
}

bool takes_predictor(int compression) {
  return compression == COMPRESSION_LZW || compression == COMPRESSION_ADOBE_DEFLATE ||
         compression == COMPRESSION_ZSTD || compression == COMPRESSION_LZMA;
}

Metadata metadata_like(const InputFile* like) { return like == nullptr ? Metadata{} : like->metadata(); }

// How the pixels of every page are stored.
struct Storage {
  int compression = COMPRESSION_NONE;
  int photometric = PHOTOMETRIC_MINISBLACK;
  std::vector<std::uint16_t> extra;
  bool planar = false;
  int tile_width = 0;  // 0: strips
  int block_rows = 1;  // of a strip or a tile
};

int lab_photometric(const Metadata& like) {
  const bool icc = like.tiff_storage && like.tiff_storage->photometric == PHOTOMETRIC_ICCLAB;
  return icc ? PHOTOMETRIC_ICCLAB : PHOTOMETRIC_CIELAB;
}

Storage storage_of(const std::filesystem::path& path, const FileInfo& info, const Metadata& like,
                   const SaveOptions& options) {
  const ImageSpec& spec = info.spec;
  const std::optional<TiffStorage>& old = like.tiff_storage;
  const bool alike = old && old->samples == spec.channels;
  Storage storage;
  storage.compression = compression_of(path, info, like, options);
  const bool rgb_and_data = alike && old->photometric == PHOTOMETRIC_RGB && spec.channels >= 3;
  storage.photometric = info.model == ColourModel::cmyk              ? PHOTOMETRIC_SEPARATED
                        : info.model == ColourModel::lab             ? lab_photometric(like)
                        : rgb_and_data || spec.colour == Colour::rgb ? PHOTOMETRIC_RGB
                                                                     : PHOTOMETRIC_MINISBLACK;
  const int colours = storage.photometric == PHOTOMETRIC_MINISBLACK  ? 1
                      : storage.photometric == PHOTOMETRIC_SEPARATED ? 4
                                                                     : 3;
  storage.extra.assign(static_cast<std::size_t>(spec.channels - colours), EXTRASAMPLE_UNSPECIFIED);
  if (spec.alpha) storage.extra.back() = EXTRASAMPLE_UNASSALPHA;
  if (alike && old->extra.size() == storage.extra.size()) storage.extra = old->extra;
  storage.planar = alike && old->planar && storage.compression != COMPRESSION_JPEG;
  // Writers choose sides that are multiples of 16 and not enormous.
  const auto fits = [](int side) { return side > 0 && side % 16 == 0 && side <= 8192; };
  if (old && fits(old->tile_width) && fits(old->tile_height)) {
    storage.tile_width = old->tile_width;
    storage.block_rows = old->tile_height;
    return storage;
  }
  constexpr std::size_t strip_bytes = std::size_t{256} << 10U;
  const std::size_t rows = std::clamp<std::size_t>(strip_bytes / row_bytes(spec), 1, spec.height);
  const bool whole_blocks = storage.compression == COMPRESSION_JPEG;
  storage.block_rows = static_cast<int>(whole_blocks ? (rows + 15) / 16 * 16 : rows);
  return storage;
}

// Entries that describe the pixels of every page, except their offsets.
void add_storage_entries(const FileInfo& info, const Storage& storage, bool big_endian,
                         std::vector<TiffEntry>& entries) {
  const ImageSpec& spec = info.spec;
  const auto add = [&](std::uint32_t tag, std::uint16_t type, const std::vector<std::uint64_t>& values) {
    TiffEntry entry{.tag = static_cast<std::uint16_t>(tag), .type = type, .count = values.size()};
    for (const std::uint64_t value : values) {
      const Bytes bytes = tiff_number(value, type == tiff_type::uint16 ? 2 : 4, big_endian);
      entry.value.insert(entry.value.end(), bytes.begin(), bytes.end());
    }
    entries.push_back(std::move(entry));
  };
  const auto each_channel = [&](std::uint64_t value) {
    return std::vector<std::uint64_t>(static_cast<std::size_t>(spec.channels), value);
  };
  if (info.pages > 1) add(TIFFTAG_SUBFILETYPE, tiff_type::uint32, {FILETYPE_PAGE});
  add(TIFFTAG_IMAGEWIDTH, tiff_type::uint32, {static_cast<std::uint64_t>(spec.width)});
  add(TIFFTAG_IMAGELENGTH, tiff_type::uint32, {static_cast<std::uint64_t>(spec.height)});
  add(TIFFTAG_BITSPERSAMPLE, tiff_type::uint16,
      each_channel(8 * static_cast<std::uint64_t>(bytes_per_sample(spec.type))));
  add(TIFFTAG_COMPRESSION, tiff_type::uint16, {COMPRESSION_NONE});
  add(TIFFTAG_PHOTOMETRIC, tiff_type::uint16, {static_cast<std::uint64_t>(storage.photometric)});
  add(TIFFTAG_ORIENTATION, tiff_type::uint16, {ORIENTATION_TOPLEFT});
  add(TIFFTAG_SAMPLESPERPIXEL, tiff_type::uint16, {static_cast<std::uint64_t>(spec.channels)});
  add(TIFFTAG_ROWSPERSTRIP, tiff_type::uint32, {static_cast<std::uint64_t>(storage.block_rows)});
  if (!is_float(spec.type) && spec.range > 0 && spec.range < natural_range(spec.type)) {
    add(TIFFTAG_MAXSAMPLEVALUE, tiff_type::uint16, each_channel(static_cast<std::uint64_t>(spec.range)));
  }
  add(TIFFTAG_PLANARCONFIG, tiff_type::uint16,
      {static_cast<std::uint64_t>(storage.planar ? PLANARCONFIG_SEPARATE : PLANARCONFIG_CONTIG)});
  if (!storage.extra.empty()) {
    add(TIFFTAG_EXTRASAMPLES, tiff_type::uint16, {storage.extra.begin(), storage.extra.end()});
  }
  add(TIFFTAG_SAMPLEFORMAT, tiff_type::uint16,
      each_channel(is_float(spec.type) ? SAMPLEFORMAT_IEEEFP : SAMPLEFORMAT_UINT));
}

// Writes blocks of rows: a strip or a row of tiles. Planes are those of one page: all channels interleaved,
// or one channel each.
class BlockWriter {
 public:
  virtual ~BlockWriter() = default;
  virtual void begin_page(int page) = 0;
  // `samples` may be changed.
  virtual void write_block(int plane, int first_row, int rows, std::span<std::byte> samples) = 0;
  virtual void end_page() = 0;
  virtual void finish() = 0;  // with all directories and tags
};

// Uncompressed pixels, pages contiguous, then the directories: programs that read ImageJ's stacks expect this
// order.
class PlainWriter final : public BlockWriter {
 public:
  PlainWriter(TemporaryFile& file, const FileInfo& info, const Storage& storage, bool big, bool big_endian,
              TagsOfPage tags_of_page)
      : file_(file),
        info_(info),
        storage_(storage),
        big_(big),
        big_endian_(big_endian),
        tags_of_page_(std::move(tags_of_page)) {}

  void begin_page(int page) override { page_ = page; }

  void write_block(int plane, int first_row, int /*rows*/, std::span<std::byte> samples) override {
    const auto size = static_cast<std::size_t>(bytes_per_sample(info_.spec.type));
    if (big_endian_ && size > 1) {
      for (std::size_t i = 0; i < samples.size(); i += size) {
        std::reverse(samples.begin() + static_cast<std::ptrdiff_t>(i),
                     samples.begin() + static_cast<std::ptrdiff_t>(i + size));
      }
    }
    file_.write(samples.data(), samples.size(),
                plane_at(page_, plane) + static_cast<std::uint64_t>(first_row) * plane_row_bytes());
  }

  void end_page() override {}

  void finish() override {
    const Bytes header = header_bytes();
    std::uint64_t end = (plane_at(info_.pages, 0) + 7) / 8 * 8;
    std::uint64_t link_at = big_ ? 8 : 4;
    file_.write(header.data(), header.size(), 0);
    for (int page = 0; page < info_.pages; ++page) {
      const std::vector<TiffEntry> entries = entries_of(page);
      TiffDirectoryWriter writer(end, big_, big_endian_);
      const std::uint64_t there = writer.put(entries, 0);
      if (!big_ && end + writer.bytes().size() > std::numeric_limits<std::uint32_t>::max()) {
        fail(file_.target(), "its tags need more than a TIFF file of 4 GB");
      }
      file_.write(writer.bytes().data(), writer.bytes().size(), end);
      const Bytes link = tiff_number(there, big_ ? 8 : 4, big_endian_);
      file_.write(link.data(), link.size(), link_at);
      link_at = there + (big_ ? 8 + 20 * entries.size() : 2 + 12 * entries.size());
      end = (end + writer.bytes().size() + 7) / 8 * 8;
    }
  }

 private:
  int planes() const { return storage_.planar ? info_.spec.channels : 1; }
  std::uint64_t plane_row_bytes() const {
    return row_bytes(info_.spec) / static_cast<std::uint64_t>(planes());
  }
  std::uint64_t plane_at(int page, int plane) const {
    constexpr std::uint64_t header = 16;
    const auto number = static_cast<std::uint64_t>(page) * static_cast<std::uint64_t>(planes()) +
                        static_cast<std::uint64_t>(plane);
    return header + number * plane_row_bytes() * static_cast<std::uint64_t>(info_.spec.height);
  }

  Bytes header_bytes() const {
    Bytes header(2, static_cast<std::byte>(big_endian_ ? 'M' : 'I'));
    const auto add = [&](std::uint64_t value, std::size_t size) {
      const Bytes bytes = tiff_number(value, size, big_endian_);
      header.insert(header.end(), bytes.begin(), bytes.end());
    };
    add(big_ ? 43 : 42, 2);
    if (big_) {
      add(8, 2);  // bytes of an offset
      add(0, 2);
    }
    return header;
  }

  std::vector<TiffEntry> entries_of(int page) const {
    std::vector<TiffEntry> entries;
    add_storage_entries(info_, storage_, big_endian_, entries);
    const std::size_t size = big_ ? 8 : 4;
    const std::uint16_t type = big_ ? tiff_type::uint64 : tiff_type::uint32;
    TiffEntry offsets{.tag = TIFFTAG_STRIPOFFSETS, .type = type};
    TiffEntry counts{.tag = TIFFTAG_STRIPBYTECOUNTS, .type = type};
    const auto add = [&](TiffEntry& entry, std::uint64_t value) {
      const Bytes bytes = tiff_number(value, size, big_endian_);
      entry.value.insert(entry.value.end(), bytes.begin(), bytes.end());
      ++entry.count;
    };
    for (int plane = 0; plane < planes(); ++plane) {
      for (int y = 0; y < info_.spec.height; y += storage_.block_rows) {
        const int rows = std::min(storage_.block_rows, info_.spec.height - y);
        add(offsets, plane_at(page, plane) + static_cast<std::uint64_t>(y) * plane_row_bytes());
        add(counts, static_cast<std::uint64_t>(rows) * plane_row_bytes());
      }
    }
    entries.push_back(std::move(offsets));
    entries.push_back(std::move(counts));
    for (TiffEntry& entry : tags_of_page_(page, big_endian_)) entries.push_back(std::move(entry));
    std::stable_sort(entries.begin(), entries.end(),
                     [](const TiffEntry& a, const TiffEntry& b) { return a.tag < b.tag; });
    return entries;
  }

  TemporaryFile& file_;
  const FileInfo& info_;
  const Storage& storage_;
  bool big_;
  bool big_endian_;
  TagsOfPage tags_of_page_;
  int page_ = 0;
};

// Compressed strips, and tiles.
class LibtiffWriter final : public BlockWriter {
 public:
  LibtiffWriter(TemporaryFile& file, const FileInfo& info, const Storage& storage, int quality, bool big,
                bool big_endian, TagsOfPage tags_of_page)
      : file_(file),
        info_(info),
        storage_(storage),
        quality_(quality),
        tags_of_page_(std::move(tags_of_page)),
        handle_(file.descriptor(), file.target(),
                fmt::format("w{}{}", big_endian ? 'b' : 'l', big ? "8" : "").c_str()) {}

  void begin_page(int /*page*/) override {
    const ImageSpec& spec = info_.spec;
    set(TIFFTAG_IMAGEWIDTH, static_cast<std::uint32_t>(spec.width));
    set(TIFFTAG_IMAGELENGTH, static_cast<std::uint32_t>(spec.height));
    set(TIFFTAG_SAMPLESPERPIXEL, spec.channels);
    set(TIFFTAG_BITSPERSAMPLE, 8 * bytes_per_sample(spec.type));
    set(TIFFTAG_SAMPLEFORMAT, is_float(spec.type) ? SAMPLEFORMAT_IEEEFP : SAMPLEFORMAT_UINT);
    set(TIFFTAG_PLANARCONFIG, storage_.planar ? PLANARCONFIG_SEPARATE : PLANARCONFIG_CONTIG);
    set(TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT);
    if (info_.pages > 1) set(TIFFTAG_SUBFILETYPE, FILETYPE_PAGE);
    if (!is_float(spec.type) && spec.range > 0 && spec.range < natural_range(spec.type)) {
      set(TIFFTAG_MAXSAMPLEVALUE, static_cast<int>(spec.range));
    }
    set(TIFFTAG_COMPRESSION, storage_.compression);
    // Lets JPEG convert colours, without subsampling.
    if (storage_.compression == COMPRESSION_JPEG && storage_.photometric == PHOTOMETRIC_RGB) {
      set(TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_YCBCR);
      set(TIFFTAG_YCBCRSUBSAMPLING, 1, 1);
      set(TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    } else {
      set(TIFFTAG_PHOTOMETRIC, storage_.photometric);
    }
    if (storage_.compression == COMPRESSION_JPEG) set(TIFFTAG_JPEGQUALITY, quality_);
    if (!storage_.extra.empty()) {
      set(TIFFTAG_EXTRASAMPLES, static_cast<int>(storage_.extra.size()), storage_.extra.data());
    }
    if (takes_predictor(storage_.compression) && spec.type != PixelType::f16) {
      set(TIFFTAG_PREDICTOR, is_float(spec.type) ? PREDICTOR_FLOATINGPOINT : PREDICTOR_HORIZONTAL);
    }
    if (storage_.tile_width > 0) {
      set(TIFFTAG_TILEWIDTH, static_cast<std::uint32_t>(storage_.tile_width));
      set(TIFFTAG_TILELENGTH, static_cast<std::uint32_t>(storage_.block_rows));
      tile_.resize(static_cast<std::size_t>(TIFFTileSize64(handle_.get())));
    } else {
      set(TIFFTAG_ROWSPERSTRIP, static_cast<std::uint32_t>(storage_.block_rows));
    }
  }

  void write_block(int plane, int first_row, int rows, std::span<std::byte> samples) override {
    if (storage_.tile_width > 0) {
      write_tiles(plane, first_row, rows, samples);
      return;
    }
    const std::uint32_t strip = TIFFComputeStrip(handle_.get(), static_cast<std::uint32_t>(first_row),
                                                 static_cast<std::uint16_t>(plane));
    if (TIFFWriteEncodedStrip(handle_.get(), strip, samples.data(), static_cast<tmsize_t>(samples.size())) <
        0) {
      fail_to_write();
    }
  }

  void end_page() override {
    if (TIFFWriteDirectory(handle_.get()) != 1 || handle_.has_message()) fail_to_write();
  }

  void finish() override {
    handle_.close();
    if (handle_.has_message()) fail_to_write();
    add_tags_to_tiff(file_.path(), file_.target(), tags_of_page_);
  }

 private:
  [[noreturn]] void fail_to_write() {
    fail(file_.target(), fmt::format("cannot be written: {}", handle_.take_message()));
  }

  template <class... Values>
  void set(std::uint32_t tag, Values... values) {
    if (TIFFSetField(handle_.get(), tag, values...) != 1) fail_to_write();
  }

  // Pixels beyond the image's right and lower edge repeat the last ones, which compresses well.
  void write_tiles(int plane, int top, int rows, std::span<const std::byte> samples) {
    const std::size_t row = samples.size() / static_cast<std::size_t>(rows);
    const std::size_t pixel = row / static_cast<std::size_t>(info_.spec.width);
    const std::size_t tile_row = pixel * static_cast<std::size_t>(storage_.tile_width);
    for (int left = 0; left < info_.spec.width; left += storage_.tile_width) {
      const int pixels = std::min(storage_.tile_width, info_.spec.width - left);
      const std::size_t bytes = pixel * static_cast<std::size_t>(pixels);
      for (int y = 0; y < storage_.block_rows; ++y) {
        const std::byte* from = samples.data() + static_cast<std::size_t>(std::min(y, rows - 1)) * row +
                                static_cast<std::size_t>(left) * pixel;
        std::byte* to = tile_.data() + static_cast<std::size_t>(y) * tile_row;
        std::copy_n(from, bytes, to);
        for (int x = pixels; x < storage_.tile_width; ++x) {
          std::copy_n(from + bytes - pixel, pixel, to + static_cast<std::size_t>(x) * pixel);
        }
      }
      if (TIFFWriteTile(handle_.get(), tile_.data(), static_cast<std::uint32_t>(left),
                        static_cast<std::uint32_t>(top), 0, static_cast<std::uint16_t>(plane)) < 0) {
        fail_to_write();
      }
    }
  }

  TemporaryFile& file_;
  const FileInfo& info_;
  const Storage& storage_;
  int quality_;
  TagsOfPage tags_of_page_;
  TiffHandle handle_;
  std::vector<std::byte> tile_;
};

// The text of a description; empty: it is another tag.
std::string_view text_of(const TiffEntry& entry) {
  if (entry.tag != tiff_tag::image_description) return {};
  const std::string_view text(reinterpret_cast<const char*>(entry.value.data()), entry.value.size());
  return text.substr(0, text.find('\0'));
}

class TiffOutput final : public OutputFile {
 public:
  TiffOutput(const std::filesystem::path& path, const FileInfo& info, const InputFile* like,
             const SaveOptions& options)
      : info_(info),
        metadata_(metadata_like(like)),
        same_channels_(like != nullptr && like->info().spec.channels == info.spec.channels &&
                       like->info().model == info.model),
        pages_of_source_(options.pages),
        storage_(
            storage_of(path, info, same_channels_ ? metadata_ : with_other_channels(metadata_), options)),
        file_(path, info.access),
        cursor_(path, info.spec.height, info.pages) {
    const TagsOfPage tags = [this](int page, bool big_endian) { return tags_of(page, big_endian); };
    if (storage_.compression == COMPRESSION_NONE && storage_.tile_width == 0) {
      writer_ = std::make_unique<PlainWriter>(file_, info_, storage_, is_big(), is_big_endian(), tags);
    } else {
      writer_ = std::make_unique<LibtiffWriter>(file_, info_, storage_, options.quality, is_big(),
                                                is_big_endian(), tags);
    }
    block_.resize(row_bytes(info_.spec) * static_cast<std::size_t>(storage_.block_rows));
    writer_->begin_page(0);
  }

  void write_rows(int first, const ConstImageView& rows) override {
    check_rows(file_.target(), info_.spec, first, rows);
    cursor_.take(first, rows.spec.height);
    for (int y = 0; y < rows.spec.height; ++y) {
      const int in_block = (first + y) % storage_.block_rows;
      std::byte* place = block_.data() + static_cast<std::size_t>(in_block) * row_bytes(info_.spec);
      pack_row(rows, y, place);
      if (info_.model == ColourModel::lab) make_signed(place);
      if (in_block + 1 == storage_.block_rows || first + y + 1 == info_.spec.height) {
        write_block(first + y - in_block, in_block + 1);
      }
    }
  }

  void next_page() override {
    cursor_.next_page();
    writer_->end_page();
    writer_->begin_page(cursor_.page());
  }

  void commit() override {
    cursor_.check_complete();
    writer_->end_page();
    writer_->finish();
    file_.commit();
  }

 private:
  static Metadata with_other_channels(Metadata metadata) {
    if (metadata.tiff_storage) metadata.tiff_storage->samples = 0;
    return metadata;
  }

  // The byte order of the TIFF source, so that values of private tags stay readable for their program.
  bool is_big_endian() const { return metadata_.tiff_tags && metadata_.tiff_tags->big_endian(); }
  bool is_big() const {
    constexpr double classic_bytes = 3.5e9;  // offsets have 32 bits; leaves room for metadata
    const double bytes = static_cast<double>(row_bytes(info_.spec)) * info_.spec.height * info_.pages;
    return bytes > classic_bytes || (metadata_.tiff_tags && metadata_.tiff_tags->big());
  }

  void write_block(int first_row, int rows) {
    const std::size_t bytes = row_bytes(info_.spec) * static_cast<std::size_t>(rows);
    if (!storage_.planar) {
      writer_->write_block(0, first_row, rows, std::span(block_).first(bytes));
      return;
    }
    const auto channels = static_cast<std::size_t>(info_.spec.channels);
    const auto size = static_cast<std::size_t>(bytes_per_sample(info_.spec.type));
    plane_.resize(bytes / channels);
    for (std::size_t channel = 0; channel < channels; ++channel) {
      for (std::size_t i = 0; i < plane_.size() / size; ++i) {
        std::memcpy(plane_.data() + i * size, block_.data() + (i * channels + channel) * size, size);
      }
      writer_->write_block(static_cast<int>(channel), first_row, rows, plane_);
    }
  }

  // Flips the sign bit of a* and b*, as CIELAB requires; integers are little endian here.
  void make_signed(std::byte* row) const {
    if (is_float(info_.spec.type) || storage_.photometric != PHOTOMETRIC_CIELAB) return;
    const auto size = static_cast<std::size_t>(bytes_per_sample(info_.spec.type));
    const std::size_t pixel = size * static_cast<std::size_t>(info_.spec.channels);
    for (int x = 0; x < info_.spec.width; ++x) {
      for (const std::size_t channel : {std::size_t{1}, std::size_t{2}}) {
        row[static_cast<std::size_t>(x) * pixel + channel * size + size - 1] ^= std::byte{0x80};
      }
    }
  }

  std::vector<TiffEntry> tags_of(int page, bool big_endian) const {
    std::vector<TiffEntry> entries;
    if (metadata_.tiff_tags) {
      const int source =
          pages_of_source_.empty() ? page : pages_of_source_.at(static_cast<std::size_t>(page));
      entries = metadata_.tiff_tags->entries(source, big_endian);
      if (!keeps_ome_xml(metadata_, pages_of_source_)) {
        std::erase_if(entries, [](const TiffEntry& entry) { return is_ome_xml(text_of(entry)); });
      }
      adapt(entries, source);
    } else if (page == 0) {
      entries = entries_of_metadata(metadata_, big_endian);
    }
    // A profile is kept only where the number of channels is the same.
    if (!same_channels_) {
      std::erase_if(entries, [](const TiffEntry& entry) { return entry.tag == tiff_tag::icc_profile; });
    }
    return entries;
  }

  void adapt(std::vector<TiffEntry>& entries, int source) const {
    for (TiffEntry& entry : entries) {
      if (source == 0 && entry.tag == tiff_tag::xmp && !metadata_.xmp.empty()) {
        entry.value = metadata_.xmp;  // upright, like the pixels
        entry.count = entry.value.size();
      }
      if (entry.tag == tiff_tag::image_description) adapt_description(entry);
      const bool turned = metadata_.tiff_storage && metadata_.tiff_storage->turned;
      if (turned && entry.tag == tiff_tag::x_resolution) {
        entry.tag = tiff_tag::y_resolution;
      } else if (turned && entry.tag == tiff_tag::y_resolution) {
        entry.tag = tiff_tag::x_resolution;
      }
    }
  }

  void adapt_description(TiffEntry& entry) const {
    const std::string_view description = text_of(entry);
    std::string changed(description);
    if (const std::optional<ImageJStack> stack = parse_imagej(description)) {
      if (stack->images != info_.pages) changed = with_images(description, info_.pages);
    } else if (is_ome_xml(description)) {
      changed =
          with_ome_changes(description, {.type = info_.spec.type,
                                         .turned = metadata_.tiff_storage && metadata_.tiff_storage->turned,
                                         .file_name = file_.target().filename().string()});
    }
    if (changed == description) return;
    entry.value.resize(changed.size() + 1);
    std::memcpy(entry.value.data(), changed.c_str(), changed.size() + 1);
    entry.count = entry.value.size();
  }

  FileInfo info_;
  Metadata metadata_;
  bool same_channels_;
  std::vector<int> pages_of_source_;
  Storage storage_;
  TemporaryFile file_;
  RowCursor cursor_;
  std::unique_ptr<BlockWriter> writer_;
  std::vector<std::byte> block_;
  std::vector<std::byte> plane_;
};

}  // namespace

std::unique_ptr<OutputFile> create_tiff(const std::filesystem::path& path, const FileInfo& info,
                                        const InputFile* like, const SaveOptions& options) {
  return std::make_unique<TiffOutput>(path, info, like, options);
}

}  // namespace ungrain::io
