// ungrain estimate: how strong the noise of files is.
#include "ungrain/estimate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "arguments.h"
#include "commands.h"
#include "io/failure.h"
#include "io/image_file.h"
#include "json_text.h"
#include "noise_model_json.h"
#include "output.h"
#include "row_bands.h"
#include "streams.h"
#include "ungrain/error.h"
#include "ungrain/noise_model.h"
#include "white_level.h"

namespace ungrain::cli {
namespace {

struct FileEstimate {
  ImageSpec spec;
  std::vector<NoiseModelEstimate> pages;  // with a model where that was asked for
};

template <class Estimator>
auto estimate_page(io::InputFile& file, const ImageSpec& spec) {
  Estimator estimator(spec);
  RowBand rows(spec);
  while (rows.read_next(file)) estimator.add_rows(rows.view());
  return estimator.finish();
}

// All pages of a file, told once the last of them is known to be sound.
FileEstimate estimate_file(const std::string& name, const io::OpenOptions& open, std::optional<double> range,
                           bool model) {
  const std::unique_ptr<io::InputFile> file = open_input(name, open);
  io::FileInfo info = file->info();
  info.spec.range = white_level(*file, info, range);
  FileEstimate estimate{info.spec, {}};
  for (int page = 0; page < info.pages; ++page) {
    file->select_page(page);
    if (model) {
      estimate.pages.push_back(estimate_page<NoiseModelEstimator>(*file, info.spec));
    } else {
      NoiseModelEstimate page_estimate;
      page_estimate.white = estimate_page<NoiseEstimator>(*file, info.spec);
      estimate.pages.push_back(std::move(page_estimate));
    }
  }
  file->check_unchanged();
  return estimate;
}

double on_255_scale(double sigma, double white) { return sigma * 255 / white; }

void print_json(const std::string& file, std::optional<int> page, const NoiseModelEstimate& found,
                const ImageSpec& spec) {
  const NoiseEstimate& estimate = found.white;
  const double white = spec.white();
  nlohmann::json line{{"file", file},
                      {"sigma", json_number(on_255_scale(estimate.sigma, white))},
                      {"sigma_pixels", json_number(estimate.sigma)},
                      {"white", json_number(white)}};
  for (const double sigma : estimate.channels) {
    line["channels"].push_back(json_number(on_255_scale(sigma, white)));
  }
  if (page) line["page"] = *page;
  if (!found.model.channels.empty()) line["model"] = to_json(found);
  print("{}\n", json_text(line));
}

void print_model(const NoiseModelEstimate& found, const ImageSpec& spec) {
  print("{:>10} finding: {}; {} of {} levels show noise without texture{}\n", "", name(found.finding),
        found.calm_levels, found.levels,
        found.limited_by_colour ? "; luminance limited by the colour differences' noise" : "");
  std::string text = to_text(found.model, spec);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    print("{:>10} {}\n", "", text.substr(begin, end - begin));
    begin = end + 1;
  }
}

void print_row(const std::string& file, std::optional<int> page, const NoiseModelEstimate& found,
               const ImageSpec& spec) {
  const NoiseEstimate& estimate = found.white;
  const double white = spec.white();
  std::vector<std::string> channels;
  for (const double sigma : estimate.channels) {
    channels.push_back(fmt::format("{:.2f}", on_255_scale(sigma, white)));
  }
  if (channels.size() == 1) channels = {"-"};
  const std::string shown = shown_input(file);
  const std::string label = page ? fmt::format("{} page {}", shown, *page) : shown;
  print("{:>10.2f} {:>12.6g} {:>24}  {}\n", on_255_scale(estimate.sigma, white), estimate.sigma,
        fmt::format("{}", fmt::join(channels, " ")), io::one_line(label));
  if (!found.model.channels.empty()) print_model(found, spec);
}

}  // namespace

int estimate_command(const Arguments& arguments) {
  std::vector<std::string> files;
  io::OpenOptions open;
  std::optional<double> range;
  bool json = false;
  bool model = false;
  CLI::App app("Estimate the standard deviation of the noise of files.", "ungrain estimate");
  app.add_option("files", files, "images, or - (the standard input)")->type_name("");
  app.add_option_function<std::string>(
         "--range", [&](const std::string& text) { range = parse_range(text); },
         "white level of all files (default: 255 for 8 bits, 65535 for 16, 1 for float)")
      ->type_name("WHITE");
  add_open_options(app, open);
  app.add_flag(
      "--model", model,
      "the noise by level and frequency too: what cameras and JPEG leave of it (rgb: luminance and two "
      "colour differences)");
  app.add_flag("--json", json, "one JSON object a file on the standard output");
  if (!parse(app, arguments)) return exit_done;
  if (files.empty()) throw UsageError("estimate takes at least one file, got none");
  check_streams(files);

  int failed = 0;
  bool headed = json;
  for (const std::string& file : files) {
    try {
      const FileEstimate estimate = estimate_file(file, open, range, model);
      if (!headed) print("{:>10} {:>12} {:>24}  file\n", "of 255", "pixel units", "channels, of 255");
      headed = true;
      for (std::size_t page = 0; page < estimate.pages.size(); ++page) {
        const auto number =
            estimate.pages.size() > 1 ? std::optional(static_cast<int>(page) + 1) : std::nullopt;
        (json ? print_json : print_row)(file, number, estimate.pages[page], estimate.spec);
      }
      flush_output();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::cancelled) throw;
      ++failed;
      print_error(error.what());
    }
  }
  return failed > 0 ? exit_failed : exit_done;
}

}  // namespace ungrain::cli
