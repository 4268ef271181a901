// ungrain compare: the difference of files from a clean one.
#include <cmath>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "arguments.h"
#include "commands.h"
#include "compare_page.h"
#include "io/failure.h"
#include "io/image_file.h"
#include "json_text.h"
#include "output.h"
#include "row_bands.h"
#include "streams.h"
#include "ungrain/convert.h"
#include "ungrain/error.h"
#include "ungrain/metrics.h"
#include "volume_file.h"
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

struct Settings {
  std::vector<std::string> files;  // the clean one first
  io::OpenOptions open;
  std::optional<double> range;
  bool volume = false;  // pages are slices
  std::optional<int> slices;
  std::string mask;  // empty: none
  bool json = false;
  std::string html;  // empty: no page
};

// ---- the files

// The volumes of a file that is compared with those of `clean`: as asked, as the file says, or as in the
// clean file where that fits.
io::PageOrder order_of(const io::FileInfo& info, const Settings& settings, const std::string& name,
                       const std::optional<io::PageOrder>& clean) {
  std::optional<int> depth = settings.slices;
  if (!depth && !info.volume && clean) {
    const io::PageOrder own = volume_order(info, std::nullopt, shown_input(name));
    const bool alike = own.depth == clean->depth && own.volumes() == clean->volumes();
    if (alike && info.stack && info.stack->order) return own;
    if (info.pages == clean->pages()) return *clean;
    if (info.pages % clean->depth == 0) depth = clean->depth;
  }
  return volume_order(info, depth, shown_input(name));
}

ComparedFile open_file(const std::string& name, const Settings& settings) {
  ComparedFile opened{name, open_input(name, settings.open), {}, {}};
  opened.info = opened.file->info();
  opened.access = opened.file->access();
  return opened;
}

void make_volumes(ComparedFile& file, const io::PageOrder& order) {
  file.file = std::make_unique<VolumeInput>(in_order_of_volumes(std::move(file.file), order), order.depth);
  file.info = file.file->info();
}

// The peak of PSNR and SSIM.
struct Peak {
  double value = 0;
  std::string from;
};

// The largest finite value of all pages. 0: none is above 0.
double largest_value(io::InputFile& file, const io::FileInfo& info) {
  double largest = 0;
  std::vector<double> row(static_cast<std::size_t>(info.spec.width));
  for (int page = 0; page < info.pages; ++page) {
    file.select_page(page);
    RowBand rows(info.spec);
    while (rows.read_next(file)) {
      const ConstImageView view = rows.view();
      for (int y = 0; y < view.spec.height; ++y) {
        for (int channel = 0; channel < view.spec.colour_channels(); ++channel) {
          load_row(view, y, channel, row.data());
          for (const double value : row) {
            if (value > largest && std::isfinite(value)) largest = value;
          }
        }
      }
    }
  }
  return largest;
}

Peak peak_of_volumes(ComparedFile& clean, std::optional<double> range) {
  if (range) return {*range, "--range"};
  if (!clean.info.white_unknown) {
    return {clean.info.spec.white(),
            clean.info.spec.range > 0 ? "white level of the file" : "white of the samples' type"};
  }
  const double largest = largest_value(*clean.file, clean.info);
  if (largest > 0) return {largest, "largest value of " + io::one_line(shown_input(clean.name))};
  return {1, "no value is above 0"};
}

// Opens the files of a comparison, whose kind the clean one decides.
class Files {
 public:
  explicit Files(Settings settings) : settings_(std::move(settings)) {
    settings_.volume = settings_.volume || settings_.slices;
    if (settings_.volume && !settings_.open.axis) settings_.open.axis = 0;  // as `ungrain volume` does
    clean_ = open_file(settings_.files.front(), settings_);
    const std::optional<io::VolumeShape> shape = clean_.info.volume;
    if (settings_.volume || (shape && shape->depth > 1)) {
      order_ = order_of(clean_.info, settings_, clean_.name, {});
      make_volumes(clean_, *order_);
      peak_ = peak_of_volumes(clean_, settings_.range);
      clean_.info.spec.range = peak_->value;
      if (!settings_.open.axis) settings_.open.axis = 0;
    } else {
      clean_.info.spec.range = white_level(*clean_.file, clean_.info, settings_.range);
    }
  }

