#include "compare_page.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "io/failure.h"
#include "io/temporary_file.h"
#include "json_text.h"
#include "streams.h"
#include "ungrain/convert.h"
#include "volume_file.h"

namespace ungrain::cli {
namespace {

using nlohmann::json;

std::string channels_text(const ImageSpec& spec) {
  return fmt::format("{} channel{}, {}", spec.channels, spec.channels == 1 ? "" : "s", name(spec.type));
}

// Of files with several pages it shows the first; of very large pictures the middle at full size, because
// reduction would average the noise away.
class ImagePage : public ComparisonPage {
 public:
  ImagePage(const io::FileInfo& clean, Open open, std::vector<std::string> remarks)
      : ComparisonPage(clean, std::move(open), std::move(remarks)),
        part_(page::shown_part(clean.spec.width, clean.spec.height, most_pixels)) {
    if (part_.width != clean.spec.width || part_.height != clean.spec.height) {
      notes_.push_back(
          fmt::format("Shown is the middle, {} x {} pixels from ({}, {}); the numbers are of the whole.",
                      part_.width, part_.height, part_.x, part_.y));
    }
    if (clean.pages > 1)
      notes_.push_back(fmt::format("Shown and judged here is the first of {} pages.", clean.pages));
  }

 private:
  static constexpr double most_pixels = 4e6;

  std::string_view kind() const override { return "compare"; }
  std::string about() const override {
    return fmt::format("{} x {}, {}", clean_.spec.width, clean_.spec.height, channels_text(clean_.spec));
  }
  std::string source(ComparedFile& file) override {
    ImageSpec rows = file.info.spec;
    rows.colour = clean_.spec.colour;
    rows.height = part_.height;
    Image pixels(rows);
    file.file->read_rows(part_.y, pixels.view());
    return page::source_of(pixels.view(), {part_.x, 0, part_.width, part_.height});
  }

  page::Crop part_;
};

// Volumes as atlases: slices beside each other in one 8-bit picture, black to white from the smallest to the
// largest value of the clean volume. Along axes of more than 256 voxels some are left out: the mean of
// several would have less noise.
class VolumePage : public ComparisonPage {
 public:
  VolumePage(const io::FileInfo& clean, Open open, std::vector<std::string> remarks)
      : ComparisonPage(clean, std::move(open), std::move(remarks)),
        whole_{clean.spec.slice.width, clean.spec.slice.height, clean.spec.height} {
    std::string steps;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      step_[axis] = (whole_[axis] + most_voxels - 1) / most_voxels;
      size_[axis] = (whole_[axis] + step_[axis] - 1) / step_[axis];
      if (step_[axis] == 1) continue;
      steps += fmt::format("{}one voxel in {} along {}", steps.empty() ? "" : ", ", step_[axis], "xyz"[axis]);
    }
    columns_ = static_cast<int>(std::ceil(std::sqrt(size_[2])));
    if (!steps.empty()) notes_.push_back(fmt::format("Shown is {}; the numbers are of all voxels.", steps));
    if (clean.pages > 1)
      notes_.push_back(fmt::format("Shown and judged here is the first of {} volumes.", clean.pages));
    if (clean.spec.colour == Colour::rgb) notes_.emplace_back("Colours are shown as their mean.");
    if (clean.spec.colour == Colour::multi && clean.spec.colour_channels() > 1)
      notes_.push_back(fmt::format("Shown is the first of {} channels.", clean.spec.colour_channels()));
  }

 private:
  static constexpr int most_voxels = 256;

  std::string_view kind() const override { return "volume"; }
  std::string about() const override {
    std::string text = fmt::format("{} x {} x {} voxels", whole_[0], whole_[1], whole_[2]);
    if (clean_.volume) text += fmt::format(" of {:.4g}", fmt::join(clean_.volume->spacing, " x "));
    return fmt::format("{}, {}", text, channels_text(clean_.spec));
  }

  void describe(json& data) const override {
    std::array<double, 3> spacing = voxel_spacing(clean_).value_or(std::array{1.0, 1.0, 1.0});
    for (std::size_t axis = 0; axis < 3; ++axis) spacing[axis] *= step_[axis];
    data["volume"] = {{"whole", whole_},
                      {"size", size_},
                      {"step", step_},
                      {"spacing", spacing},
                      {"columns", columns_},
                      {"low", low_},
                      {"high", high_},
                      // In NIfTI's coordinates y goes to the front and z to the top of the head.
                      {"upwards", clean_.format == "NIfTI"}};
  }

  std::string source(ComparedFile& file) override {
    const std::vector<float> voxels = shown_voxels(file);
    if (!window_known_) find_window(voxels);
    window_known_ = true;
    return page::source_of(atlas_of(voxels).view(), {0, 0, columns_ * size_[0], atlas_rows() * size_[1]});
  }

