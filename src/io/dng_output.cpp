#include "io/dng_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "io/failure.h"
#include "io/packed_rows.h"
#include "io/temporary_file.h"
#include "io/tiff_entries.h"
#include "io/tiff_exif.h"
#include "io/tiff_values.h"
#include "ungrain/convert.h"
#include "ungrain/version.h"

namespace ungrain::io {
namespace {

namespace dng_tag {
constexpr std::uint16_t cfa_repeat = 33421;
constexpr std::uint16_t cfa_pattern = 33422;
constexpr std::uint16_t version = 50706;
constexpr std::uint16_t backward_version = 50707;
constexpr std::uint16_t unique_camera_model = 50708;
constexpr std::uint16_t cfa_plane_colour = 50710;
constexpr std::uint16_t cfa_layout = 50711;
constexpr std::uint16_t black_repeat = 50713;
constexpr std::uint16_t black_level = 50714;
constexpr std::uint16_t white_level = 50717;
constexpr std::uint16_t colour_matrix = 50721;
constexpr std::uint16_t neutral = 50728;
constexpr std::uint16_t illuminant = 50778;
constexpr std::uint16_t noise_profile = 51041;
}  // namespace dng_tag

constexpr std::uint64_t pixels_at = 8;  // after the header

// Entries by tag. The first entry of a tag is kept.
class Directory {
 public:
  void add(TiffEntry entry) {
    const auto at = std::lower_bound(entries_.begin(), entries_.end(), entry.tag,
                                     [](const TiffEntry& one, std::uint16_t tag) { return one.tag < tag; });
    if (at == entries_.end() || at->tag != entry.tag) entries_.insert(at, std::move(entry));
  }
  void add(std::vector<TiffEntry> entries) {
    for (TiffEntry& entry : entries) add(std::move(entry));
  }
  const std::vector<TiffEntry>& entries() const { return entries_; }

