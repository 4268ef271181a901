#include "io/raw_input.h"

#include <fmt/format.h>
#include <libraw.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <new>
#include <optional>

#include "io/dng_tags.h"
#include "io/failure.h"
#include "io/packed_rows.h"
#include "io/tiff_exif.h"
#include "io/tiff_values.h"
#include "platform/processes.h"
#include "ungrain/convert.h"

namespace ungrain::io {
namespace {

// Turns LibRaw's error codes into errors of this folder.
void check(const std::filesystem::path& path, std::string_view kind, int code) {
  switch (code) {
    case LIBRAW_SUCCESS:
      return;
    case LIBRAW_UNSUFFICIENT_MEMORY:
      throw std::bad_alloc();
    case LIBRAW_FILE_UNSUPPORTED:
    case LIBRAW_REQUEST_FOR_NONEXISTENT_IMAGE:
      fail(path,
           fmt::format("{}, damaged or of a camera that LibRaw {} does not know", kind, LibRaw::version()));
    default:
      fail(path, fmt::format("{}, damaged or truncated: LibRaw says: {}", kind, LibRaw::strerror(code)));
  }
}

// Reason why LibRaw's picture is neither a mosaic of red, green and blue nor a monochrome sensor's; empty: it
// is one.
std::string what_it_is_instead_of_bayer(LibRaw& raw) {
  constexpr unsigned xtrans = 9;
  constexpr unsigned first_pattern = 1000;  // smaller numbers stand for other sensors
  const libraw_iparams_t& idata = raw.imgdata.idata;
  if (idata.is_foveon != 0) return "of a Foveon sensor, which has no mosaic";
  if (idata.filters == xtrans) return "of an X-Trans sensor, whose mosaic is not Bayer's";
  if (raw.is_fuji_rotated() != 0) return "of a sensor whose mosaic stands on a corner";
  if (idata.filters == 0) return idata.colors == 1 ? "" : "demosaiced already (linear)";
  if (idata.filters < first_pattern) return "of a sensor whose mosaic is not Bayer's";
  constexpr int pattern_rows = 8;  // rows that LibRaw's number describes
  for (int y = 0; y < pattern_rows; ++y) {
    for (int x = 0; x < 2; ++x) {
      const char colour = idata.cdesc[raw.COLOR(y, x)];
      if (colour != 'R' && colour != 'G' && colour != 'B')
        return "of a sensor whose colours are not red, green and blue";
      if (colour != idata.cdesc[raw.COLOR(y % 2, x)]) return "of a sensor whose mosaic is not Bayer's";
    }
  }
  return "";
}

// Channels of the 2 x 2 photosites in the upper left corner; nothing unless they are a red, a blue and two
// greens.
std::optional<std::array<int, 4>> pattern_of(LibRaw& raw) {
  std::array<char, 4> colours{};
  for (int i = 0; i < 4; ++i) colours[i] = raw.imgdata.idata.cdesc[raw.COLOR(i / 2, i % 2)];
  const auto red = static_cast<int>(std::find(colours.begin(), colours.end(), 'R') - colours.begin());
  if (red == 4) return std::nullopt;
  std::array<int, 4> pattern{};
  pattern[red] = RawInfo::red;
  pattern[red ^ 1] = RawInfo::green_by_red;
  pattern[red ^ 2] = RawInfo::green_by_blue;
  pattern[red ^ 3] = RawInfo::blue;
  const bool bayer = colours[red ^ 1] == 'G' && colours[red ^ 2] == 'G' && colours[red ^ 3] == 'B';
  return bayer ? std::optional(pattern) : std::nullopt;
}

int orientation_of(int flip) {
  switch (flip) {
    case 3:
      return 3;
    case 5:
      return 8;
    case 6:
      return 6;
    default:
      return 1;
  }
}

bool is_in(double value, double least, double most) { return value >= least && value <= most; }

// In the units of samples from 0 to `range`.
std::vector<PoissonGaussian> noise_of(const std::vector<double>& profile, bool colour, double range) {
  if (profile.empty()) return {};
  const std::size_t colours = profile.size() / 2;
  std::vector<PoissonGaussian> noise;
  for (int channel = 0; channel < (colour ? 4 : 1); ++channel) {
    const std::size_t wanted = !colour || channel == RawInfo::red ? 0 : channel == RawInfo::blue ? 2 : 1;
    const std::size_t pair = colours == 1 ? 0 : wanted;
    if (pair >= colours) return {};
    noise.push_back({.a = profile[2 * pair] * range, .b = profile[2 * pair + 1] * range * range});
  }
  // A profile of zeros carries no information.
  const bool tells =
      std::all_of(noise.begin(), noise.end(), [](const auto& one) { return one.a + one.b > 0; });
  return tells ? noise : std::vector<PoissonGaussian>{};
}

// EXIF tags from LibRaw, for files whose EXIF only the maker's programs can read.
std::vector<TiffEntry> exif_entries_of(const libraw_data_t& data) {
  constexpr std::uint16_t exposure_time = 33434, f_number = 33437, iso_speed = 34855, taken = 36867,
                          focal_length = 37386;
  const libraw_imgother_t& other = data.other;
  std::vector<TiffEntry> entries;
  std::vector<TiffEntry> exif;
  if (data.idata.make[0] != 0) entries.push_back(tiff_text(tiff_tag::make, data.idata.make));
  if (data.idata.model[0] != 0) entries.push_back(tiff_text(tiff_tag::model, data.idata.model));
  std::array<char, 20> text{};
  const std::optional<std::tm> time = platform::local_time(other.timestamp);
  const bool dated =
      other.timestamp > 0 && time && std::strftime(text.data(), text.size(), "%Y:%m:%d %H:%M:%S", &*time) > 0;
  if (dated) entries.push_back(tiff_text(tiff_tag::date_time, text.data()));
  if (other.artist[0] != 0) entries.push_back(tiff_text(tiff_tag::artist, other.artist));
  if (is_in(other.shutter, 1e-6, 2000))
    exif.push_back(tiff_fractions(exposure_time, tiff_type::fraction, {other.shutter}));
  if (is_in(other.aperture, 0.1, 1000))
    exif.push_back(tiff_fractions(f_number, tiff_type::fraction, {other.aperture}, 100));
  if (is_in(other.iso_speed, 1, 65535)) {
    exif.push_back(tiff_numbers(iso_speed, tiff_type::uint16,
                                {static_cast<std::uint64_t>(std::lround(other.iso_speed))}));
  }
  if (dated) exif.push_back(tiff_text(taken, text.data()));
  if (is_in(other.focal_len, 0.1, 1e5))
    exif.push_back(tiff_fractions(focal_length, tiff_type::fraction, {other.focal_len}, 100));
  if (!exif.empty()) {
    entries.push_back({.tag = tiff_tag::exif_directory,
                       .type = tiff_type::uint32,
                       .count = 1,
                       .directory = std::move(exif)});
  }
  return entries;
}

class RawInput final : public RawFile {
 public:
  RawInput(SourceFile file, std::string_view kind)
      : file_(std::move(file)), kind_(kind), libraw_(std::make_unique<LibRaw>()) {
    libraw_->set_dataerror_handler(nullptr, nullptr);  // the default handler prints
    check(file_.path(), kind_, libraw_->open_file(file_.path().c_str()));
    if (const std::string other = what_it_is_instead_of_bayer(*libraw_); !other.empty()) {
      fail(file_.path(),
           fmt::format("{} {}, which cannot be filtered: develop it first, to a TIFF file for instance",
                       kind_, other));
    }
    check(file_.path(), kind_, libraw_->unpack());
    if (libraw_->error_count() > 0) fail(file_.path(), fmt::format("{}, damaged or truncated", kind_));
    if (data().rawdata.raw_image == nullptr) {
      fail(file_.path(), fmt::format("{} without a mosaic, as cameras write it in reduced sizes", kind_));
    }
    describe();
    describe_levels();
    describe_colours();
    read_metadata();
    info_.spec = raw_spec(raw_);
    validate(info_.spec);
  }

