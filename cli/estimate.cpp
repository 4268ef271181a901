// ungrain estimate: the strength and the kind of noise in files.
#include "ungrain/estimate.h"

#include <array>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "arguments.h"
#include "commands.h"
#include "io/exif_iso.h"
#include "io/failure.h"
#include "io/image_file.h"
#include "io/temporary_file.h"
#include "json_text.h"
#include "noise_model_json.h"
#include "noise_page.h"
#include "noise_text.h"
#include "output.h"
#include "row_bands.h"
#include "signals.h"
#include "streams.h"
#include "ungrain/convert.h"
#include "ungrain/error.h"
#include "ungrain/noise_calibration.h"
#include "ungrain/noise_model.h"
#include "white_level.h"

namespace ungrain::cli {
namespace {

struct Part {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
};

struct EstimateSettings {
  std::vector<std::string> files;
  io::OpenOptions open;
  std::optional<double> range;
  std::optional<Part> region;
  std::string frames;  // "still", "even", or empty: each image by itself
  std::string save;
  std::string plot;
  bool json = false;
  bool model = false;
};

// The estimate of one page.
struct PageEstimate {
  ImageSpec spec;
  std::optional<double> iso;
  NoiseModelEstimate found;
  Image small;  // for --plot
};

Part parse_region(const std::string& text) {
  std::array<int, 4> numbers{};
  const char* at = text.data();
  const char* end = at + text.size();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto [stopped, error] = std::from_chars(at, end, numbers[i]);
    const bool last = i + 1 == numbers.size();
    const bool ends = last ? stopped == end : stopped != end && *stopped == ',';
    if (error != std::errc{} || !ends || numbers[i] < (i < 2 ? 0 : 1)) {
      throw UsageError(fmt::format("--region takes X,Y,WIDTH,HEIGHT in pixels, got '{}'", text));
    }
    at = stopped + 1;
  }
  return {numbers[0], numbers[1], numbers[2], numbers[3]};
}

// The page, or its part that --region names.
Image read_pixels(io::InputFile& file, const std::string& name, const ImageSpec& spec,
                  const std::optional<Part>& region) {
  const Part part = region.value_or(Part{0, 0, spec.width, spec.height});
  if (part.width > spec.width || part.x > spec.width - part.width || part.height > spec.height ||
      part.y > spec.height - part.height) {
    throw Error(ErrorCode::io, fmt::format("{}: is {} x {}, --region {},{},{},{} lies outside",
                                           io::one_line(shown_input(name)), spec.width, spec.height, part.x,
                                           part.y, part.width, part.height));
  }
  ImageSpec of_part = spec;
  of_part.width = part.width;
  of_part.height = part.height;
  Image pixels(of_part);
  for (int done = 0; done < part.height;) {
    if (interrupted().cancelled()) throw Error(ErrorCode::cancelled, "interrupted, nothing written");
    ImageSpec rows = spec;
    rows.height = std::min(band_rows(spec, part.y + done), part.height - done);
    Image band(rows);
    file.read_rows(part.y + done, band.view());
    ImageView columns = band.view();
    columns.data = static_cast<std::byte*>(columns.data) + part.x * columns.strides.x;
    columns.spec.width = part.width;
    for (int y = 0; y < rows.height; ++y) copy_pixels(columns, y, pixels.view(), done + y);
    done += rows.height;
  }
  return pixels;
}

PageEstimate estimate_page(io::InputFile& file, const std::string& name, const ImageSpec& spec,
                           const EstimateSettings& settings) {
  PageEstimate page{spec, io::iso_speed(file.metadata()), {}, {}};
  const NoiseModelOptions options{.iso = page.iso, .jpeg_steps = file.metadata().jpeg_steps};
  if (settings.region || !settings.plot.empty()) {
    const Image pixels = read_pixels(file, name, spec, settings.region);
    page.spec = pixels.spec();
    page.found = estimate_noise_model(pixels.view(), options);
    constexpr int longest = 1200;
    if (!settings.plot.empty()) page.small = made_small(pixels.view(), longest);
    return page;
  }
  NoiseModelEstimator estimator(spec, options);
  RowBand rows(spec);
  while (rows.read_next(file)) estimator.add_rows(rows.view());
  page.found = estimator.finish();
  return page;
}

// Measures all pages of a file; the results are printed only when all pages could be read.
std::vector<PageEstimate> estimate_file(const std::string& name, const EstimateSettings& settings) {
  const std::unique_ptr<io::InputFile> file = open_input(name, settings.open);
  io::FileInfo info = file->info();
  info.spec.range = white_level(*file, info, settings.range);
  if (info.pages > 1 && (!settings.save.empty() || !settings.plot.empty())) {
    throw Error(ErrorCode::io,
                fmt::format("{}: has {} pages, {} takes one: choose it with --pages, or --frames still",
                            io::one_line(shown_input(name)), info.pages,
                            settings.save.empty() ? "--plot" : "--save"));
  }
  std::vector<PageEstimate> pages;
  for (int page = 0; page < info.pages; ++page) {
    file->select_page(page);
    pages.push_back(estimate_page(*file, name, info.spec, settings));
  }
  file->check_unchanged();
  return pages;
}

double on_255_scale(double sigma, double white) { return sigma * 255 / white; }

double together(const std::vector<double>& channels) {
  double squares = 0;
  for (const double each : channels) squares += each * each;
  return channels.empty() ? 0 : std::sqrt(squares / static_cast<double>(channels.size()));
}

void print_json(const std::string& file, std::optional<int> number, const PageEstimate& page, bool model) {
  const double white = page.spec.white();
  const std::vector<double> channels = page.found.deviations;
  nlohmann::json line{{"file", file},
                      {"sigma", json_number(on_255_scale(together(channels), white))},
                      {"sigma_pixels", json_number(together(channels))},
                      {"finding", name(page.found.finding)},
                      {"white", json_number(white)}};
  for (const double sigma : channels) line["channels"].push_back(json_number(on_255_scale(sigma, white)));
  if (page.iso) line["iso"] = *page.iso;
  if (number) line["page"] = *number;
  if (model) line["model"] = to_json(page.found);
  print("{}\n", json_text(line));
}

void print_model(const PageEstimate& page) {
  print("{:>10} noise: {}; {} of {} levels show noise without texture\n", "",
        noise_text(page.found, page.spec, page.iso), page.found.calm_levels, page.found.levels);
  const std::string text = to_text(page.found.model, page.spec);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    print("{:>10} {}\n", "", text.substr(begin, end - begin));
    begin = end + 1;
  }
}