  ComparedFile& clean() { return clean_; }
  const std::optional<Peak>& peak() const { return peak_; }  // of volumes
  bool volumes() const { return peak_.has_value(); }

  ComparedFile open(const std::string& name) const {
    ComparedFile other = open_file(name, settings_);
    if (!volumes()) {
      other.info.spec.range = white_level(*other.file, other.info, settings_.range);
      return other;
    }
    make_volumes(other, order_of(other.info, settings_, name, order_));
    if (in_units_of_clean(other.info)) other.info.spec.range = clean_.info.spec.range;
    return other;
  }

 private:
  // Values are scaled from one white level to the other only where both are known. NIfTI files have none:
  // they hold measurements.
  bool in_units_of_clean(const io::FileInfo& other) const {
    const io::FileInfo& clean = clean_.info;
    return settings_.range || clean.white_unknown || other.white_unknown || clean.volume || other.volume;
  }

  Settings settings_;
  ComparedFile clean_;
  std::optional<io::PageOrder> order_;  // of its volumes
  std::optional<Peak> peak_;
};

std::string size_text(const io::FileInfo& info) {
  const ImageSpec& spec = info.spec;
  const std::string pages =
      info.pages > 1 ? fmt::format(", {} {}", info.pages, spec.is_volume() ? "volumes" : "pages") : "";
  if (!spec.is_volume()) return fmt::format("{}x{}{}", spec.width, spec.height, pages);
  return fmt::format("{}x{}x{}{}", spec.slice.width, spec.slice.height, spec.height, pages);
}

void check_match(const ComparedFile& clean, const ComparedFile& other) {
  const auto text = [](const io::FileInfo& info) {
    io::FileInfo one = info;
    one.pages = 1;
    return fmt::format("{}, {} channel{}{}{}", size_text(one), info.spec.channels,
                       info.spec.channels == 1 ? "" : "s", info.spec.alpha ? " with alpha" : "",
                       size_text(info).substr(size_text(one).size()));
  };
  ImageSpec expected = clean.info.spec;
  expected.type = other.info.spec.type;
  expected.range = other.info.spec.range;
  expected.colour = other.info.spec.colour;
  if (other.info.spec != expected || other.info.pages != clean.info.pages) {
    throw Error(ErrorCode::io,
                fmt::format("{}: {}; {} is {}: they cannot be compared", shown_input(other.name),
                            text(other.info), shown_input(clean.name), text(clean.info)));
  }
}

// ---- the mask

class Mask {
 public:
  // Throws Error(io) where it has another size than the clean image, or where none of its pixels counts.
  Mask(Files& files, const std::string& name) : mask_(files.open(name)) {
    const io::FileInfo& clean = files.clean().info;
    const ImageSpec& spec = mask_.info.spec;
    if (spec.width != clean.spec.width || spec.height != clean.spec.height ||
        spec.slice != clean.spec.slice || (pages() != 1 && pages() != clean.pages)) {
      throw Error(ErrorCode::io,
                  fmt::format("{}: the mask is {}; {} is {}", shown_input(name), size_text(mask_.info),
                              shown_input(files.clean().name), size_text(clean)));
    }
    for (int page = 0; page < pages(); ++page) check_some_count(page);
  }

  const std::string& name() const { return mask_.name; }
  const ImageSpec& spec() const { return mask_.info.spec; }
  // Of a page of the images; one page counts for all.
  io::InputFile& page(int page) {
    mask_.file->select_page(pages() == 1 ? 0 : page);
    return *mask_.file;
  }

 private:
  int pages() const { return mask_.info.pages; }

  void check_some_count(int page) {
    mask_.file->select_page(page);
    RowBand rows(spec());
    std::vector<double> row(static_cast<std::size_t>(spec().width));
    while (rows.read_next(*mask_.file)) {
      const ConstImageView view = rows.view();
      for (int y = 0; y < view.spec.height; ++y) {
        for (int channel = 0; channel < view.spec.colour_channels(); ++channel) {
          load_row(view, y, channel, row.data());
          for (const double value : row) {
            if (value != 0 && !std::isnan(value)) return;
          }
        }
      }
    }
    throw Error(
        ErrorCode::io,
        fmt::format(
            "{}: the mask is empty: all its {} are 0{}", shown_input(mask_.name),
            spec().is_volume() ? "voxels" : "pixels",
            pages() > 1 ? fmt::format(" ({} {})", spec().is_volume() ? "volume" : "page", page + 1) : ""));
  }

