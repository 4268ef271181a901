#include "io/sample_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "io/failure.h"
#include "io/gzip.h"
#include "io/packed_rows.h"
#include "io/scratch_file.h"
#include "io/temporary_file.h"

namespace ungrain::io {
namespace {

using Order = MatrixLayout::Order;

constexpr int sample_bytes(Sample sample) {
  switch (sample) {
    case Sample::bit:
      return 0;
    case Sample::u8:
    case Sample::i8:
      return 1;
    case Sample::u16:
    case Sample::i16:
    case Sample::f16:
      return 2;
    case Sample::u32:
    case Sample::i32:
    case Sample::f32:
      return 4;
    case Sample::u64:
    case Sample::i64:
    case Sample::f64:
      return 8;
  }
  return 0;
}

// Bytes of a row in the file. Fits 64 bits for any spec: 2^31 * 4 * 8.
std::uint64_t stored_row_bytes(const ImageSpec& spec, Sample sample) {
  const auto samples = static_cast<std::uint64_t>(spec.width) * static_cast<std::uint64_t>(spec.channels);
  return sample == Sample::bit ? (samples + 7) / 8
                               : samples * static_cast<std::uint64_t>(sample_bytes(sample));
}

std::optional<std::uint64_t> product(std::uint64_t a, std::uint64_t b) {
  if (b != 0 && a > std::numeric_limits<std::uint64_t>::max() / b) return std::nullopt;
  return a * b;
}

template <class Unsigned>
void reverse_each(std::byte* samples, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    Unsigned sample;
    std::memcpy(&sample, samples + i * sizeof sample, sizeof sample);
    Unsigned reversed = 0;
    for (std::size_t byte = 0; byte < sizeof sample; ++byte) {  // compilers make a byte swap of it
      reversed = static_cast<Unsigned>((reversed << 8U) | ((sample >> (8U * byte)) & 0xffU));
    }
    std::memcpy(samples + i * sizeof sample, &reversed, sizeof sample);
  }
}

void reverse_bytes(std::byte* samples, std::size_t count, int size) {
  if (size == 2) reverse_each<std::uint16_t>(samples, count);
  if (size == 4) reverse_each<std::uint32_t>(samples, count);
  if (size == 8) reverse_each<std::uint64_t>(samples, count);
}

bool foreign_order(const MatrixLayout& layout) {
  return layout.big_endian != (std::endian::native == std::endian::big);
}

void expand_bits(const std::byte* from, std::size_t count, std::byte* to) {
  for (std::size_t i = 0; i < count; ++i) {
    const bool black = (from[i / 8] & (std::byte{0x80} >> (i % 8))) != std::byte{0};
    to[i] = black ? std::byte{0} : std::byte{255};
  }
}

template <class Unsigned>
unsigned largest(const std::byte* samples, std::size_t count) {
  Unsigned most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Unsigned sample;
    std::memcpy(&sample, samples + i * sizeof sample, sizeof sample);
    most = std::max(most, sample);
  }
  return most;
}

ArrayAxes axes_of(const ImageSpec& spec, int pages) {
  return {pages, spec.height, spec.width, spec.channels};
}

// Strides of an image whose pages follow each other: rows from the top, channels interleaved.
ArrayAxes image_strides(const ArrayAxes& counts) { return packed_strides(counts, {0, 1, 2, 3}); }

class MatrixInput final : public InputFile {
 public:
  MatrixInput(SourceFile file, FileInfo info, const MatrixLayout& layout)
      : file_(std::move(file)), info_(std::move(info)), layout_(layout) {
    if (layout.gzip) gzip_.emplace(file_);
  }

  const FileInfo& info() const override { return info_; }
  void check_unchanged() override { file_.check_unchanged(); }

  void select_page(int page) override {
    if (page < 0 || page >= info_.pages) fail(file_.path(), fmt::format("has no page {}", page + 1));
    page_ = page;
  }

  void read_rows(int first, const ImageView& rows) override {
    check_rows(file_.path(), info_.spec, first, rows);
    const std::uint64_t stored = stored_row_bytes(info_.spec, layout_.sample);
    // Columns are read in pieces as long as the block is high, so a higher block needs fewer reads.
    const std::uint64_t block_bytes = layout_.order == Order::columns ? 32U << 20U : 4U << 20U;
    const int block_rows = static_cast<int>(
        std::clamp<std::uint64_t>(block_bytes / stored, 1, static_cast<std::uint64_t>(info_.spec.height)));
    for (int done = 0; done < rows.spec.height; done += block_rows) {
      const int count = std::min(block_rows, rows.spec.height - done);
      read_block(first + done, count);
      for (int y = 0; y < count; ++y) {
        const int place = layout_.order == Order::rows_bottom_up ? count - 1 - y : y;
        unpack_row(decode(block_.data() + static_cast<std::size_t>(place) * stored, first + done + y), rows,
                   done + y);
      }
    }
  }

