#include "io/tiff_exif.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "io/failure.h"
#include "io/tiff_reader.h"

namespace ungrain::io {
namespace {

constexpr std::array exif_mark = {std::byte{'E'}, std::byte{'x'}, std::byte{'i'},
                                  std::byte{'f'}, std::byte{0},   std::byte{0}};

constexpr std::uint16_t image_description = 270;
constexpr std::uint16_t make = 271;
constexpr std::uint16_t model = 272;
constexpr std::uint16_t orientation = 274;
constexpr std::uint16_t software = 305;
constexpr std::uint16_t date_time = 306;
constexpr std::uint16_t artist = 315;
constexpr std::uint16_t sub_directories = 330;
constexpr std::uint16_t copyright = 33432;
constexpr std::uint16_t exif_directory = 34665;
constexpr std::uint16_t gps_directory = 34853;
constexpr std::uint16_t interoperability_directory = 40965;

// All that is taken from a first directory: its other tags describe the pixels as that file stores them.
constexpr std::array descriptive_tags = {image_description, make,   model,     orientation,    software,
                                         date_time,         artist, copyright, exif_directory, gps_directory};
// One of these makes it worth having an EXIF block.
constexpr std::array telling_tags = {make,      model,          date_time,    artist,
                                     copyright, exif_directory, gps_directory};
// They hold offsets, which mean nothing elsewhere.
constexpr std::array pointer_tags = {sub_directories, exif_directory, gps_directory,
                                     interoperability_directory};

template <std::size_t n>
bool is_one_of(const std::array<std::uint16_t, n>& tags, std::uint16_t tag) {
  return std::find(tags.begin(), tags.end(), tag) != tags.end();
}

// What is found in a file before any value is read
// ------------------------------------------------------------------------------------------------------------

struct FoundField {
  TiffField field;
  std::vector<FoundField> directory = {};  // that it points to, where it does
  bool too_much = false;
};

enum class DirectoryKind { first, exif, leaf };

// Only these are followed, so that there is an end whatever points to whatever.
std::optional<DirectoryKind> kind_behind(DirectoryKind kind, std::uint16_t tag) {
  if (kind == DirectoryKind::first && tag == exif_directory) return DirectoryKind::exif;
  if (kind == DirectoryKind::first && tag == gps_directory) return DirectoryKind::leaf;
  if (kind == DirectoryKind::exif && tag == interoperability_directory) return DirectoryKind::leaf;
  return std::nullopt;
}

bool has_64_bit_integers(std::uint16_t type) {  // EXIF does not know them
  return type >= tiff_type::uint64 && type <= tiff_type::directory64;
}

std::vector<FoundField> find_fields(const TiffReader& tiff, std::uint64_t at, DirectoryKind kind) {
  std::vector<FoundField> found;
  for (const TiffField& field : tiff.directory(at).fields) {
    if (kind == DirectoryKind::first && !is_one_of(descriptive_tags, field.tag)) continue;
    if (!tiff.holds(field)) continue;
    FoundField one{field};
    if (const std::optional<DirectoryKind> behind = kind_behind(kind, field.tag)) {
      const std::uint64_t there = tiff.number(field.at, has_64_bit_integers(field.type) ? 8 : 4);
      one.directory = find_fields(tiff, there, *behind);
      if (one.directory.empty()) continue;
    } else if (is_one_of(pointer_tags, field.tag) || has_64_bit_integers(field.type)) {
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

// From the smallest on: one maker's note is worth less than all the rest.
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
  constexpr std::uint64_t for_headers = 128;  // the block's own, and four directories with their pointers
  std::uint64_t room = most_bytes - for_headers;
  for (FoundField* one : values) {
    one->too_much = stored_bytes(one) > room;
    if (!one->too_much) room -= stored_bytes(one);
  }
  erase_what_is_too_much(fields);
}

// What is written
// ------------------------------------------------------------------------------------------------------------

struct NewEntry {
  std::uint16_t tag = 0;
  std::uint16_t type = 0;
  std::uint64_t count = 0;
  std::vector<std::byte> value = {};     // in the byte order of the file to be
  std::vector<NewEntry> directory = {};  // that it points to, where it does
};

std::vector<NewEntry> read_entries(const TiffReader& tiff, const std::vector<FoundField>& fields,
                                   bool big_endian) {
  std::vector<NewEntry> entries;
  for (const auto& [field, directory, too_much] : fields) {
    NewEntry entry{.tag = field.tag, .type = field.type, .count = field.count};
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

std::vector<NewEntry> descriptive_entries(const TiffReader& tiff, bool big_endian, std::uint64_t most_bytes) {
  if (!tiff.is_tiff()) return {};
  std::vector<FoundField> fields = find_fields(tiff, tiff.first_directory(), DirectoryKind::first);
  keep_within(most_bytes, fields);
  return read_entries(tiff, fields, big_endian);
}

// Directories and their values, for one place in a file.
class DirectoryWriter {
 public:
  DirectoryWriter(std::uint64_t place, bool big, bool big_endian)
      : place_(place), big_(big), big_endian_(big_endian) {}

  const std::vector<std::byte>& bytes() const { return bytes_; }

  // Where in the file it is.
  std::uint64_t put(const std::vector<NewEntry>& entries, std::uint64_t next) {
    const std::size_t count_bytes = big_ ? 8 : 2;
    const std::size_t slot_bytes = big_ ? 8 : 4;
    const std::size_t entry_bytes = 4 + 2 * slot_bytes;
    const std::size_t start = aligned_end();
    bytes_.resize(start + count_bytes + entries.size() * entry_bytes + slot_bytes);
    set_number(start, entries.size(), count_bytes);
    std::size_t at = start + count_bytes;
    for (const NewEntry& entry : entries) {
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

 private:
  std::uint16_t pointer_type() const { return big_ ? tiff_type::directory64 : tiff_type::uint32; }

  std::size_t aligned_end() const {
    const std::size_t step = big_ ? 8 : 2;
    return (bytes_.size() + step - 1) / step * step;
  }

  void set_number(std::size_t at, std::uint64_t value, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i, value >>= 8U) {
      bytes_[at + (big_endian_ ? size - 1 - i : i)] = static_cast<std::byte>(value & 0xffU);
    }
  }

  std::uint64_t place_;
  bool big_;
  bool big_endian_;
  std::vector<std::byte> bytes_;
};

std::vector<std::byte> as_bytes(std::uint64_t value, std::size_t size, bool big_endian) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i, value >>= 8U) {
    bytes[big_endian ? size - 1 - i : i] = static_cast<std::byte>(value & 0xffU);
  }
  return bytes;
}

class WritableFile {
 public:
  WritableFile(const std::filesystem::path& file, const std::filesystem::path& named)
      : named_(named), descriptor_(::open(file.c_str(), O_WRONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) fail(named_, "cannot be written", errno);
  }
  WritableFile(const WritableFile&) = delete;
  WritableFile& operator=(const WritableFile&) = delete;
  ~WritableFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  void write(std::span<const std::byte> from, std::uint64_t at) {
    while (!from.empty()) {
      const ssize_t put = ::pwrite(descriptor_, from.data(), from.size(), static_cast<off_t>(at));
      if (put < 0) {
        if (errno == EINTR) continue;
        fail(named_, "cannot be written", errno);
      }
      from = from.subspan(static_cast<std::size_t>(put));
      at += static_cast<std::uint64_t>(put);
    }
  }

  void close() {
    if (::close(std::exchange(descriptor_, -1)) != 0) fail(named_, "cannot be written", errno);
  }

 private:
  const std::filesystem::path& named_;
  int descriptor_;
};

}  // namespace

std::vector<std::byte> exif_of_tiff(const SourceFile& file) {
  constexpr std::uint64_t most_bytes = 60 * 1024;  // a JPEG's segment ends at 64 KB
  const std::vector<NewEntry> entries = descriptive_entries(TiffReader(file), false, most_bytes);
  if (std::none_of(entries.begin(), entries.end(),
                   [](const NewEntry& one) { return is_one_of(telling_tags, one.tag); })) {
    return {};
  }
  constexpr std::array header = {std::byte{'I'}, std::byte{'I'}, std::byte{42}, std::byte{0},
                                 std::byte{8},   std::byte{0},   std::byte{0},  std::byte{0}};
  DirectoryWriter writer(header.size(), false, false);
  writer.put(entries, 0);
  std::vector<std::byte> block(exif_mark.begin(), exif_mark.end());
  block.insert(block.end(), header.begin(), header.end());
  block.insert(block.end(), writer.bytes().begin(), writer.bytes().end());
  return block;
}

void add_exif_to_tiff(const std::filesystem::path& file, std::span<const std::byte> exif,
                      const std::filesystem::path& named) {
  constexpr std::uint64_t most_bytes = 1 << 20;  // no JPEG has as much; other formats could have anything
  if (exif.size() >= exif_mark.size() && std::equal(exif_mark.begin(), exif_mark.end(), exif.begin())) {
    exif = exif.subspan(exif_mark.size());
  }
  const SourceFile source(file);
  const TiffReader tiff(source);
  if (!tiff.is_tiff()) return;
  const TiffDirectory old = tiff.directory(tiff.first_directory());
  if (!old.complete) return;

  std::vector<NewEntry> entries;
  for (const TiffField& field : old.fields) {
    entries.push_back({.tag = field.tag,
                       .type = field.type,
                       .count = field.count,
                       .value = tiff.bytes(field.slot_at, tiff.slot_bytes())});  // where it points stays true
  }
  const std::size_t own = entries.size();
  for (NewEntry& added : descriptive_entries(TiffReader(exif), tiff.big_endian(), most_bytes)) {
    const bool there = std::any_of(old.fields.begin(), old.fields.end(),
                                   [&](const TiffField& field) { return field.tag == added.tag; });
    if (!there) entries.push_back(std::move(added));
  }
  if (entries.size() == own) return;
  std::stable_sort(entries.begin(), entries.end(),
                   [](const NewEntry& a, const NewEntry& b) { return a.tag < b.tag; });

  const std::uint64_t place = (source.size() + 7) / 8 * 8;
  DirectoryWriter writer(place, tiff.big(), tiff.big_endian());
  const std::uint64_t first = writer.put(entries, old.next);
  if (!tiff.big() && place + writer.bytes().size() > std::numeric_limits<std::uint32_t>::max()) return;
  WritableFile out(file, named);
  out.write(writer.bytes(), place);
  // Last, so that until then the file is what it was.
  out.write(as_bytes(first, tiff.slot_bytes(), tiff.big_endian()), tiff.big() ? 8 : 4);
  out.close();
}

}  // namespace ungrain::io