  ComparedFile mask_;
};

// ---- the comparison

Metrics compare_page(ComparedFile& clean, ComparedFile& other, io::InputFile* mask,
                     const ImageSpec& mask_spec) {
  const ImageSpec& spec = clean.info.spec;
  Comparison comparison(spec);
  RowBand clean_rows(spec);
  RowBand other_rows(other.info.spec);
  std::optional<RowBand> mask_rows;
  if (mask != nullptr) mask_rows.emplace(mask_spec);
  std::optional<RescaledRows> rescaled;
  if (other.info.spec.white() != spec.white()) rescaled.emplace(other.info.spec, spec.white());
  while (clean_rows.read_next(*clean.file) && other_rows.read_next(*other.file)) {
    const ConstImageView compared = rescaled ? rescaled->rows_of(other_rows) : other_rows.view();
    if (mask_rows && mask_rows->read_next(*mask)) {
      comparison.add_rows(clean_rows.view(), compared, mask_rows->view());
    } else {
      comparison.add_rows(clean_rows.view(), compared);
    }
  }
  return comparison.finish();
}

// Compares all pages of a file; the results are printed only when all pages could be read.
std::vector<Metrics> compare_file(Files& files, const std::string& name, std::optional<Mask>& mask) {
  ComparedFile& clean = files.clean();
  ComparedFile other = files.open(name);
  check_match(clean, other);
  other.info.spec.colour = clean.info.spec.colour;
  std::vector<Metrics> pages;
  for (int page = 0; page < clean.info.pages; ++page) {
    clean.file->select_page(page);
    other.file->select_page(page);
    pages.push_back(
        compare_page(clean, other, mask ? &mask->page(page) : nullptr, mask ? mask->spec() : ImageSpec{}));
  }
  other.file->check_unchanged();
  clean.file->check_unchanged();
  return pages;
}

// ---- what is printed

nlohmann::json number_or_null(std::optional<double> value) {
  return value ? json_number(*value) : nlohmann::json(nullptr);
}

template <class Found>  // Metrics, MaskedMetrics
nlohmann::json common_json(const Found& metrics) {
  return {{"psnr", json_number(metrics.psnr)},
          {"mse", json_number(metrics.mse)},
          {"max_abs", json_number(metrics.max_abs)},
          {"ssim", number_or_null(metrics.ssim)}};
}

// Writes the lines of a comparison, as a table or as JSON.
class Lines {
 public:
  Lines(Files& files, const std::optional<Mask>& mask, bool json)
      : clean_(files.clean().name), peak_(files.peak()), mask_(mask), json_(json) {}

  nlohmann::json object(const Metrics& metrics) const {
    nlohmann::json line = common_json(metrics);
    if (!peak_) {
      line["fsim"] = number_or_null(metrics.fsim);
      line["fsimc"] = number_or_null(metrics.fsimc);
    }
    if (metrics.in_mask) {
      line["mask"] = common_json(*metrics.in_mask);
      line["mask"].update({{"file", mask_->name()}, {"pixels", metrics.in_mask->pixels}});
    }
    return line;
  }

  // "peak 4095 (largest value of clean.nii.gz)"
  std::string peak_text() const { return fmt::format("peak {:.6g} ({})", peak_->value, peak_->from); }

  void print_file(const std::string& file, const std::vector<Metrics>& pages) {
    if (!json_ && !headed_) print_head();
    headed_ = true;
    for (std::size_t page = 0; page < pages.size(); ++page) {
      const auto number = pages.size() > 1 ? std::optional(static_cast<int>(page) + 1) : std::nullopt;
      if (json_) {
        print_json(file, number, pages[page]);
      } else {
        print_rows(file, number, pages[page]);
      }
    }
    flush_output();
  }

 private:
  const char* part() const { return peak_ ? "volume" : "page"; }

  void print_json(const std::string& file, std::optional<int> page, const Metrics& metrics) const {
    nlohmann::json line = object(metrics);
    line.update({{"truth", clean_}, {"file", file}});
    if (peak_) line.update({{"peak", peak_->value}, {"peak_from", peak_->from}});
    if (page) line[part()] = *page;
    print("{}\n", json_text(line));
  }

