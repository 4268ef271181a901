// ungrain noise: adds noise of a known kind to a file.
#include "ungrain/noise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "arguments.h"
#include "commands.h"
#include "io/failure.h"
#include "io/image_file.h"
#include "output.h"
#include "raw_mosaic.h"
#include "row_bands.h"
#include "streams.h"
#include "ungrain/error.h"
#include "white_level.h"

namespace ungrain::cli {
namespace {

constexpr std::string_view camera_kind = "camera";
constexpr std::string_view kinds_group = "Kinds of noise (one of them)";
constexpr std::string_view camera_group = "The camera";

void add_camera_options(OptionTable& table, CameraSettings& settings) {
  table.begin_group(std::string(camera_group));
  table.add("--iso N", fmt::format("sensitivity (default {:g})", settings.iso),
            [&settings](const std::string& text) {
              settings.iso = static_cast<double>(parse_whole("--iso", text, 1'000'000, 25));
            });
  table.add("--demosaic KIND",
            fmt::format("how missing colours are found: bilinear or gradient (default {})",
                        name(settings.demosaic)),
            settings.demosaic, {{"bilinear", Demosaic::bilinear}, {"gradient", Demosaic::gradient}});
  table.add("--noiseless", "the same photograph without noise: the truth to compare with",
            [&settings](const std::string&) { settings.noise = false; });
}

// "gaussian"; throws UsageError unless exactly one kind is given, or where an option belongs to another kind.
std::string the_one_kind(const OptionTable& table) {
  std::vector<std::string> kinds;
  for (const auto& [option, text] : table.given(kinds_group)) kinds.push_back(option.substr(2));
  if (kinds.size() != 1) {
    std::vector<std::string> known;
    for (const Option& option : table.options()) {
      if (option.group == kinds_group) known.push_back(option.names.back());
    }
    throw UsageError(fmt::format("noise takes one of {}; got {}", fmt::join(known, ", "),
                                 kinds.empty() ? "none" : fmt::format("{}", fmt::join(kinds, " and "))));
  }
  const auto of_camera = table.given(camera_group);
  if (kinds.front() != camera_kind && !of_camera.empty())
    throw UsageError(fmt::format("{} is an option of --camera", of_camera.front().first));
  return kinds.front();
}

CameraSettings of_page(CameraSettings settings, std::uint64_t seed) {
  settings.seed = seed;
  return settings;
}

// Pages of one file get different noise: `page` is added to the seed.
using AddNoise = std::function<void(const ConstImageView& in, const ImageView& out, std::uint64_t page)>;

// `reach`: rows above and below its output that `add` reads.
void write_noisy_pages(io::InputFile& input, const io::FileInfo& in, io::OutputFile& output,
                       const ImageSpec& out, int reach, const AddNoise& add) {
  for (int page = 0; page < in.pages; ++page) {
    if (page > 0) {
      input.select_page(page);
      output.next_page();
    }
    RowBand band(in.spec, reach);
    RowBand noisy(out);
    while (band.read_next(input)) {
      const ImageView to = noisy.same_rows(band);
      add(band.view(), to, static_cast<std::uint64_t>(page));
      output.write_rows(band.first(), to);
    }
  }
}

}  // namespace

int noise_command(const Arguments& arguments) {
  std::string input_name;
  std::string output_name;
  std::string format;
  Noise noise;
  CameraSettings camera;
  io::SaveOptions save;
  bool quality_given = false;
  io::OpenOptions open;
  std::optional<double> range;
  std::optional<PixelType> depth;
  bool quiet = false;

  OptionTable table("Add noise of a known kind: the same seed gives the same noise everywhere.",
                    "ungrain noise");
  table.add("file", "image, folder of DICOM slices, or - (the standard input)", input_name);
  table.add("-o,--output PATH", "file to write, or - (the standard output); it has no default", output_name);
  add_format_option(table, format);
  table.begin_group(std::string(kinds_group));
  for (const NoiseInfo& info : noise_models()) {
    table.add("--" + info.amount.name + " AMOUNT", option_help(info.amount),
              [&noise, info](const std::string& text) {
                noise.kind = info.kind;
                noise.amount = parse_amount(info.amount, text);
              });
  }
  bool photograph = false;
  table.add(
      "--camera",
      "that of photographs: the picture is the scene that a simulated camera takes; into a .dng file: its "
      "raw data",
      photograph);
  add_camera_options(table, camera);
  table.begin_group("Options");
  table.add("--seed N", "whole number (default 0)",
            [&](const std::string& text) { noise.seed = parse_whole("--seed", text); });
  add_range_option(table, "white level of the file (default: 255 for 8 bits, 65535 for 16, 1 for float)",
                   range);
  add_depth_option(
      table,
      "samples of the output: u8, u16, f16 or f32 (default: the input's); float is not clipped, but by "
      "--camera",
      depth);
  add_open_options(table, open);
  add_series_option(table, open);
  add_save_options(table, save, quality_given);
  table.add("-q,--quiet", "print errors only", quiet);
  if (!parse(table, arguments)) return exit_done;
  if (input_name.empty()) throw UsageError("noise takes a file, got none");
  if (output_name.empty()) throw UsageError("noise takes --output, the file to write");
  const std::string kind = the_one_kind(table);
  check_streams({input_name}, output_name, format);

  const std::unique_ptr<io::InputFile> input = open_input(input_name, open);
  io::FileInfo in = input->info();
  in.spec.range = white_level(*input, in, range);
  if (photograph && in.spec.colour == Colour::multi)
    io::fail(shown_input(input_name),
             "the camera takes gray or rgb images, this one has independent channels");
  const ResultFile result(output_name, in.format, format);
  if (photograph && io::is_format(result.path(), "DNG")) {
    if (in.pages > 1)
      io::fail(shown_input(input_name), "has several pages, and a DNG file holds one photograph");
    write_mosaic(*input, in.spec, of_page(camera, noise.seed), result.path());
    result.deliver();
    if (!quiet) {
      print("{}  camera ISO {:g} mosaic{}\n",
            io::one_line(shown_input(input_name) + " -> " + shown_output(output_name)), camera.iso,
            camera.noise ? "" : " without noise");
    }
    return exit_done;
  }
  io::FileInfo out = in;
  out.spec.type = depth.value_or(io::writable_type(result.path(), in.spec));
  if (out.spec.type != in.spec.type && !(is_float(out.spec.type) && is_float(in.spec.type)))
    out.spec.range = 0;
  if (!is_float(out.spec.type) && !io::keeps_white_level(result.path())) out.spec.range = 0;
  save.pages = input->selected_pages();
  const double given = noise.amount;
  if (noise.kind == NoiseKind::gaussian) noise.amount *= in.spec.white() / 255;

  const std::unique_ptr<io::OutputFile> output =
      io::OutputFile::create(result.path(), out, input.get(), save);
  const AddNoise add = [&](const ConstImageView& from, const ImageView& to, std::uint64_t page) {
    if (photograph) return add_camera_noise(from, to, of_page(camera, noise.seed + page));
    add_noise(from, to, {noise.kind, noise.amount, noise.seed + page});
  };
  write_noisy_pages(*input, in, *output, out.spec, photograph ? camera_reach() : 0, add);
  input->check_unchanged();
  output->commit();
  result.deliver();
  if (!quiet) {
    print("{}  {} {}\n", io::one_line(shown_input(input_name) + " -> " + shown_output(output_name)), kind,
          photograph ? fmt::format("ISO {:g} {}{}", camera.iso, name(camera.demosaic),
                                   camera.noise ? "" : " without noise")
                     : fmt::format("{:g}", given));
  }
  return exit_done;
}

}  // namespace ungrain::cli
