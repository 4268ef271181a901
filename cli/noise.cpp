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

void check_one_kind(const std::vector<std::string>& kinds) {
  if (kinds.size() == 1) return;
  std::vector<std::string> known;
  for (const NoiseInfo& info : noise_models()) known.push_back("--" + info.amount.name);
  known.emplace_back("--camera");
  throw UsageError(fmt::format("noise takes one of {}; got {}", fmt::join(known, ", "),
                               kinds.empty() ? "none" : fmt::format("{}", fmt::join(kinds, " and "))));
}

constexpr std::string_view camera_kind = "camera";

Demosaic parse_demosaic(const std::string& text) {
  for (const Demosaic kind : {Demosaic::bilinear, Demosaic::gradient}) {
    if (text == name(kind)) return kind;
  }
  throw UsageError(fmt::format("--demosaic takes one of bilinear, gradient, got '{}'", text));
}

// The simulated camera as the user wants it.
struct CameraOptions {
  CameraSettings settings;
  std::vector<std::string> given;  // options that only the camera has

  void add_to(CLI::App& app) {
    const std::string group = "The camera";
    app.add_option_function<std::string>(
           "--iso",
           [this](const std::string& text) {
             settings.iso = static_cast<double>(parse_whole("--iso", text, 1'000'000, 25));
             given.emplace_back("--iso");
           },
           fmt::format("sensitivity (default {:g})", settings.iso))
        ->type_name("N")
        ->group(group);
    app.add_option_function<std::string>(
           "--demosaic",
           [this](const std::string& text) {
             settings.demosaic = parse_demosaic(text);
             given.emplace_back("--demosaic");
           },
           fmt::format("how missing colours are found: bilinear or gradient (default {})",
                       name(settings.demosaic)))
        ->type_name("KIND")
        ->group(group);
    app.add_flag_callback(
           "--noiseless",
           [this] {
             settings.noise = false;
             given.emplace_back("--noiseless");
           },
           "the same photograph without noise: the truth to compare with")
        ->group(group);
  }

  CameraSettings of_page(std::uint64_t seed) const {
    CameraSettings page = settings;
    page.seed = seed;
    return page;
  }

  std::string text() const {
    return fmt::format("ISO {:g} {}{}", settings.iso, name(settings.demosaic),
                       settings.noise ? "" : " without noise");
  }
};

// Pages of one file differ: `page` is to be added to the seed.
using AddNoise = std::function<void(const ConstImageView& in, const ImageView& out, std::uint64_t page)>;

// `reach`: rows above and below its output that `add` looks at.
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
  CameraOptions camera;
  std::vector<std::string> kinds;  // that were asked for
  io::SaveOptions save;
  bool quality_given = false;
  io::OpenOptions open;
  std::optional<double> range;
  std::optional<PixelType> depth;
  bool quiet = false;

  CLI::App app("Add noise of a known kind: the same seed gives the same noise everywhere.", "ungrain noise");
  app.add_option("file", input_name, "image, or - (the standard input)")->type_name("");
  app.add_option("-o,--output", output_name, "file to write, or - (the standard output); it has no default")
      ->type_name("PATH");
  add_format_option(app, format);
  const std::string kinds_group = "Kinds of noise (one of them)";
  for (const NoiseInfo& info : noise_models()) {
    app.add_option_function<std::string>(
           "--" + info.amount.name,
           [&](const std::string& text) {
             noise.kind = info.kind;
             noise.amount = parse_amount(info.amount, text);
             kinds.emplace_back(name(info.kind));
           },
           option_help(info.amount))
        ->type_name("AMOUNT")
        ->group(kinds_group);
  }
  app.add_flag_callback(
         "--camera", [&] { kinds.emplace_back(camera_kind); },
         "that of photographs: the picture is the scene that a simulated camera takes; into a .dng file: its "
         "raw data")
      ->group(kinds_group);
  camera.add_to(app);
  app.add_option_function<std::string>(
         "--seed", [&](const std::string& text) { noise.seed = parse_seed(text); },
         "whole number (default 0)")
      ->type_name("N");
  app.add_option_function<std::string>(
         "--range", [&](const std::string& text) { range = parse_range(text); },
         "white level of the file (default: 255 for 8 bits, 65535 for 16, 1 for float)")
      ->type_name("WHITE");
  app.add_option_function<std::string>(
         "--depth", [&](const std::string& text) { depth = parse_pixel_type(text); },
         "samples of the output: u8, u16, f16 or f32 (default: the input's); float is not clipped, but by "
         "--camera")
      ->type_name("TYPE");
  add_open_options(app, open);
  add_save_options(app, save, quality_given);
  app.add_flag("-q,--quiet", quiet, "print errors only");
  if (!parse(app, arguments)) return exit_done;
  if (input_name.empty()) throw UsageError("noise takes a file, got none");
  if (output_name.empty()) throw UsageError("noise takes --output, the file to write");
  check_one_kind(kinds);
  const bool photograph = kinds.front() == camera_kind;
  if (!photograph && !camera.given.empty())
    throw UsageError(fmt::format("{} is an option of --camera", camera.given.front()));
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
    write_mosaic(*input, in.spec, camera.of_page(noise.seed), result.path());
    result.deliver();
    if (!quiet) {
      print("{}  camera ISO {:g} mosaic{}\n",
            io::one_line(shown_input(input_name) + " -> " + shown_output(output_name)), camera.settings.iso,
            camera.settings.noise ? "" : " without noise");
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
    if (photograph) return add_camera_noise(from, to, camera.of_page(noise.seed + page));
    add_noise(from, to, {noise.kind, noise.amount, noise.seed + page});
  };
  write_noisy_pages(*input, in, *output, out.spec, photograph ? camera_reach() : 0, add);
  input->check_unchanged();
  output->commit();
  result.deliver();
  if (!quiet) {
    print("{}  {} {}\n", io::one_line(shown_input(input_name) + " -> " + shown_output(output_name)),
          kinds.front(), photograph ? camera.text() : fmt::format("{:g}", given));
  }
  return exit_done;
}

}  // namespace ungrain::cli