  void print_head() const {
    if (peak_) print("{}\n", peak_text());
    print("{:>10} {:>9} {}{:>12} {:>10}  file\n", "PSNR dB", "SSIM",
          peak_ ? "" : fmt::format("{:>9} {:>9} ", "FSIM", "FSIMc"), "MSE", "max-abs");
  }

  void print_rows(const std::string& file, std::optional<int> page, const Metrics& metrics) const {
    const std::string shown = shown_input(file);
    const std::string label = page ? fmt::format("{} {} {}", shown, part(), *page) : shown;
    print_row(label, metrics, metrics.fsim, metrics.fsimc);
    if (metrics.in_mask) print_row(label + ", in the mask", *metrics.in_mask, {}, {});
  }

  template <class Found>
  void print_row(const std::string& label, const Found& metrics, std::optional<double> fsim,
                 std::optional<double> fsimc) const {
    const auto text = [](std::optional<double> value) { return value ? fmt::format("{:.6f}", *value) : "-"; };
    print("{:>10.4f} {:>9} {}{:>12.6g} {:>10.6g}  {}\n", metrics.psnr, text(metrics.ssim),
          peak_ ? "" : fmt::format("{:>9} {:>9} ", text(fsim), text(fsimc)), metrics.mse, metrics.max_abs,
          io::one_line(label));
  }

  std::string clean_;
  std::optional<Peak> peak_;  // of volumes
  const std::optional<Mask>& mask_;
  bool json_;
  bool headed_ = false;
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
  Settings settings;
  OptionTable table("PSNR, SSIM, FSIM, MSE and largest error of files against a clean one.",
                    "ungrain compare");
  table.add("files...",
            "the clean image or volume, then those to judge; one may be - (the standard input). NIfTI files "
            "of several slices are volumes: SSIM has a window in three dimensions, and there is no FSIM",
            settings.files);
  table.add("--volume", "take the pages of each file for slices of a volume (of NPY arrays axis 0)",
            settings.volume);
  table.add("--slices N", "slices of one volume (default: as the file says, or all of them)",
            [&](const std::string& text) {
              settings.slices = static_cast<int>(parse_whole("--slices", text, 1'000'000, 1));
            });
  table
      .add("--mask FILE",
           "also PSNR, SSIM, MSE and largest error over the pixels that are not 0 in this file (default: "
           "none)",
           settings.mask)
      .file = true;
  add_range_option(table,
                   "white level of all files (default: 255 for 8 bits, 65535 for 16, 1 for float; of volumes "
                   "of floats the clean one's largest value)",
                   settings.range);
  add_open_options(table, settings.open);
  add_series_option(table, settings.open);
  table.add("--json", "one JSON object a file on the standard output", settings.json);
  table.add(
      "--html FILE",
      "a page with the pictures too: slider, zoom, differences, numbers, of volumes three planes; one file "
      "that fetches nothing (default: no page)",
      settings.html);
  if (!parse(table, arguments)) return exit_done;
  const std::vector<std::string>& names = settings.files;
  if (names.size() < 2) throw UsageError("compare takes the clean image and at least one other");
  std::vector<std::string> inputs = names;
  if (!settings.mask.empty()) inputs.push_back(settings.mask);
  check_streams(inputs);
  if (!settings.html.empty()) check_page_path(settings.html, inputs);

  Files files(settings);
  std::optional<Mask> mask;
  if (!settings.mask.empty()) mask.emplace(files, settings.mask);
  Lines lines(files, mask, settings.json);
  std::unique_ptr<ComparisonPage> page;
  if (!settings.html.empty()) {
    std::vector<std::string> remarks;
    if (files.volumes()) remarks.push_back(fmt::format("PSNR and SSIM: {}.", lines.peak_text()));
    page = ComparisonPage::create(
        files.clean(), [&](const std::string& name) { return files.open(name); }, remarks);
  }
  std::size_t failed = 0;
  for (std::size_t i = 1; i < names.size(); ++i) {
    try {
      const std::vector<Metrics> pages = compare_file(files, names[i], mask);
      lines.print_file(names[i], pages);
      if (page) page->add(names[i], lines.object(pages.front()));
    } catch (const Error& error) {
      if (error.code() == ErrorCode::cancelled) throw;
      ++failed;
      print_error(error.what());
    }
  }
  if (page && failed + 1 < names.size()) page->write(settings.html);
  return failed > 0 ? exit_failed : exit_done;
}

}  // namespace ungrain::cli
