// The directories of a TIFF file, classic or BigTIFF, of either byte order. The inside of an EXIF block is a
// small TIFF file too.
//
// Files are untrusted: no function here fails on damaged numbers, and bytes beyond the end are treated as
// missing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "io/source_file.h"

namespace ungrain::io {

namespace tiff_type {
constexpr std::uint16_t byte = 1;
constexpr std::uint16_t text = 2;
constexpr std::uint16_t uint16 = 3;
constexpr std::uint16_t uint32 = 4;
constexpr std::uint16_t fraction = 5;
constexpr std::uint16_t bytes = 7;
constexpr std::uint16_t signed_fraction = 10;
constexpr std::uint16_t float64 = 12;
constexpr std::uint16_t directory32 = 13;
constexpr std::uint16_t uint64 = 16;
constexpr std::uint16_t directory64 = 18;
}  // namespace tiff_type

struct TiffTypeSize {
  std::size_t value = 0;  // bytes of one value; 0: unknown type
  std::size_t unit = 0;   // bytes that are swapped in the other byte order: a fraction is two numbers
};
TiffTypeSize tiff_type_size(std::uint16_t type);

// An entry of a directory.
struct TiffField {
  std::uint16_t tag = 0;
  std::uint16_t type = 0;
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;    // of all its values; unknown types count one byte a value
  std::uint64_t at = 0;       // offset of the values: in the slot, or where the slot points
  std::uint64_t slot_at = 0;  // the entry's last 4 or, in a BigTIFF, 8 bytes
};

struct TiffDirectory {
  std::vector<TiffField> fields;  // in the file's order, which should be ascending by tag
  std::uint64_t next = 0;         // offset of the next directory; 0: none
  bool complete = false;          // all `fields` were read, and `next` is known
};

class TiffReader {
 public:
  explicit TiffReader(const SourceFile& file);  // which must outlive the reader
  explicit TiffReader(std::span<const std::byte> memory);

  bool is_tiff() const { return is_tiff_; }
  bool big() const { return big_; }  // offsets and counts have 64 bits
  bool big_endian() const { return big_endian_; }
  std::uint64_t first_directory() const { return number(big_ ? 8 : 4, slot_bytes()); }
  std::size_t slot_bytes() const { return big_ ? 8 : 4; }
  // Distance from a directory's start to its link to the next one.
  std::uint64_t next_link_offset(std::uint64_t fields) const {
    return big_ ? 8 + 20 * fields : 2 + 12 * fields;
  }

  TiffDirectory directory(std::uint64_t at) const;
  bool holds(const TiffField& field) const;  // at least one value, and all of them inside the file
  // Bytes beyond the end of the file read as 0.
  std::uint64_t number(std::uint64_t at, std::size_t size) const;
  std::vector<std::byte> bytes(std::uint64_t at, std::size_t size) const;

 private:
  void read_header();
  std::uint64_t number_in(const std::byte* from, std::size_t size) const;

  const SourceFile* file_ = nullptr;  // null: memory
  std::span<const std::byte> memory_;
  std::uint64_t size_ = 0;
  bool is_tiff_ = false;
  bool big_ = false;
  bool big_endian_ = false;
};

}  // namespace ungrain::io