  // In the clean volume's unit, x fastest, then y.
  std::vector<float> shown_voxels(ComparedFile& file) const {
    const ImageSpec& spec = file.info.spec;
    const int channels = clean_.spec.colour == Colour::rgb ? 3 : 1;
    const double scale = clean_.spec.white() / spec.white() / channels;
    ImageSpec one = spec;
    one.height = 1;
    Image slice(one);
    std::vector<double> values(static_cast<std::size_t>(spec.width));
    std::vector<double> sums(values.size());
    std::vector<float> shown;
    shown.reserve(static_cast<std::size_t>(size_[0]) * size_[1] * size_[2]);
    for (int z = 0; z < whole_[2]; z += step_[2]) {
      file.file->read_rows(z, slice.view());
      std::fill(sums.begin(), sums.end(), 0.0);
      for (int channel = 0; channel < channels; ++channel) {
        load_row(ConstImageView(slice.view()), 0, channel, values.data());
        for (std::size_t i = 0; i < values.size(); ++i) sums[i] += values[i] * scale;
      }
      for (int y = 0; y < whole_[1]; y += step_[1]) {
        for (int x = 0; x < whole_[0]; x += step_[0])
          shown.push_back(static_cast<float>(sums[static_cast<std::size_t>(y) * whole_[0] + x]));
      }
    }
    return shown;
  }

  void find_window(const std::vector<float>& voxels) {
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    for (const float value : voxels) {
      if (!std::isfinite(value)) continue;
      low = std::min<double>(low, value);
      high = std::max<double>(high, value);
    }
    if (!(low <= high)) return;  // no finite voxel
    low_ = low;
    high_ = high > low ? high : low + 1;
  }

  int atlas_rows() const { return (size_[2] + columns_ - 1) / columns_; }

  Image atlas_of(const std::vector<float>& voxels) const {
    Image atlas(ImageSpec{.width = columns_ * size_[0], .height = atlas_rows() * size_[1]});
    const double scale = 255 / (high_ - low_);
    auto* const pixels = atlas.samples<std::uint8_t>();
    const float* from = voxels.data();
    for (int z = 0; z < size_[2]; ++z) {
      for (int y = 0; y < size_[1]; ++y) {
        const std::size_t row = static_cast<std::size_t>(z / columns_) * size_[1] + y;
        std::uint8_t* to = pixels + (row * columns_ + z % columns_) * size_[0];
        for (int x = 0; x < size_[0]; ++x, ++from) {
          const double value = (static_cast<double>(*from) - low_) * scale;
          to[x] =
              static_cast<std::uint8_t>(std::isnan(value) ? 0 : std::lround(std::clamp(value, 0.0, 255.0)));
        }
      }
    }
    return atlas;
  }

  std::array<int, 3> whole_;          // voxels along x, y and z
  std::array<int, 3> step_{1, 1, 1};  // from one that is shown to the next
  std::array<int, 3> size_{};         // how many are shown
  int columns_ = 1;                   // slices beside each other in an atlas
  bool window_known_ = false;
  double low_ = 0;  // values shown as black and white
  double high_ = 1;
};

}  // namespace

std::unique_ptr<ComparisonPage> ComparisonPage::create(const ComparedFile& clean, Open open,
                                                       std::vector<std::string> remarks) {
  std::unique_ptr<ComparisonPage> page;
  if (clean.info.spec.is_volume()) {
    page = std::make_unique<VolumePage>(clean.info, std::move(open), std::move(remarks));
  } else {
    page = std::make_unique<ImagePage>(clean.info, std::move(open), std::move(remarks));
  }
  page->add(clean.name, nullptr);
  return page;
}

void ComparisonPage::add(const std::string& file, const json& metrics) {
  ComparedFile compared = open_(file);
  access_ = access_.shared_with(compared.access);
  std::string picture = source(compared);
  metrics_.push_back(metrics);
  pictures_.push_back({io::one_line(shown_input(file)), metrics.is_null() ? "clean" : page::in_short(metrics),
                       std::move(picture)});
}

void ComparisonPage::write(const std::string& path) {
  json data = {{"title", "Comparison with " + pictures_.front().name},
               {"about", about()},
               {"notes", notes_},
               {"pictures", json::array()}};
  describe(data);
  shorten_names();
  for (std::size_t i = 0; i < pictures_.size(); ++i)
    data["pictures"].push_back({{"name", pictures_[i].name}, {"metrics", metrics_[i]}});
  const std::string html = page::render_page(kind(), data, pictures_);
  io::TemporaryFile file(path, access_);
  file.write(html.data(), html.size(), 0);
  file.commit();
}

// File names without their folders, where those are distinct.
void ComparisonPage::shorten_names() {
  std::vector<std::string> shown;
  for (const page::Picture& picture : pictures_)
    shown.push_back(std::filesystem::path(picture.name).filename().string());
  if (std::set<std::string>(shown.begin(), shown.end()).size() != shown.size()) return;
  for (std::size_t i = 0; i < shown.size(); ++i) pictures_[i].name = std::move(shown[i]);
}

}  // namespace ungrain::cli