 private:
  std::vector<TiffEntry> entries_;
};

std::vector<TiffEntry> storage_entries(const RawInfo& raw) {
  constexpr std::uint64_t colour_filters = 32803;
  constexpr std::uint64_t linear = 34892;
  const auto width = static_cast<std::uint64_t>(raw.width);
  const auto height = static_cast<std::uint64_t>(raw.height);
  return {
      tiff_numbers(254, tiff_type::uint32, {0}),  // the picture itself, no smaller copy
      tiff_numbers(256, tiff_type::uint32, {width}),
      tiff_numbers(257, tiff_type::uint32, {height}),
      tiff_numbers(258, tiff_type::uint16, {16}),
      tiff_numbers(259, tiff_type::uint16, {1}),  // not compressed
      tiff_numbers(262, tiff_type::uint16, {raw.colour ? colour_filters : linear}),
      tiff_numbers(273, tiff_type::uint32, {pixels_at}),
      tiff_numbers(277, tiff_type::uint16, {1}),
      tiff_numbers(278, tiff_type::uint32, {height}),
      tiff_numbers(279, tiff_type::uint32, {2 * width * height}),
      tiff_numbers(284, tiff_type::uint16, {1}),
      tiff_numbers(tiff_tag::orientation, tiff_type::uint16, {static_cast<std::uint64_t>(raw.orientation)})};
}

// DNG's numbers for red, green and blue.
std::uint64_t colour_of(int channel) {
  return channel == RawInfo::red ? 0 : channel == RawInfo::blue ? 2 : 1;
}

std::vector<TiffEntry> filter_entries(const RawInfo& raw) {
  std::vector<std::uint64_t> colours;
  for (const int channel : raw.pattern) colours.push_back(colour_of(channel));
  return {tiff_numbers(dng_tag::cfa_repeat, tiff_type::uint16, {2, 2}),
          tiff_numbers(dng_tag::cfa_pattern, tiff_type::byte, colours),
          tiff_numbers(dng_tag::cfa_plane_colour, tiff_type::byte, {0, 1, 2}),
          tiff_numbers(dng_tag::cfa_layout, tiff_type::uint16, {1})};
}

std::vector<TiffEntry> level_entries(const RawInfo& raw) {
  std::vector<double> black = {raw.black[0]};
  if (raw.colour) {
    black.clear();
    for (const int channel : raw.pattern) black.push_back(raw.black[channel]);
  }
  const std::uint64_t side = raw.colour ? 2 : 1;
  return {tiff_numbers(dng_tag::black_repeat, tiff_type::uint16, {side, side}),
          tiff_fractions(dng_tag::black_level, tiff_type::fraction, black, 100),
          tiff_numbers(dng_tag::white_level, tiff_type::uint32,
                       {static_cast<std::uint64_t>(std::lround(raw.white))})};
}

// Variance = S x + O of samples x from 0 to 1, for red, green and blue.
TiffEntry noise_entry(const RawInfo& raw) {
  const double range = raw.white - raw.mean_black();
  std::vector<double> profile;
  const std::vector<int> channels =
      raw.colour ? std::vector<int>{RawInfo::red, RawInfo::green_by_red, RawInfo::blue} : std::vector<int>{0};
  for (const int channel : channels) {
    const PoissonGaussian& noise = raw.noise[static_cast<std::size_t>(channel)];
    profile.push_back(noise.a / range);
    profile.push_back(noise.b / (range * range));
  }
  return tiff_doubles(dng_tag::noise_profile, profile);
}

bool is_known(const RawInfo::Matrix& matrix) {
  return std::any_of(matrix.begin(), matrix.end(), [](const auto& row) {
    return std::any_of(row.begin(), row.end(), [](double value) { return value != 0; });
  });
}

std::vector<TiffEntry> colour_entries(const RawInfo& raw) {
  if (!raw.colour || !is_known(raw.camera_of_xyz)) return {};
  constexpr std::uint64_t daylight = 21;  // D65
  std::vector<double> matrix;
  for (const auto& row : raw.camera_of_xyz) matrix.insert(matrix.end(), row.begin(), row.end());
  return {tiff_numbers(dng_tag::illuminant, tiff_type::uint16, {daylight}),
          tiff_fractions(dng_tag::colour_matrix, tiff_type::signed_fraction, matrix),
          tiff_fractions(dng_tag::neutral, tiff_type::fraction, {raw.neutral.begin(), raw.neutral.end()})};
}

std::vector<TiffEntry> text_entries(const RawInfo& raw) {
  std::string name = raw.make;
  if (!raw.model.empty()) name += (name.empty() ? "" : " ") + raw.model;
  std::vector<TiffEntry> entries = {tiff_text(tiff_tag::software, "ungrain " UNGRAIN_VERSION),
                                    tiff_text(dng_tag::unique_camera_model, name.empty() ? "unknown" : name)};
  if (!raw.make.empty()) entries.push_back(tiff_text(tiff_tag::make, raw.make));
  if (!raw.model.empty()) entries.push_back(tiff_text(tiff_tag::model, raw.model));
  return entries;
}

// EXIF tags from LibRaw or the simulated camera, for files without EXIF of their own: tags that the file had
// have precedence.
TiffEntry exif_entry(const RawInfo& raw) {
  constexpr std::uint16_t iso_speed = 34855;
  const auto iso = static_cast<std::uint64_t>(std::clamp(std::round(raw.iso), 0.0, 65535.0));
  return {.tag = tiff_tag::exif_directory,
          .type = tiff_type::uint32,
          .count = 1,
          .directory = {tiff_numbers(iso_speed, tiff_type::uint16, {iso})}};
}

std::vector<TiffEntry> entries_of(const RawInfo& raw, const Metadata& metadata) {
  constexpr std::uint64_t most_exif = 1 << 20;
  Directory directory;
  directory.add(storage_entries(raw));
  directory.add(level_entries(raw));
  if (raw.colour) directory.add(filter_entries(raw));
  directory.add(tiff_numbers(dng_tag::version, tiff_type::byte, {1, 4, 0, 0}));
  directory.add(tiff_numbers(dng_tag::backward_version, tiff_type::byte, {1, 1, 0, 0}));
  if (!raw.noise.empty()) directory.add(noise_entry(raw));
  directory.add(descriptive_entries(TiffReader(without_exif_mark(metadata.exif)), false, most_exif));
  if (!metadata.xmp.empty()) {
    directory.add(
        {.tag = tiff_tag::xmp, .type = tiff_type::byte, .count = metadata.xmp.size(), .value = metadata.xmp});
  }
  const bool own_colours = !raw.dng_entries.empty();
  directory.add(raw.dng_entries);
  if (!own_colours) directory.add(colour_entries(raw));
  directory.add(text_entries(raw));
  if (raw.iso > 0) directory.add(exif_entry(raw));
  return directory.entries();
}

class DngOutput final : public OutputFile {
 public:
  DngOutput(const std::filesystem::path& path, const FileInfo& info, const RawInfo& raw,
            const Metadata& metadata)
      : file_(path, info.access),
        spec_(info.spec),
        raw_(raw),
        entries_(entries_of(raw, metadata)),
        cursor_(path, info.spec.height, 1) {
    scale_ = (raw.white - raw.mean_black()) / spec_.white();
    samples_.resize(static_cast<std::size_t>(spec_.width));
    row_.resize(static_cast<std::size_t>(raw.width) * 2);
  }

