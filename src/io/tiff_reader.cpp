#include "io/tiff_reader.h"

#include <algorithm>
#include <array>
#include <limits>

namespace ungrain::io {

TiffTypeSize tiff_type_size(std::uint16_t type) {
  constexpr std::array<TiffTypeSize, 19> sizes = {{{0, 0},
                                                   {1, 1},  // byte
                                                   {1, 1},  // text
                                                   {2, 2},
                                                   {4, 4},
                                                   {8, 4},  // fraction
                                                   {1, 1},
                                                   {1, 1},  // undefined
                                                   {2, 2},
                                                   {4, 4},
                                                   {8, 4},  // signed fraction
                                                   {4, 4},  // f32
                                                   {8, 8},  // f64
                                                   {4, 4},  // directory
                                                   {0, 0},
                                                   {0, 0},
                                                   {8, 8},
                                                   {8, 8},
                                                   {8, 8}}};  // directory in a BigTIFF
  constexpr std::uint16_t utf8_text = 129;                    // EXIF 3's
  if (type == utf8_text) return {1, 1};
  return type < sizes.size() ? sizes[type] : TiffTypeSize{};
}

TiffReader::TiffReader(const SourceFile& file) : file_(&file), size_(file.size()) { read_header(); }

TiffReader::TiffReader(std::span<const std::byte> memory) : memory_(memory), size_(memory.size()) {
  read_header();
}

void TiffReader::read_header() {
  const std::uint64_t order = number(0, 1);
  if (order != number(1, 1) || (order != 'I' && order != 'M')) return;
  big_endian_ = order == 'M';
  const std::uint64_t version = number(2, 2);
  is_tiff_ = version == 42 || version == 43;
  big_ = version == 43;
}

TiffDirectory TiffReader::directory(std::uint64_t at) const {
  constexpr std::uint64_t most_fields = 4096;
  TiffDirectory directory;
  if (at == 0 || at >= size_) return directory;
  const std::size_t count_bytes = big_ ? 8 : 2;
  const std::size_t field_bytes = big_ ? 20 : 12;
  const std::size_t slot_offset = big_ ? 12 : 8;
  const std::uint64_t claimed = number(at, count_bytes);
  const std::uint64_t table_at = at + count_bytes;
  const std::uint64_t room = table_at < size_ ? (size_ - table_at) / field_bytes : 0;
  const auto fields = static_cast<std::size_t>(std::min({claimed, room, most_fields}));
  const std::vector<std::byte> table = bytes(table_at, fields * field_bytes);
  directory.fields.reserve(fields);
  for (std::size_t i = 0; i < fields; ++i) {
    const std::byte* entry = table.data() + i * field_bytes;
    TiffField field;
    field.tag = static_cast<std::uint16_t>(number_in(entry, 2));
    field.type = static_cast<std::uint16_t>(number_in(entry + 2, 2));
    field.count = number_in(entry + 4, slot_bytes());
    const std::uint64_t value_bytes = std::max<std::size_t>(tiff_type_size(field.type).value, 1);
    constexpr std::uint64_t most_bytes = std::numeric_limits<std::uint64_t>::max();
    field.bytes = field.count > most_bytes / value_bytes ? most_bytes : field.count * value_bytes;
    field.slot_at = table_at + i * field_bytes + slot_offset;
    field.at = field.bytes <= slot_bytes() ? field.slot_at : number_in(entry + slot_offset, slot_bytes());
    directory.fields.push_back(field);
  }
  const std::uint64_t next_at = table_at + fields * field_bytes;
  directory.complete = fields == claimed && next_at <= size_ && size_ - next_at >= slot_bytes();
  if (directory.complete) directory.next = number(next_at, slot_bytes());
  return directory;
}

bool TiffReader::holds(const TiffField& field) const {
  return field.bytes > 0 && field.at <= size_ && field.bytes <= size_ - field.at;
}

std::uint64_t TiffReader::number(std::uint64_t at, std::size_t size) const {
  return number_in(bytes(at, size).data(), size);
}

std::uint64_t TiffReader::number_in(const std::byte* from, std::size_t size) const {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) {
    value = value << 8U | std::to_integer<std::uint64_t>(from[big_endian_ ? i : size - 1 - i]);
  }
  return value;
}

std::vector<std::byte> TiffReader::bytes(std::uint64_t at, std::size_t size) const {
  std::vector<std::byte> bytes(size);
  if (at >= size_) return bytes;
  const auto there = static_cast<std::size_t>(std::min<std::uint64_t>(size, size_ - at));
  if (file_ != nullptr) {
    file_->read_some(bytes.data(), there, at);
  } else {
    std::copy_n(memory_.begin() + static_cast<std::ptrdiff_t>(at), there, bytes.begin());
  }
  return bytes;
}

}  // namespace ungrain::io