 private:
  // Reads rows into block_, as stored but always interleaved. Bottom-up rows keep that order.
  void read_block(int first, int count) {
    const std::uint64_t stored = stored_row_bytes(info_.spec, layout_.sample);
    block_.resize(stored * static_cast<std::uint64_t>(count));
    if (layout_.order == Order::columns) {
      read_columns(first, count);
      return;
    }
    if (layout_.order == Order::scattered) {
      gather();
      const std::uint64_t row = static_cast<std::uint64_t>(page_) * info_.spec.height + first;
      gathered_->read(block_.data(), block_.size(), row * stored);
      return;
    }
    if (layout_.row_stride != 0) {
      for (int y = 0; y < count; ++y) {
        file_.read(block_.data() + static_cast<std::uint64_t>(y) * stored, stored,
                   page_offset() + static_cast<std::uint64_t>(first + y) * layout_.row_stride);
      }
      return;
    }
    const int lowest = layout_.order == Order::rows ? first : info_.spec.height - first - count;
    const std::uint64_t at = page_offset() + static_cast<std::uint64_t>(lowest) * stored;
    if (!gzip_) {
      file_.read(block_.data(), block_.size(), at);
      return;
    }
    gzip_->read(block_.data(), block_.size(), at);
    if (page_ + 1 == info_.pages && first + count == info_.spec.height) gzip_->check_end();
  }

  std::uint64_t page_offset() const {
    return layout_.offset + static_cast<std::uint64_t>(page_) * layout_.page_stride;
  }

  // Gathers all pages at once: each page's samples lie all over the file, so reading page by page would read
  // the whole file each time.
  void gather() {
    if (gathered_) return;
    gathered_.emplace(file_.path());
    const ArrayAxes counts = axes_of(info_.spec, info_.pages);
    reorder(
        counts, static_cast<std::size_t>(sample_bytes(layout_.sample)), layout_.strides,
        [&](void* to, std::size_t size, std::uint64_t at) { file_.read(to, size, layout_.offset + at); },
        image_strides(counts),
        [&](const void* from, std::size_t size, std::uint64_t at) { gathered_->write(from, size, at); });
  }

  void read_columns(int first, int count) {
    const ImageSpec& spec = info_.spec;
    const auto size = static_cast<std::size_t>(sample_bytes(layout_.sample));
    const std::size_t row = stored_row_bytes(spec, layout_.sample);
    column_.resize(size * static_cast<std::size_t>(count));
    for (int channel = 0; channel < spec.channels; ++channel) {
      for (int x = 0; x < spec.width; ++x) {
        const std::uint64_t column = static_cast<std::uint64_t>(channel) * spec.width + x;
        file_.read(column_.data(), column_.size(), page_offset() + (column * spec.height + first) * size);
        std::byte* to = block_.data() + (static_cast<std::size_t>(x) * spec.channels + channel) * size;
        for (int y = 0; y < count; ++y) std::memcpy(to + y * row, column_.data() + y * size, size);
      }
    }
  }

  // Converts one stored row (changed in place) to samples of the spec's type.
  const std::byte* decode(std::byte* stored, int y) {
    const std::size_t count = static_cast<std::size_t>(info_.spec.width) * info_.spec.channels;
    if (foreign_order(layout_)) reverse_bytes(stored, count, sample_bytes(layout_.sample));
    check_largest(stored, count, y);
    decoded_.resize(row_bytes(info_.spec));
    switch (layout_.sample) {
      case Sample::bit:
        expand_bits(stored, count, decoded_.data());
        break;
      case Sample::u8:
        if (layout_.scaled()) return to_float<std::uint8_t>(stored, count, y);
        if (layout_.multiplier == 1) return stored;
        for (std::size_t i = 0; i < count; ++i) {
          decoded_[i] = static_cast<std::byte>(std::to_integer<unsigned>(stored[i]) * layout_.multiplier);
        }
        break;
      case Sample::i8:
        return to_float<std::int8_t>(stored, count, y);
      case Sample::u16:
        return layout_.scaled() ? to_float<std::uint16_t>(stored, count, y) : stored;
      case Sample::i16:
        return to_float<std::int16_t>(stored, count, y);
      case Sample::u32:
        return to_float<std::uint32_t>(stored, count, y);
      case Sample::i32:
        return to_float<std::int32_t>(stored, count, y);
      case Sample::u64:
        return to_float<std::uint64_t>(stored, count, y);
      case Sample::i64:
        return to_float<std::int64_t>(stored, count, y);
      case Sample::f16:
        return stored;
      case Sample::f32:
        return layout_.scaled() ? to_float<float>(stored, count, y) : stored;
      case Sample::f64:
        return to_float<double>(stored, count, y);
    }
    return decoded_.data();
  }