  const FileInfo& info() const override { return info_; }
  const Metadata& metadata() const override { return metadata_; }
  const RawInfo& raw() const override { return raw_; }
  void select_page(int /*page*/) override {}
  void check_unchanged() override { file_.check_unchanged(); }

  // The photosites, and floats before and after filtering.
  std::uint64_t decoding_bytes() const override {
    constexpr std::uint64_t bytes = 2 + 4 + 4;
    return bytes * sizes().raw_width * sizes().raw_height;
  }

  void read_rows(int first, const ImageView& rows) override {
    check_rows(file_.path(), info_.spec, first, rows);
    std::vector<float> samples(static_cast<std::size_t>(info_.spec.width));
    for (int y = 0; y < rows.spec.height; ++y) {
      for (int channel = 0; channel < info_.spec.channels; ++channel) {
        for_each_photosite(first + y, channel, [&](int x, int site_y, int site_x) {
          samples[static_cast<std::size_t>(x)] =
              static_cast<float>(photosite(site_y, site_x) - black_at(site_y, site_x));
        });
        store_row(rows, y, channel, samples.data());
      }
    }
  }

  Image develop(const ConstImageView& samples, PixelType type) override {
    put(samples);
    libraw_output_params_t& params = libraw_->imgdata.params;
    params.use_camera_wb = 1;
    params.no_auto_bright = 1;  // keeps the camera's exposure
    params.output_bps = type == PixelType::u8 ? 8 : 16;
    params.output_color = 1;  // sRGB and its curve:
    params.gamm[0] = 1 / 2.4;
    params.gamm[1] = 12.92;
    check(file_.path(), kind_, libraw_->dcraw_process());
    int code = LIBRAW_SUCCESS;
    const std::unique_ptr<libraw_processed_image_t, decltype(&LibRaw::dcraw_clear_mem)> developed(
        libraw_->dcraw_make_mem_image(&code), &LibRaw::dcraw_clear_mem);
    check(file_.path(), kind_, code);
    ImageSpec spec{.width = developed->width,
                   .height = developed->height,
                   .channels = developed->colors,
                   .type = type,
                   .colour = developed->colors == 3 ? Colour::rgb : Colour::gray};
    Image image(spec);
    if (developed->data_size != image.bytes()) {
      fail(file_.path(), fmt::format("{}: LibRaw developed {} bytes in place of {}", kind_,
                                     developed->data_size, image.bytes()));
    }
    std::copy_n(reinterpret_cast<const std::byte*>(developed->data), image.bytes(),
                image.samples<std::byte>());
    return image;
  }

