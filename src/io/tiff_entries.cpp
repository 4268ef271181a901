#include "io/tiff_entries.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace ungrain::io {
namespace {

using namespace tiff_tag;

// The tags that are copied from the first directory of an EXIF block.
constexpr std::array descriptive_tags = {image_description, make,   model,     orientation,    software,
                                         date_time,         artist, copyright, exif_directory, gps_directory};
// They hold offsets, which are invalid in another file.
constexpr std::array pointer_tags = {sub_directories, exif_directory, gps_directory,
                                     interoperability_directory};
// Tags of a page's storage, of which an output has its own. Photoshop's layers show the picture before
// filtering.
constexpr std::uint16_t storage_tags[] = {254, 255, 256, 257, 258,   259,   262,   263,   264,
                                          265, 266, 273, 274, 277,   278,   279,   280,   281,
                                          284, 288, 289, 290, 291,   292,   293,   317,   320,
                                          321, 322, 323, 324, 325,   326,   327,   328,   330,
                                          338, 339, 340, 341, 347,   400,   433,   434,   512,
                                          513, 514, 515, 517, 518,   519,   520,   521,   529,
                                          530, 531, 532, 559, 32995, 32996, 32997, 32998, photoshop_layers};
// Private tags (numbers above TIFF's own) that have a name here.
constexpr std::array named_tags = {copyright,   iptc,          photoshop,       exif_directory,
                                   icc_profile, gps_directory, photoshop_layers};

template <class Tags>
bool is_one_of(const Tags& tags, std::uint16_t tag) {
  return std::find(std::begin(tags), std::end(tags), tag) != std::end(tags);
}

// ---- Entries found in a file, before any value is read

struct FoundField {
  TiffField field;
  std::vector<FoundField> directory = {};  // the directory that it points to, if any
  bool too_much = false;
};

enum class DirectoryKind { exif_block, page, exif, leaf };

bool is_first(DirectoryKind kind) { return kind == DirectoryKind::exif_block || kind == DirectoryKind::page; }

// Only these pointers are followed, so that cyclic pointers end.
std::optional<DirectoryKind> kind_behind(DirectoryKind kind, std::uint16_t tag) {
  if (is_first(kind) && tag == exif_directory) return DirectoryKind::exif;
  if (is_first(kind) && tag == gps_directory) return DirectoryKind::leaf;
  if (kind == DirectoryKind::exif && tag == interoperability_directory) return DirectoryKind::leaf;
  return std::nullopt;
}

bool is_wanted(DirectoryKind kind, std::uint16_t tag) {
  switch (kind) {
    case DirectoryKind::exif_block:
      return is_one_of(descriptive_tags, tag);
    case DirectoryKind::page:
      return !is_one_of(storage_tags, tag);
    default:
      return true;
  }
}

bool has_64_bit_integers(std::uint16_t type) {  // EXIF does not have them
  return type >= tiff_type::uint64 && type <= tiff_type::directory64;
}

bool is_pointer_type(std::uint16_t type) {
  return type == tiff_type::directory32 || type == tiff_type::directory64;
}

std::vector<FoundField> find_fields(const TiffReader& tiff, std::uint64_t at, DirectoryKind kind) {
  std::vector<FoundField> found;
  for (const TiffField& field : tiff.directory(at).fields) {
    if (!is_wanted(kind, field.tag) || !tiff.holds(field)) continue;
    FoundField one{field};
    if (const std::optional<DirectoryKind> behind = kind_behind(kind, field.tag)) {
      const std::uint64_t there = tiff.number(field.at, has_64_bit_integers(field.type) ? 8 : 4);
      one.directory = find_fields(tiff, there, *behind);
      if (one.directory.empty()) continue;
    } else if (is_one_of(pointer_tags, field.tag) || is_pointer_type(field.type) ||
               (kind != DirectoryKind::page && has_64_bit_integers(field.type))) {
      continue;
    }
    found.push_back(std::move(one));
  }
  const auto tag_order = [](const FoundField& a, const FoundField& b) { return a.field.tag < b.field.tag; };
  const auto same_tag = [](const FoundField& a, const FoundField& b) { return a.field.tag == b.field.tag; };
  std::stable_sort(found.begin(), found.end(), tag_order);
  found.erase(std::unique(found.begin(), found.end(), same_tag), found.end());
  return found;
}

void list_values(std::vector<FoundField>& fields, std::vector<FoundField*>& values) {
  for (FoundField& one : fields) {
    if (one.directory.empty()) {
      values.push_back(&one);
    } else {
      list_values(one.directory, values);
    }
  }
}

void erase_what_is_too_much(std::vector<FoundField>& fields) {
  std::erase_if(fields, [](FoundField& one) {
    if (one.directory.empty()) return one.too_much;
    erase_what_is_too_much(one.directory);
    return one.directory.empty();
  });
}

// Removes the largest values first: one maker's note is worth less than all the rest.
void keep_within(std::uint64_t most_bytes, std::vector<FoundField>& fields) {
  const auto stored_bytes = [](const FoundField* one) -> std::uint64_t {
    constexpr std::uint64_t entry = 12;
    const std::uint64_t bytes = one->field.bytes;
    return entry + (bytes > 4 ? bytes + bytes % 2 : 0);
  };
  std::vector<FoundField*> values;
  list_values(fields, values);
  std::stable_sort(values.begin(), values.end(), [&](const FoundField* a, const FoundField* b) {
    return stored_bytes(a) < stored_bytes(b);
  });
  constexpr std::uint64_t for_headers = 128;  // the block's header, and four directories with their pointers
  std::uint64_t room = most_bytes - for_headers;
  for (FoundField* one : values) {
    one->too_much = stored_bytes(one) > room;
    if (!one->too_much) room -= stored_bytes(one);
  }
  erase_what_is_too_much(fields);
}

std::vector<TiffEntry> read_entries(const TiffReader& tiff, const std::vector<FoundField>& fields,
                                    bool big_endian) {
  std::vector<TiffEntry> entries;
  for (const auto& [field, directory, too_much] : fields) {
    TiffEntry entry{.tag = field.tag, .type = field.type, .count = field.count};
    if (!directory.empty()) {
      entry.directory = read_entries(tiff, directory, big_endian);
    } else {
      entry.value = tiff.bytes(field.at, static_cast<std::size_t>(field.bytes));
      const std::size_t unit = tiff_type_size(field.type).unit;
      if (unit == 0) entry.type = tiff_type::bytes;
      if (unit > 1 && big_endian != tiff.big_endian()) {
        for (auto i = entry.value.begin(); i != entry.value.end(); i += static_cast<std::ptrdiff_t>(unit)) {
          std::reverse(i, i + static_cast<std::ptrdiff_t>(unit));
        }
      }
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::vector<TiffEntry> entries_of(const TiffReader& tiff, std::uint64_t at, DirectoryKind kind,
                                  bool big_endian, std::uint64_t most_bytes) {
  if (!tiff.is_tiff()) return {};
  std::vector<FoundField> fields = find_fields(tiff, at, kind);
  keep_within(most_bytes, fields);
  return read_entries(tiff, fields, big_endian);
}

}  // namespace

std::vector<TiffEntry> descriptive_entries(const TiffReader& tiff, bool big_endian,
                                           std::uint64_t most_bytes) {
  return entries_of(tiff, tiff.first_directory(), DirectoryKind::exif_block, big_endian, most_bytes);
}

std::vector<TiffEntry> page_entries(const TiffReader& tiff, std::uint64_t directory, bool big_endian) {
  constexpr std::uint64_t most_bytes = std::uint64_t{64} << 20U;
  return entries_of(tiff, directory, DirectoryKind::page, big_endian, most_bytes);
}

bool is_private_tag(std::uint16_t tag) {
  constexpr std::uint16_t first_private = 32768;
  return tag >= first_private && !is_one_of(named_tags, tag) && !is_one_of(storage_tags, tag);
}

std::uint64_t TiffDirectoryWriter::put(const std::vector<TiffEntry>& entries, std::uint64_t next) {
  const std::size_t count_bytes = big_ ? 8 : 2;
  const std::size_t slot_bytes = big_ ? 8 : 4;
  const std::size_t entry_bytes = 4 + 2 * slot_bytes;
  const std::size_t start = aligned_end();
  bytes_.resize(start + count_bytes + entries.size() * entry_bytes + slot_bytes);
  set_number(start, entries.size(), count_bytes);
  std::size_t at = start + count_bytes;
  for (const TiffEntry& entry : entries) {
    const bool points = !entry.directory.empty();
    const std::size_t slot = at + 4 + slot_bytes;
    set_number(at, entry.tag, 2);
    set_number(at + 2, points ? pointer_type() : entry.type, 2);
    set_number(at + 4, points ? 1 : entry.count, slot_bytes);
    if (points) {
      const std::uint64_t there = put(entry.directory, 0);
      set_number(slot, there, slot_bytes);
    } else if (entry.value.size() <= slot_bytes) {
      std::copy(entry.value.begin(), entry.value.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(slot));
    } else {
      const std::size_t there = aligned_end();
      bytes_.resize(there);
      bytes_.insert(bytes_.end(), entry.value.begin(), entry.value.end());
      set_number(slot, place_ + there, slot_bytes);
    }
    at += entry_bytes;
  }
  set_number(at, next, slot_bytes);
  return place_ + start;
}

std::size_t TiffDirectoryWriter::aligned_end() const {
  const std::size_t step = big_ ? 8 : 2;
  return (bytes_.size() + step - 1) / step * step;
}

void TiffDirectoryWriter::set_number(std::size_t at, std::uint64_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i, value >>= 8U) {
    bytes_[at + (big_endian_ ? size - 1 - i : i)] = static_cast<std::byte>(value & 0xffU);
  }
}

std::vector<std::byte> tiff_number(std::uint64_t value, std::size_t size, bool big_endian) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i, value >>= 8U) {
    bytes[big_endian ? size - 1 - i : i] = static_cast<std::byte>(value & 0xffU);
  }
  return bytes;
}

}  // namespace ungrain::io