  // The samples' values as f32, in decoded_.
  template <class From>
  const std::byte* to_float(const std::byte* stored, std::size_t count, int y) {
    const auto convert = [&](auto value_of) {
      for (std::size_t i = 0; i < count; ++i) {
        From sample;
        std::memcpy(&sample, stored + i * sizeof sample, sizeof sample);
        const auto value = static_cast<float>(value_of(sample));
        std::memcpy(decoded_.data() + i * sizeof value, &value, sizeof value);
      }
    };
    const auto scale = [slope = layout_.slope, intercept = layout_.intercept](From sample) {
      return static_cast<double>(sample) * slope + intercept;
    };
    if (layout_.scaled()) {
      convert(scale);
      check_within_float<From>(stored, count, y, scale);
    } else {
      const auto as_is = [](From sample) { return sample; };
      convert(as_is);
      if constexpr (std::is_same_v<From, double>) check_within_float<From>(stored, count, y, as_is);
    }
    return decoded_.data();
  }

  // Throws where a finite sample became infinite in decoded_.
  template <class From, class ValueOf>
  void check_within_float(const std::byte* stored, std::size_t count, int y, ValueOf value_of) const {
    for (std::size_t i = 0; i < count; ++i) {
      float value = 0;
      std::memcpy(&value, decoded_.data() + i * sizeof value, sizeof value);
      if (std::isfinite(value)) continue;
      From sample;
      std::memcpy(&sample, stored + i * sizeof sample, sizeof sample);
      if (std::isfinite(static_cast<double>(sample))) fail_beyond_float(file_.path(), y, value_of(sample));
    }
  }

  void check_largest(const std::byte* samples, std::size_t count, int y) const {
    if (layout_.max_sample == 0) return;
    const unsigned most = layout_.sample == Sample::u8 ? largest<std::uint8_t>(samples, count)
                                                       : largest<std::uint16_t>(samples, count);
    if (most > layout_.max_sample) {
      fail(file_.path(),
           fmt::format("row {} has the sample {}: the header says {} at most", y, most, layout_.max_sample));
    }
  }

  SourceFile file_;
  FileInfo info_;
  MatrixLayout layout_;
  std::optional<GzipReader> gzip_;
  int page_ = 0;
  std::optional<ScratchFile> gathered_;  // all pages, of Order::scattered
  std::vector<std::byte> block_;
  std::vector<std::byte> column_;
  std::vector<std::byte> decoded_;
};

class MatrixOutput final : public OutputFile {
 public:
  MatrixOutput(const std::filesystem::path& path, const FileInfo& info, const std::string& header,
               const MatrixLayout& layout)
      : file_(path, info.access),
        spec_(info.spec),
        pages_(info.pages),
        layout_(layout),
        cursor_(path, info.spec.height, info.pages) {
    if (layout.gzip) gzip_.emplace(file_);
    put(header.data(), header.size(), 0);
    if (layout.order == Order::scattered) collected_.emplace(path);
  }

  void write_rows(int first, const ConstImageView& rows) override {
    check_rows(file_.target(), spec_, first, rows);
    cursor_.take(first, rows.spec.height);
    const std::size_t row = row_bytes(spec_);
    constexpr std::size_t block_bytes = std::size_t{4} << 20U;
    const int block_rows = static_cast<int>(std::clamp<std::size_t>(block_bytes / row, 1, spec_.height));
    for (int done = 0; done < rows.spec.height; done += block_rows) {
      const int count = std::min(block_rows, rows.spec.height - done);
      block_.resize(row * static_cast<std::size_t>(count));
      for (int y = 0; y < count; ++y) {
        const int place = layout_.order == Order::rows_bottom_up ? count - 1 - y : y;
        std::byte* packed = block_.data() + static_cast<std::size_t>(place) * row;
        pack_row(rows, done + y, packed);
        encode(packed);
      }
      const int top = first + done;
      const int lowest = layout_.order == Order::rows_bottom_up ? spec_.height - top - count : top;
      write_block(lowest, count);
    }
  }

  void next_page() override { cursor_.next_page(); }

  void commit() override {
    cursor_.check_complete();
    if (collected_) scatter();
    if (gzip_) gzip_->finish();
    file_.commit();
  }

 private:
  // Rows of gzip files come in the order of the file.
  void put(const void* from, std::size_t size, std::uint64_t offset) {
    if (gzip_) {
      gzip_->write(from, size);
    } else {
      file_.write(from, size, offset);
    }
  }