void print_row(const std::string& file, std::optional<int> number, const PageEstimate& page, bool model) {
  const double white = page.spec.white();
  const std::vector<double> deviations = page.found.deviations;
  std::vector<std::string> channels;
  for (const double sigma : deviations) channels.push_back(fmt::format("{:.2f}", on_255_scale(sigma, white)));
  if (channels.size() == 1) channels = {"-"};
  const std::string shown = shown_input(file);
  const std::string label = number ? fmt::format("{} page {}", shown, *number) : shown;
  print("{:>10.2f} {:>12.6g} {:>24} {:>9}  {}\n", on_255_scale(together(deviations), white),
        together(deviations), fmt::format("{}", fmt::join(channels, " ")), name(page.found.finding),
        io::one_line(label));
  if (model) print_model(page);
}

void write_page(const std::string& path, const NoisePage& page, const io::FileAccess& access) {
  io::TemporaryFile file(path, access);
  const std::string html = html_of(page);
  file.write(html.data(), html.size(), 0);
  file.commit();
}

io::FileAccess access_of(const std::string& name, const io::OpenOptions& open) {
  return name == stream_name ? io::FileAccess{} : io::InputFile::open(name, open)->access();
}

void print_head(const EstimateSettings& settings) {
  if (settings.json) return;
  print("{:>10} {:>12} {:>24} {:>9}  file\n", "of 255", "pixel units", "channels, of 255", "noise");
}

// Measures every image by itself.
int estimate_each(const EstimateSettings& settings) {
  int failed = 0;
  bool headed = false;
  for (const std::string& file : settings.files) {
    try {
      const std::vector<PageEstimate> pages = estimate_file(file, settings);
      if (!headed) print_head(settings);
      headed = true;
      for (std::size_t page = 0; page < pages.size(); ++page) {
        const auto number = pages.size() > 1 ? std::optional(static_cast<int>(page) + 1) : std::nullopt;
        (settings.json ? print_json : print_row)(file, number, pages[page], settings.model);
      }
      flush_output();
      const PageEstimate& first = pages.front();
      if (!settings.save.empty()) {
        write_noise_model(settings.save, first.found.model, first.spec, access_of(file, settings.open));
      }
      if (!settings.plot.empty()) {
        write_page(
            settings.plot,
            {io::one_line(shown_input(file)), first.spec, noise_text(first.found, first.spec, first.iso),
             first.found.model, first.small.copy(), first.found.blocks},
            access_of(file, settings.open));
      }
    } catch (const Error& error) {
      if (error.code() == ErrorCode::cancelled) throw;
      ++failed;
      print_error(error.what());
    }
  }
  return failed > 0 ? exit_failed : exit_done;
}

