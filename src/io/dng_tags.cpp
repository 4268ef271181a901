#include "io/dng_tags.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "io/tiff_reader.h"

namespace ungrain::io {
namespace {

constexpr std::uint16_t dng_version = 50706;
constexpr std::uint16_t noise_profile = 51041;

// Tags of the camera and its colours: model, matrices, calibrations, white balance, exposure, profile.
constexpr std::uint16_t camera_tags[] = {50708, 50709, 50721, 50722, 50723, 50724, 50725, 50726, 50727,
                                         50728, 50729, 50730, 50732, 50734, 50735, 50736, 50739, 50778,
                                         50779, 50931, 50932, 50936, 50937, 50938, 50939, 50940, 50941,
                                         50942, 50964, 50965, 50981, 50982, 51107, 51108, 51109, 51110};
// Tags of the photosites: scale, crop, the greens' difference, corrections after black subtraction and after
// demosaicing. All count from the first photosite of the picture.
constexpr std::uint16_t picture_tags[] = {50718, 50719, 50720, 50733, 50738, 51009, 51022, 51125};

template <std::size_t N>
bool is_one_of(const std::uint16_t (&tags)[N], std::uint16_t tag) {
  return std::find(std::begin(tags), std::end(tags), tag) != std::end(tags);
}

std::vector<double> profile_in(const TiffReader& tiff, const TiffField& field) {
  constexpr std::uint64_t most = 8;  // four colours
  if (field.type != tiff_type::float64 || field.count % 2 != 0 || field.count > most || !tiff.holds(field))
    return {};
  std::vector<double> values;
  for (std::uint64_t i = 0; i < field.count; ++i) {
    values.push_back(std::bit_cast<double>(tiff.number(field.at + 8 * i, 8)));
    if (!std::isfinite(values.back()) || values.back() < 0) return {};
  }
  return values;
}

std::vector<std::uint64_t> directories_of(const TiffReader& tiff) {
  constexpr std::uint64_t most = 32;
  std::vector<std::uint64_t> found = {tiff.first_directory()};
  for (const TiffField& field : tiff.directory(found.front()).fields) {
    const std::size_t size = tiff_type_size(field.type).unit;
    if (field.tag != tiff_tag::sub_directories || size == 0 || !tiff.holds(field)) continue;
    for (std::uint64_t i = 0; i < std::min(field.count, most); ++i) {
      found.push_back(tiff.number(field.at + i * size, size));
    }
  }
  return found;
}

bool is_sensor(const TiffReader& tiff, const TiffDirectory& directory) {
  constexpr std::uint16_t photometric = 262;
  constexpr std::uint64_t colour_filters = 32803;
  constexpr std::uint64_t linear = 34892;
  for (const TiffField& field : directory.fields) {
    if (field.tag != photometric || !tiff.holds(field)) continue;
    const std::uint64_t value = tiff.number(field.at, tiff_type_size(field.type).unit);
    return value == colour_filters || value == linear;
  }
  return false;
}

}  // namespace

DngTags dng_tags_of(const SourceFile& file) {
  DngTags tags;
  const TiffReader tiff(file);
  if (!tiff.is_tiff()) return tags;
  const std::vector<std::uint64_t> directories = directories_of(tiff);
  const TiffDirectory first = tiff.directory(directories.front());
  if (std::none_of(first.fields.begin(), first.fields.end(),
                   [](const TiffField& field) { return field.tag == dng_version; })) {
    return tags;
  }
  for (const std::uint64_t at : directories) {
    const TiffDirectory directory = tiff.directory(at);
    const bool sensor = is_sensor(tiff, directory);
    for (const TiffField& field : directory.fields) {
      if (field.tag == noise_profile && tags.noise_profile.empty()) {
        tags.noise_profile = profile_in(tiff, field);
        tags.damaged_profile = tags.noise_profile.empty();
      }
    }
    for (TiffEntry& entry : page_entries(tiff, at, false)) {
      const bool wanted = (at == directories.front() && is_one_of(camera_tags, entry.tag)) ||
                          (sensor && is_one_of(picture_tags, entry.tag));
      const bool fresh = std::none_of(tags.entries.begin(), tags.entries.end(),
                                      [&](const TiffEntry& one) { return one.tag == entry.tag; });
      if (wanted && fresh) tags.entries.push_back(std::move(entry));
    }
  }
  return tags;
}

}  // namespace ungrain::io
