// ungrain compare: the difference of files from a clean one.
#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "arguments.h"
#include "commands.h"
#include "core/convert.h"
#include "io/failure.h"
#include "io/image_file.h"
#include "io/temporary_file.h"
#include "json_text.h"
#include "output.h"
#include "page/page.h"
#include "row_bands.h"
#include "streams.h"
#include "ungrain/error.h"
#include "ungrain/metrics.h"
#include "white_level.h"

namespace ungrain::cli {
namespace {

// The rows scaled to the truth's white level, so that an 8-bit file can be compared with a 16-bit one.
class RescaledRows {
 public:
  RescaledRows(const ImageSpec& image, double white)
      : band_(as_float(image, white)), scale_(white / image.white()) {}

  ConstImageView rows_of(RowBand& from) {
    const ImageView to = band_.same_rows(from);
    const ImageView source = from.view();
    std::vector<double> row(static_cast<std::size_t>(source.spec.width));
    for (int y = 0; y < source.spec.height; ++y) {
      for (int channel = 0; channel < source.spec.channels; ++channel) {
        load_row(source, y, channel, row.data());
        store_row(to, y, channel, row.data(), scale_);
      }
    }
    return to;
  }

 private:
  static ImageSpec as_float(ImageSpec spec, double white) {
    spec.type = PixelType::f32;
    spec.range = white;
    return spec;
  }
  RowBand band_;
  double scale_;
};

Metrics compare_page(io::InputFile& truth, const ImageSpec& truth_spec, io::InputFile& other,
                     const ImageSpec& other_spec) {
  Comparison comparison(truth_spec);
  RowBand truth_rows(truth_spec);
  RowBand other_rows(other_spec);
  std::optional<RescaledRows> rescaled;
  if (other_spec.white() != truth_spec.white()) rescaled.emplace(other_spec, truth_spec.white());
  while (truth_rows.read_next(truth) && other_rows.read_next(other)) {
    comparison.add_rows(truth_rows.view(), rescaled ? rescaled->rows_of(other_rows) : other_rows.view());
  }
  return comparison.finish();
}

void check_match(const std::string& truth_name, const io::FileInfo& truth, const std::string& name,
                 const io::FileInfo& other) {
  const auto text = [](const io::FileInfo& info) {
    return fmt::format("{}x{}, {} channel{}{}{}", info.spec.width, info.spec.height, info.spec.channels,
                       info.spec.channels == 1 ? "" : "s", info.spec.alpha ? " with alpha" : "",
                       info.pages > 1 ? fmt::format(", {} pages", info.pages) : "");
  };
  ImageSpec expected = truth.spec;
  expected.type = other.spec.type;
  expected.range = other.spec.range;
  expected.colour = other.spec.colour;
  if (other.spec != expected || other.pages != truth.pages) {
    throw Error(ErrorCode::io, fmt::format("{}: {}; {} is {}: they cannot be compared", shown_input(name),
                                           text(other), shown_input(truth_name), text(truth)));
  }
}

struct Truth {
  std::string name;
  std::unique_ptr<io::InputFile> file;
  io::FileInfo info;
};

nlohmann::json metrics_json(const Metrics& metrics) {
  const auto number_or_null = [](std::optional<double> value) {
    return value ? json_number(*value) : nlohmann::json(nullptr);
  };
  return {{"psnr", json_number(metrics.psnr)},       {"mse", json_number(metrics.mse)},
          {"max_abs", json_number(metrics.max_abs)}, {"ssim", number_or_null(metrics.ssim)},
          {"fsim", number_or_null(metrics.fsim)},    {"fsimc", number_or_null(metrics.fsimc)}};
}

void print_json(const Truth& truth, const std::string& file, std::optional<int> page,
                const Metrics& metrics) {
  nlohmann::json line = metrics_json(metrics);
  line.update({{"truth", truth.name}, {"file", file}});
  if (page) line["page"] = *page;
  print("{}\n", json_text(line));
}

void print_head() {
  print("{:>10} {:>9} {:>9} {:>9} {:>12} {:>10}  file\n", "PSNR dB", "SSIM", "FSIM", "FSIMc", "MSE",
        "max-abs");
}

void print_row(const std::string& file, std::optional<int> page, const Metrics& metrics) {
  const std::string shown = shown_input(file);
  const std::string label = page ? fmt::format("{} page {}", shown, *page) : shown;
  const auto text = [](std::optional<double> value) { return value ? fmt::format("{:.6f}", *value) : "-"; };
  print("{:>10.4f} {:>9} {:>9} {:>9} {:>12.6g} {:>10.6g}  {}\n", metrics.psnr, text(metrics.ssim),
        text(metrics.fsim), text(metrics.fsimc), metrics.mse, metrics.max_abs, io::one_line(label));
}

// Compares all pages of a file; the results are printed only when all pages could be read.
std::vector<Metrics> compare_file(const Truth& truth, const std::string& name, const io::OpenOptions& open,
                                  std::optional<double> range) {
  const std::unique_ptr<io::InputFile> other = open_input(name, open);
  io::FileInfo info = other->info();
  info.spec.range = white_level(*other, info, range);
  check_match(truth.name, truth.info, name, info);
  info.spec.colour = truth.info.spec.colour;
  std::vector<Metrics> pages;
  for (int page = 0; page < info.pages; ++page) {
    truth.file->select_page(page);
    other->select_page(page);
    pages.push_back(compare_page(*truth.file, truth.info.spec, *other, info.spec));
  }
  other->check_unchanged();
  truth.file->check_unchanged();
  return pages;
}

// The page of --html: the pictures beside their numbers. Of files with several pages it shows the first; of
// very large pictures the middle at full size, because reduction would average the noise away.
class ComparisonPage {
 public:
  ComparisonPage(const Truth& truth, const io::OpenOptions& open, std::optional<double> range)
      : part_(page::shown_part(truth.info.spec.width, truth.info.spec.height, most_pixels)),
        truth_(truth.info),
        open_(open),
        range_(range) {
    add(truth.name, {});
  }