  void write_rows(int first, const ConstImageView& rows) override {
    check_rows(file_.target(), spec_, first, rows);
    cursor_.take(first, rows.spec.height);
    const int side = raw_.colour ? 2 : 1;
    for (int y = 0; y < rows.spec.height; ++y) {
      for (int dy = 0; dy < side; ++dy) {
        const int row = side * (first + y) + dy;
        if (row >= raw_.height) continue;
        for (int dx = 0; dx < side; ++dx) put(rows, y, raw_.colour ? raw_.pattern[2 * dy + dx] : 0, dx, side);
        file_.write(row_.data(), row_.size(), pixels_at + static_cast<std::uint64_t>(row) * row_.size());
      }
    }
  }

  void next_page() override { cursor_.next_page(); }

  void commit() override {
    cursor_.check_complete();
    const std::uint64_t directory_at = pixels_at + row_.size() * static_cast<std::uint64_t>(raw_.height);
    TiffDirectoryWriter writer(directory_at, false, false);
    const std::uint64_t at = writer.put(entries_, 0);
    file_.write(writer.bytes().data(), writer.bytes().size(), directory_at);
    std::vector<std::byte> header = {std::byte{'I'}, std::byte{'I'}, std::byte{42}, std::byte{0}};
    const std::vector<std::byte> place = tiff_number(at, 4, false);
    header.insert(header.end(), place.begin(), place.end());
    file_.write(header.data(), header.size(), 0);
    file_.commit();
  }

 private:
  // Writes one channel of a row to every second photosite.
  void put(const ConstImageView& rows, int y, int channel, int dx, int side) {
    load_row(rows, y, channel, samples_.data());
    for (int x = dx; x < raw_.width; x += side) {
      const double level = samples_[static_cast<std::size_t>(x / side)] * scale_ + raw_.black[channel];
      const auto value = static_cast<std::uint16_t>(std::lround(std::clamp(level, 0.0, 65535.0)));
      row_[2 * static_cast<std::size_t>(x)] = static_cast<std::byte>(value & 0xffU);
      row_[2 * static_cast<std::size_t>(x) + 1] = static_cast<std::byte>(value >> 8U);
    }
  }

  TemporaryFile file_;
  ImageSpec spec_;
  RawInfo raw_;
  std::vector<TiffEntry> entries_;
  RowCursor cursor_;
  double scale_ = 1;
  std::vector<double> samples_;
  std::vector<std::byte> row_;
};

}  // namespace

std::unique_ptr<OutputFile> create_dng(const std::filesystem::path& path, const FileInfo& info,
                                       const RawInfo& raw, const Metadata& metadata) {
  const ImageSpec wanted = raw_spec(raw);
  if (info.spec.width != wanted.width || info.spec.height != wanted.height ||
      info.spec.channels != wanted.channels) {
    fail(path, fmt::format("a DNG file of {} x {} photosites holds {} x {} samples of {} channels", raw.width,
                           raw.height, wanted.width, wanted.height, wanted.channels));
  }
  constexpr std::uint64_t for_tags = std::uint64_t{256} << 20U;
  if (2 * static_cast<std::uint64_t>(raw.width) * static_cast<std::uint64_t>(raw.height) >
      std::numeric_limits<std::uint32_t>::max() - for_tags) {
    fail(path, "more than the 4 GB that a DNG file holds");
  }
  return std::make_unique<DngOutput>(path, info, raw, metadata);
}

}  // namespace ungrain::io