 private:
  const libraw_data_t& data() const { return libraw_->imgdata; }

  void describe() {
    raw_.width = sizes().width;
    raw_.height = sizes().height;
    raw_.colour = data().idata.filters != 0;
    if (raw_.width < 2 || raw_.height < 2) fail(file_.path(), fmt::format("{} of no size", kind_));
    if (raw_.colour) {
      const auto pattern = pattern_of(*libraw_);
      if (!pattern) fail(file_.path(), fmt::format("{} of a sensor whose mosaic is not Bayer's", kind_));
      raw_.pattern = *pattern;
      for (int i = 0; i < 4; ++i) filters_[i] = libraw_->COLOR(i / 2, i % 2);
    }
    raw_.orientation = orientation_of(sizes().flip);
    raw_.make = data().idata.make;
    raw_.model = data().idata.model;
    raw_.iso = std::isfinite(data().other.iso_speed) ? data().other.iso_speed : 0;
    info_.format = data().idata.dng_version != 0 ? "DNG" : "camera raw";
  }

  // A channel's black level is the mean over a pattern that may be larger than 2 x 2.
  void describe_levels() {
    raw_.white = colours().maximum;
    const int side = raw_.colour ? 2 : 1;
    for (int channel = 0; channel < (raw_.colour ? 4 : 1); ++channel) {
      double sum = 0;
      double count = 0;
      constexpr int pattern_side = 16;
      for (int y = 0; y < pattern_side; ++y) {
        for (int x = 0; x < pattern_side; ++x) {
          if (side == 2 && raw_.pattern[2 * (y % 2) + x % 2] != channel) continue;
          sum += black_at(y, x);
          ++count;
        }
      }
      raw_.black[channel] = sum / count;
    }
    if (!(raw_.white > raw_.mean_black())) {
      fail(file_.path(), fmt::format("{} whose white level {:g} is not above its black level {:g}", kind_,
                                     raw_.white, raw_.mean_black()));
    }
  }

  void describe_colours() {
    const libraw_colordata_t& color = colours();
    for (int row = 0; row < 3; ++row) {
      for (int column = 0; column < 3; ++column) raw_.camera_of_xyz[row][column] = color.cam_xyz[row][column];
    }
    const bool balanced = std::all_of(color.cam_mul, color.cam_mul + 3, [](float gain) { return gain > 0; });
    for (int c = 0; balanced && c < 3; ++c) raw_.neutral[c] = color.cam_mul[1] / color.cam_mul[c];
  }