  void add(const std::string& file, const std::optional<Metrics>& metrics) {
    const std::unique_ptr<io::InputFile> input = open_input(file, open_);
    access_ = access_.shared_with(input->access());
    ImageSpec rows = input->info().spec;
    rows.range = white_level(*input, input->info(), range_);
    rows.colour = truth_.spec.colour;
    rows.height = part_.height;
    Image pixels(rows);
    input->read_rows(part_.y, pixels.view());
    const page::Crop within_rows{part_.x, 0, part_.width, part_.height};
    metrics_.push_back(metrics ? metrics_json(*metrics) : nlohmann::json(nullptr));
    pictures_.push_back({io::one_line(shown_input(file)), metrics ? page::in_short(metrics_.back()) : "clean",
                         page::source_of(pixels.view(), within_rows)});
  }

  void write(const std::string& path) {
    nlohmann::json data = {{"title", "Comparison with " + pictures_.front().name},
                           {"about", about()},
                           {"notes", notes()},
                           {"pictures", nlohmann::json::array()}};
    shorten_names();
    for (std::size_t i = 0; i < pictures_.size(); ++i)
      data["pictures"].push_back({{"name", pictures_[i].name}, {"metrics", metrics_[i]}});
    const std::string html = page::render_page("compare", data, pictures_);
    io::TemporaryFile file(path, access_);
    file.write(html.data(), html.size(), 0);
    file.commit();
  }

 private:
  static constexpr double most_pixels = 4e6;

  // File names without their folders, where those are distinct.
  void shorten_names() {
    std::vector<page::Picture> shown = pictures_;
    std::set<std::string> names;
    for (page::Picture& picture : shown) {
      picture.name = std::filesystem::path(picture.name).filename().string();
      names.insert(picture.name);
    }
    if (names.size() == shown.size()) pictures_ = std::move(shown);
  }

  std::string about() const {
    const ImageSpec& spec = truth_.spec;
    return fmt::format("{} x {}, {} channel{}, {}", spec.width, spec.height, spec.channels,
                       spec.channels == 1 ? "" : "s", name(spec.type));
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> all;
    if (part_.width != truth_.spec.width || part_.height != truth_.spec.height) {
      all.push_back(
          fmt::format("Shown is the middle, {} x {} pixels from ({}, {}); the numbers are of the whole.",
                      part_.width, part_.height, part_.x, part_.y));
    }
    if (truth_.pages > 1)
      all.push_back(fmt::format("Shown and judged here is the first of {} pages.", truth_.pages));
    return all;
  }

  page::Crop part_;
  io::FileInfo truth_;
  io::OpenOptions open_;
  std::optional<double> range_;
  std::vector<page::Picture> pictures_;
  std::vector<nlohmann::json> metrics_;  // of each; null: the clean picture
  io::FileAccess access_;                // of the files whose pixels are shown
};

void check_page_path(const std::string& path, const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    std::error_code error;
    if (std::filesystem::equivalent(path, file, error) && !error)
      throw UsageError(fmt::format("--html {}: would be written over one of the images", io::one_line(path)));
  }
}

}  // namespace

int compare_command(const Arguments& arguments) {
  std::vector<std::string> files;
  io::OpenOptions open;
  std::optional<double> range;
  bool json = false;
  std::string html;
  OptionTable table("PSNR, SSIM, FSIM, MSE and largest error of files against a clean one.",
                    "ungrain compare");
  table.add("files...", "the clean image, then the images to judge; one may be - (the standard input)",
            files);
  add_range_option(table, "white level of all files (default: 255 for 8 bits, 65535 for 16, 1 for float)",
                   range);
  add_open_options(table, open);
  table.add("--json", "one JSON object a file on the standard output", json);
  table.add("--html FILE",
            "a page with the pictures too: slider, zoom, differences, numbers; one file that fetches nothing "
            "(default: no page)",
            html);
  if (!parse(table, arguments)) return exit_done;
  if (files.size() < 2) throw UsageError("compare takes the clean image and at least one other");
  check_streams(files);

  if (!html.empty()) check_page_path(html, files);
  Truth truth{files.front(), open_input(files.front(), open), {}};
  truth.info = truth.file->info();
  truth.info.spec.range = white_level(*truth.file, truth.info, range);
  std::optional<ComparisonPage> shown;
  if (!html.empty()) shown.emplace(truth, open, range);
  int failed = 0;
  bool headed = json;
  for (std::size_t i = 1; i < files.size(); ++i) {
    try {
      const std::vector<Metrics> pages = compare_file(truth, files[i], open, range);
      if (!headed) print_head();
      headed = true;
      for (std::size_t page = 0; page < pages.size(); ++page) {
        const auto number = pages.size() > 1 ? std::optional(static_cast<int>(page) + 1) : std::nullopt;
        if (json) {
          print_json(truth, files[i], number, pages[page]);
        } else {
          print_row(files[i], number, pages[page]);
        }
      }
      flush_output();
      if (shown) shown->add(files[i], pages.front());
    } catch (const Error& error) {
      if (error.code() == ErrorCode::cancelled) throw;
      ++failed;
      print_error(error.what());
    }
  }
  if (shown && failed + 1 < static_cast<int>(files.size())) shown->write(html);
  return failed > 0 ? exit_failed : exit_done;
}

}  // namespace ungrain::cli
