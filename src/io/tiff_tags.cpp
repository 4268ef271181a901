#include "io/tiff_tags.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <limits>
#include <unordered_set>
#include <utility>

#include "io/failure.h"
#include "io/tiff_exif.h"
#include "platform/files.h"

namespace ungrain::io {
namespace {

class WritableFile {
 public:
  WritableFile(const std::filesystem::path& file, const std::filesystem::path& named)
      : named_(named), descriptor_(platform::open_file(file, {.read = false, .write = true})) {
    if (descriptor_ < 0) fail(named_, "cannot be written", errno);
  }
  WritableFile(const WritableFile&) = delete;
  WritableFile& operator=(const WritableFile&) = delete;
  ~WritableFile() {
    if (descriptor_ >= 0) platform::close_file(descriptor_);
  }

  void write(std::span<const std::byte> from, std::uint64_t at) {
    while (!from.empty()) {
      const std::ptrdiff_t put = platform::write_at(descriptor_, from.data(), from.size(), at);
      if (put < 0) {
        if (errno == EINTR) continue;
        fail(named_, "cannot be written", errno);
      }
      from = from.subspan(static_cast<std::size_t>(put));
      at += static_cast<std::uint64_t>(put);
    }
  }

  void close() {
    if (!platform::close_file(std::exchange(descriptor_, -1))) fail(named_, "cannot be written", errno);
  }

 private:
  const std::filesystem::path& named_;
  int descriptor_;
};

// The old directory's entries unchanged, and those of `added` that it lacks.
std::vector<TiffEntry> merged(const TiffReader& tiff, const TiffDirectory& old,
                              std::vector<TiffEntry> added) {
  std::vector<TiffEntry> entries;
  for (const TiffField& field : old.fields) {
    // An offset in the slot stays valid.
    entries.push_back({.tag = field.tag,
                       .type = field.type,
                       .count = field.count,
                       .value = tiff.bytes(field.slot_at, tiff.slot_bytes())});
  }
  for (TiffEntry& entry : added) {
    const bool there = std::any_of(old.fields.begin(), old.fields.end(),
                                   [&](const TiffField& field) { return field.tag == entry.tag; });
    if (!there) entries.push_back(std::move(entry));
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const TiffEntry& a, const TiffEntry& b) { return a.tag < b.tag; });
  return entries;
}

void add_fraction(std::vector<TiffEntry>& entries, std::uint16_t tag, double value, bool big_endian) {
  constexpr double largest = std::numeric_limits<std::uint32_t>::max();
  double denominator = 1;
  while (value * denominator != std::floor(value * denominator) && denominator < 1e6 &&
         value * denominator * 10 <= largest) {
    denominator *= 10;
  }
  const double numerator = std::round(value * denominator);
  if (!(numerator >= 1) || numerator > largest) return;
  TiffEntry entry{.tag = tag, .type = tiff_type::fraction, .count = 1};
  for (const double part : {numerator, denominator}) {
    const std::vector<std::byte> bytes = tiff_number(static_cast<std::uint64_t>(part), 4, big_endian);
    entry.value.insert(entry.value.end(), bytes.begin(), bytes.end());
  }
  entries.push_back(std::move(entry));
}

void add_bytes(std::vector<TiffEntry>& entries, std::uint16_t tag, std::uint16_t type, const Bytes& value) {
  if (!value.empty()) entries.push_back({.tag = tag, .type = type, .count = value.size(), .value = value});
}

}  // namespace

TiffTagSource::TiffTagSource(std::shared_ptr<const SourceFile> file, std::vector<std::uint64_t> directories)
    : file_(std::move(file)), reader_(*file_), directories_(std::move(directories)) {
  const std::vector<TiffField> fields = reader_.directory(directories_.front()).fields;
  has_private_tags_ = std::any_of(fields.begin(), fields.end(),
                                  [](const TiffField& field) { return is_private_tag(field.tag); });
}

std::vector<TiffEntry> TiffTagSource::entries(int page, bool big_endian) const {
  const auto index = static_cast<std::size_t>(page);
  if (index >= directories_.size()) return {};  // a stack in one directory
  return page_entries(reader_, directories_[index], big_endian);
}

std::vector<TiffEntry> entries_of_metadata(const Metadata& metadata, bool big_endian) {
  constexpr std::uint64_t most_exif = 1 << 20;  // larger than any JPEG's; other formats have no limit
  std::vector<TiffEntry> entries = descriptive_entries(TiffReader(metadata.exif), big_endian, most_exif);
  std::erase_if(entries, [](const TiffEntry& entry) { return entry.tag == tiff_tag::orientation; });
  if (!metadata.description.empty()) {
    std::erase_if(entries, [](const TiffEntry& entry) { return entry.tag == tiff_tag::image_description; });
    Bytes text;
    for (const char c : metadata.description) text.push_back(static_cast<std::byte>(c));
    text.push_back(std::byte{0});
    add_bytes(entries, tiff_tag::image_description, tiff_type::text, text);
  }
  if (metadata.resolution) {
    add_fraction(entries, tiff_tag::x_resolution, metadata.resolution->x, big_endian);
    add_fraction(entries, tiff_tag::y_resolution, metadata.resolution->y, big_endian);
    entries.push_back(
        {.tag = tiff_tag::resolution_unit,
         .type = tiff_type::uint16,
         .count = 1,
         .value = tiff_number(static_cast<std::uint64_t>(metadata.resolution->unit) + 1, 2, big_endian)});
  }
  add_bytes(entries, tiff_tag::xmp, tiff_type::byte, metadata.xmp);
  add_bytes(entries, tiff_tag::iptc, tiff_type::bytes, metadata.iptc);
  add_bytes(entries, tiff_tag::photoshop, tiff_type::byte, metadata.photoshop);
  add_bytes(entries, tiff_tag::icc_profile, tiff_type::bytes, metadata.icc);
  return entries;
}

void add_tags_to_tiff(const std::filesystem::path& file, const std::filesystem::path& named,
                      const TagsOfPage& tags_of_page) {
  const SourceFile source(file);
  const TiffReader tiff(source);
  if (!tiff.is_tiff()) return;
  WritableFile out(file, named);
  std::uint64_t end = source.size();
  std::uint64_t link_at = tiff.big() ? 8 : 4;  // offset of the link to the page
  std::uint64_t at = tiff.first_directory();
  std::unordered_set<std::uint64_t> seen;  // ends a cyclic chain
  for (int page = 0; at != 0 && seen.insert(at).second; ++page) {
    const TiffDirectory old = tiff.directory(at);
    if (!old.complete) break;
    const std::vector<TiffEntry> entries = merged(tiff, old, tags_of_page(page, tiff.big_endian()));
    std::uint64_t there = at;
    if (entries.size() > old.fields.size()) {
      const std::uint64_t place = (end + 7) / 8 * 8;
      TiffDirectoryWriter writer(place, tiff.big(), tiff.big_endian());
      there = writer.put(entries, old.next);
      end = place + writer.bytes().size();
      if (!tiff.big() && end > std::numeric_limits<std::uint32_t>::max()) break;
      out.write(writer.bytes(), place);
      // Written last, so that the file stays valid until then.
      out.write(tiff_number(there, tiff.slot_bytes(), tiff.big_endian()), link_at);
    }
    link_at = there + tiff.next_link_offset(entries.size());
    at = old.next;
  }
  out.close();
}

}  // namespace ungrain::io