  void read_metadata() {
    std::vector<std::byte> marked = exif_of_tiff(file_);
    if (const auto entries = exif_entries_of(data()); marked.empty() && !entries.empty()) {
      marked = exif_of_entries(entries);
    }
    const std::span<const std::byte> exif = without_exif_mark(marked);
    metadata_.exif.assign(exif.begin(), exif.end());
    // Samples stay as they lie on the sensor; developed pictures are upright.
    set_exif_upright(metadata_.exif);
    if (data().idata.xmpdata != nullptr) {
      const auto* xmp = reinterpret_cast<const std::byte*>(data().idata.xmpdata);
      metadata_.xmp.assign(xmp, xmp + data().idata.xmplen);
    }
    DngTags tags = dng_tags_of(file_);
    raw_.dng_entries = std::move(tags.entries);
    if (tags.damaged_profile) info_.note = "its noise profile is damaged and not used";
    raw_.noise = noise_of(tags.noise_profile, raw_.colour, raw_.white - raw_.mean_black());
  }

  // LibRaw's own copies from before developing, which overwrites the others.
  const libraw_image_sizes_t& sizes() const { return data().rawdata.sizes; }
  const libraw_colordata_t& colours() const { return data().rawdata.color; }

  ushort& photosite(int y, int x) {
    const std::size_t row = static_cast<std::size_t>(y) + sizes().top_margin;
    return data()
        .rawdata.raw_image[row * (sizes().raw_pitch / 2) + static_cast<std::size_t>(x) + sizes().left_margin];
  }

  // The sum of the black levels of all photosites, of the colour and of the place in the pattern.
  double black_at(int y, int x) const {
    const unsigned* cblack = colours().cblack;
    double black = colours().black + cblack[filters_[2 * (y % 2) + x % 2]];
    const unsigned rows = cblack[4];
    const unsigned columns = cblack[5];
    if (rows > 0 && columns > 0) {
      black += cblack[6 + static_cast<unsigned>(y) % rows * columns + static_cast<unsigned>(x) % columns];
    }
    return black;
  }

  // Calls use(x, photosite's y, photosite's x) along row y of a channel. Beyond an odd last row or column the
  // nearest photosite of the channel is used.
  template <class Use>
  void for_each_photosite(int y, int channel, Use use) const {
    if (!raw_.colour) {
      for (int x = 0; x < raw_.width; ++x) use(x, y, x);
      return;
    }
    const auto place =
        static_cast<int>(std::find(raw_.pattern.begin(), raw_.pattern.end(), channel) - raw_.pattern.begin());
    const auto inside = [](int at, int size) { return at < size ? at : at - 2; };
    const int site_y = inside(2 * y + place / 2, raw_.height);
    for (int x = 0; x < info_.spec.width; ++x) use(x, site_y, inside(2 * x + place % 2, raw_.width));
  }

  void put(const ConstImageView& samples) {
    check_rows(file_.path(), info_.spec, 0, samples);
    std::vector<double> row(static_cast<std::size_t>(info_.spec.width));
    for (int y = 0; y < info_.spec.height; ++y) {
      for (int channel = 0; channel < info_.spec.channels; ++channel) {
        load_row(samples, y, channel, row.data());
        for_each_photosite(y, channel, [&](int x, int site_y, int site_x) {
          const bool beyond_the_edge = raw_.colour && (site_y / 2 != y || site_x / 2 != x);
          if (beyond_the_edge) return;
          const double level = row[static_cast<std::size_t>(x)] + black_at(site_y, site_x);
          photosite(site_y, site_x) = static_cast<ushort>(std::lround(std::clamp(level, 0.0, 65535.0)));
        });
      }
    }
  }

  SourceFile file_;
  std::string kind_;
  std::unique_ptr<LibRaw> libraw_;
  FileInfo info_;
  Metadata metadata_;
  RawInfo raw_;
  std::array<int, 4> filters_ = {};  // LibRaw's colour indices of 2 x 2 photosites
};

}  // namespace

std::unique_ptr<RawFile> open_raw(SourceFile file, std::string_view kind) {
  return std::make_unique<RawInput>(std::move(file), kind);
}

}  // namespace ungrain::io