  void write_block(int first, int count) {
    const std::uint64_t row = row_bytes(spec_);
    const auto page = static_cast<std::uint64_t>(cursor_.page());
    if (collected_) {
      const std::uint64_t before =
          page * static_cast<std::uint64_t>(spec_.height) + static_cast<std::uint64_t>(first);
      collected_->write(block_.data(), block_.size(), before * row);
      return;
    }
    const std::uint64_t offset = layout_.offset + page * layout_.page_stride;
    if (layout_.row_stride == 0) {
      put(block_.data(), block_.size(), offset + static_cast<std::uint64_t>(first) * row);
      return;
    }
    for (int y = 0; y < count; ++y) {
      file_.write(block_.data() + static_cast<std::uint64_t>(y) * row, row,
                  offset + static_cast<std::uint64_t>(first + y) * layout_.row_stride);
    }
  }

  // Writes all pages to the places of their samples in the file.
  void scatter() {
    const ArrayAxes counts = axes_of(spec_, pages_);
    reorder(
        counts, static_cast<std::size_t>(sample_bytes(layout_.sample)), image_strides(counts),
        [&](void* to, std::size_t size, std::uint64_t at) { collected_->read(to, size, at); },
        layout_.strides,
        [&](const void* from, std::size_t size, std::uint64_t at) {
          file_.write(from, size, layout_.offset + at);
        });
  }

  void encode(std::byte* row) const {
    const std::size_t count = static_cast<std::size_t>(spec_.width) * spec_.channels;
    if (layout_.max_sample != 0) clamp(row, count);
    if (foreign_order(layout_)) reverse_bytes(row, count, sample_bytes(layout_.sample));
  }

  void clamp(std::byte* row, std::size_t count) const {
    if (layout_.sample == Sample::u8) {
      const auto most = static_cast<std::byte>(layout_.max_sample);
      for (std::size_t i = 0; i < count; ++i) row[i] = std::min(row[i], most);
      return;
    }
    for (std::size_t i = 0; i < count; ++i) {
      std::uint16_t sample;
      std::memcpy(&sample, row + 2 * i, 2);
      sample = std::min(sample, static_cast<std::uint16_t>(layout_.max_sample));
      std::memcpy(row + 2 * i, &sample, 2);
    }
  }

  TemporaryFile file_;
  std::optional<GzipWriter> gzip_;
  ImageSpec spec_;
  int pages_;
  MatrixLayout layout_;
  RowCursor cursor_;
  std::optional<ScratchFile> collected_;  // all pages, of Order::scattered
  std::vector<std::byte> block_;
};

}  // namespace

void check_size(const std::filesystem::path& file, std::int64_t width, std::int64_t height,
                std::int64_t channels) {
  if (width < 1 || height < 1) {
    fail(file, fmt::format("its header says {} x {} pixels: an image has at least one", width, height));
  }
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  if (width > most || height > most) {
    fail(file, fmt::format("its header says {} x {} pixels: {} a side are supported", width, height, most));
  }
  if (channels < 1 || channels > max_channels) {
    fail(file, fmt::format("has {} channels: 1 to {} are supported", channels, max_channels));
  }
}

std::uint64_t check_file_size(const SourceFile& file, const ImageSpec& spec, const MatrixLayout& layout,
                              int pages) {
  std::optional<std::uint64_t> bytes =
      product(stored_row_bytes(spec, layout.sample), static_cast<std::uint64_t>(spec.height));
  if (bytes) bytes = product(*bytes, static_cast<std::uint64_t>(pages));
  // Of gzip files the size of the content is known only at its end.
  const std::uint64_t size = layout.gzip ? product(file.size(), largest_gzip_ratio).value_or(0) : file.size();
  const std::uint64_t there = size - std::min(layout.offset, size);
  if (!bytes || *bytes > there) {
    fail(
        file.path(),
        fmt::format("truncated: the header promises {} bytes of pixels ({} x {}{}), the file has {}{}",
                    bytes ? std::to_string(*bytes) : "more than 2^64", spec.width, spec.height,
                    pages > 1 ? fmt::format(", {} pages", pages) : "", layout.gzip ? "at most " : "", there));
  }
  return there - *bytes;
}

std::unique_ptr<InputFile> open_matrix(SourceFile file, FileInfo info, const MatrixLayout& layout) {
  return std::make_unique<MatrixInput>(std::move(file), std::move(info), layout);
}

std::unique_ptr<OutputFile> create_matrix(const std::filesystem::path& path, const FileInfo& info,
                                          const std::string& header, const MatrixLayout& layout) {
  return std::make_unique<MatrixOutput>(path, info, header, layout);
}

}  // namespace ungrain::io