// Measures all pages of all files as frames of one camera.
int estimate_frames(const EstimateSettings& settings) {
  std::vector<Image> frames;
  io::FileAccess access;
  for (const std::string& name : settings.files) {
    const std::unique_ptr<io::InputFile> file = open_input(name, settings.open);
    access = frames.empty() ? file->access() : access.shared_with(file->access());
    io::FileInfo info = file->info();
    info.spec.range = white_level(*file, info, settings.range);
    for (int page = 0; page < info.pages; ++page) {
      file->select_page(page);
      frames.push_back(read_pixels(*file, name, info.spec, settings.region));
    }
    file->check_unchanged();
  }
  std::vector<ConstImageView> views;
  for (const Image& frame : frames) views.push_back(frame.view());
  const NoiseModel model =
      settings.frames == "still" ? noise_of_still_frames(views) : noise_of_even_frames(views);
  const ImageSpec& spec = views.front().spec;
  const std::string found = fmt::format("measured in {} {} frames", frames.size(), settings.frames);
  if (settings.json) {
    nlohmann::json line{{"files", settings.files}, {"frames", settings.frames}, {"model", to_json(model)}};
    print("{}\n", json_text(line));
  } else {
    print("noise {}\n{}", found, to_text(model, spec));
  }
  if (!settings.save.empty()) write_noise_model(settings.save, model, spec, access);
  if (!settings.plot.empty()) {
    write_page(settings.plot, {io::one_line(shown_input(settings.files.front())), spec, found, model, {}, {}},
               access);
  }
  return exit_done;
}

void check_settings(const EstimateSettings& settings) {
  if (settings.files.empty()) throw UsageError("estimate takes at least one file, got none");
  const bool one = settings.files.size() == 1 || !settings.frames.empty();
  if (!settings.save.empty() && !one) throw UsageError("--save takes one file, or --frames");
  if (!settings.plot.empty() && !one) throw UsageError("--plot takes one file, or --frames");
  for (const std::string& output : {settings.save, settings.plot}) {
    for (const std::string& file : settings.files) {
      std::error_code error;
      if (!output.empty() && std::filesystem::equivalent(output, file, error) && !error) {
        throw UsageError(fmt::format("{}: would be written over one of the images", io::one_line(output)));
      }
    }
  }
}

}  // namespace

int estimate_command(const Arguments& arguments) {
  EstimateSettings settings;
  OptionTable table("Estimate the noise of files: its standard deviation, and what it is like.",
                    "ungrain estimate");
  table.add("files...", "images, or - (the standard input)", settings.files);
  add_range_option(table, "white level of all files (default: 255 for 8 bits, 65535 for 16, 1 for float)",
                   settings.range);
  add_open_options(table, settings.open);
  table.add("--model",
            "the noise by level and frequency too: what cameras and JPEG leave of it (rgb: luminance and two "
            "colour differences)",
            settings.model);
  table.add("--region PART", "only this part of the images: X,Y,WIDTH,HEIGHT in pixels (default: all)",
            [&](const std::string& text) { settings.region = parse_region(text); });
  table
      .add("--frames KIND",
           "all images are frames of one camera, for a model of its noise: still (of one scene in which "
           "nothing moves) or even (each shows one even area: dark and flat frames) (default: each "
           "image by itself)",
           settings.frames)
      .only({"still", "even"});
  table.add("--save FILE", "the model as a file for --noise-model (default: none)", settings.save);
  table.add("--plot FILE",
            "a page that shows the noise over levels and frequencies and where it was measured; one file "
            "that fetches nothing (default: no page)",
            settings.plot);
  table.add("--json", "one JSON object a file on the standard output", settings.json);
  if (!parse(table, arguments)) return exit_done;
  check_settings(settings);
  check_streams(settings.files);
  return settings.frames.empty() ? estimate_each(settings) : estimate_frames(settings);
}

}  // namespace ungrain::cli
