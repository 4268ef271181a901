#include "io/tiff_pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_set>

#include "io/failure.h"
#include "io/tiff_entries.h"
#include "io/tiff_reader.h"

namespace ungrain::io {
namespace {

constexpr std::uint16_t new_subfile_type = 254;
constexpr std::uint16_t width_tag = 256;
constexpr std::uint16_t height_tag = 257;
constexpr std::uint16_t bits_tag = 258;
constexpr std::uint16_t photometric_tag = 262;
constexpr std::uint16_t orientation_tag = 274;
constexpr std::uint16_t samples_tag = 277;
constexpr std::uint16_t dng_version = 50706;

constexpr std::uint64_t reduced_bit = 1;
constexpr std::uint64_t mask_bit = 4;

// The first value of an integer tag.
std::uint64_t value_of(const TiffReader& tiff, const TiffDirectory& directory, std::uint16_t tag,
                       std::uint64_t otherwise) {
  for (const TiffField& field : directory.fields) {
    if (field.tag != tag || !tiff.holds(field)) continue;
    const std::size_t size = tiff_type_size(field.type).unit;
    return size == 0 ? otherwise : tiff.number(field.at, size);
  }
  return otherwise;
}

struct Shape {
  std::uint64_t width = 0;
  std::uint64_t height = 0;
  std::uint64_t samples = 1;
  std::uint64_t bits = 1;
  std::uint64_t orientation = 1;
  friend bool operator==(const Shape&, const Shape&) = default;
};

Shape shape_of(const TiffReader& tiff, const TiffDirectory& directory) {
  return {value_of(tiff, directory, width_tag, 0), value_of(tiff, directory, height_tag, 0),
          value_of(tiff, directory, samples_tag, 1), value_of(tiff, directory, bits_tag, 1),
          value_of(tiff, directory, orientation_tag, 1)};
}

std::string text_of(const Shape& shape) {
  return fmt::format("{} x {} with {} samples of {} bits{}", shape.width, shape.height, shape.samples,
                     shape.bits,
                     shape.orientation == 1 ? "" : fmt::format(", orientation {}", shape.orientation));
}

[[noreturn]] void fail_after(const SourceFile& file, std::size_t found, std::string_view why) {
  fail(file.path(), fmt::format("damaged or truncated: {} page{} found, then {}", found,
                                found == 1 ? " was" : "s were", why));
}

bool is_sensor_data(std::uint64_t photometric) {
  constexpr std::uint64_t colour_filter_array = 32803;
  constexpr std::uint64_t linear_raw = 34892;
  return photometric == colour_filter_array || photometric == linear_raw;
}

}  // namespace

TiffPages find_tiff_pages(const SourceFile& file, const PageList& wanted) {
  const TiffReader tiff(file);
  TiffPages pages;
  std::vector<std::uint64_t> left_out;
  std::unordered_set<std::uint64_t> seen;
  std::optional<Shape> first;
  std::uint64_t at = tiff.first_directory();
  if (at == 0) fail(file.path(), "damaged or truncated: a TIFF file without a page");
  for (; at != 0;) {
    const std::size_t found = pages.directories.size();
    if (found == std::numeric_limits<int>::max()) fail_after(file, found, "more than can be counted");
    if (at >= file.size()) fail_after(file, found, "the link to the next leads outside the file");
    if (!seen.insert(at).second) fail_after(file, found, "the links form a loop");
    const TiffDirectory directory = tiff.directory(at);
    if (!directory.complete) fail_after(file, found, "the next one's directory is cut off");
    const std::uint64_t kind = value_of(tiff, directory, new_subfile_type, 0);
    if ((kind & (reduced_bit | mask_bit)) != 0) {
      (kind & mask_bit ? pages.masks : pages.reduced) += 1;
      left_out.push_back(at);
    } else {
      const Shape shape = shape_of(tiff, directory);
      if (wanted.contains(found + 1)) {
        if (!first) first = shape;
        if (shape != *first) {
          fail(file.path(), fmt::format("its pages differ and cannot be written as one stack: page {} is {}, "
                                        "one before it {}; --pages chooses those that are alike",
                                        found + 1, text_of(shape), text_of(*first)));
        }
      }
      pages.directories.push_back(at);
    }
    at = directory.next;
  }
  if (pages.directories.empty()) {  // marked as a smaller copy of another page
    pages = {.directories = {left_out.front()}, .reduced = static_cast<int>(left_out.size()) - 1};
  }
  return pages;
}

std::string raw_kind_of_tiff(const SourceFile& file) {
  const TiffReader tiff(file);
  if (!tiff.is_tiff()) return "";
  const TiffDirectory first = tiff.directory(tiff.first_directory());
  bool sensor = is_sensor_data(value_of(tiff, first, photometric_tag, 0));
  bool is_dng = false;
  for (const TiffField& field : first.fields) {
    if (field.tag == dng_version) is_dng = true;
    if (field.tag != tiff_tag::sub_directories || !tiff.holds(field)) continue;
    const std::size_t size = tiff_type_size(field.type).unit;
    constexpr std::uint64_t most = 32;
    for (std::uint64_t i = 0; size != 0 && i < std::min(field.count, most); ++i) {
      const TiffDirectory inner = tiff.directory(tiff.number(field.at + i * size, size));
      sensor = sensor || is_sensor_data(value_of(tiff, inner, photometric_tag, 0));
    }
  }
  if (is_dng) return "a DNG file (camera raw)";
  return sensor ? "a Bayer mosaic (camera raw)" : "";
}

}  // namespace ungrain::io
