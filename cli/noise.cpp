// ungrain noise: adds noise of a known kind to a file.
#include "ungrain/noise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "arguments.h"
#include "commands.h"
#include "io/failure.h"
#include "io/image_file.h"
#include "output.h"
#include "row_bands.h"
#include "streams.h"
#include "ungrain/error.h"

namespace ungrain::cli {
namespace {

void check_one_kind(const std::vector<std::string>& kinds) {
  if (kinds.size() == 1) return;
  std::vector<std::string> known;
  for (const NoiseInfo& info : noise_models()) known.push_back("--" + info.amount.name);
  throw UsageError(fmt::format("noise takes one of {}; got {}", fmt::join(known, ", "),
                               kinds.empty() ? "none" : fmt::format("{}", fmt::join(kinds, " and "))));
}

}  // namespace

int noise_command(const Arguments& arguments) {
  std::string input_name;
  std::string output_name;
  std::string format;
  Noise noise;
  std::vector<std::string> kinds;  // that were asked for
  io::OpenOptions open;
  std::optional<double> range;
  std::optional<PixelType> depth;
  bool quiet = false;

  CLI::App app("Add noise of a known kind: the same seed gives the same noise everywhere.", "ungrain noise");
  app.add_option("file", input_name, "image, or - (the standard input)")->type_name("");
  app.add_option("-o,--output", output_name, "file to write, or - (the standard output); it has no default")
      ->type_name("PATH");
  add_format_option(app, format);
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
        ->group("Kinds of noise (one of them)");
  }
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
         "samples of the output: u8, u16, f16 or f32 (default: the input's); float is not clipped")
      ->type_name("TYPE");
  add_open_options(app, open);
  app.add_flag("-q,--quiet", quiet, "print errors only");
  if (!parse(app, arguments)) return exit_done;
  if (input_name.empty()) throw UsageError("noise takes a file, got none");
  if (output_name.empty()) throw UsageError("noise takes --output, the file to write");
  check_one_kind(kinds);
  check_streams({input_name}, output_name, format);

  const std::unique_ptr<io::InputFile> input = open_input(input_name, open);
  io::FileInfo in = input->info();
  if (range) in.spec.range = *range;
  const ResultFile result(output_name, in.format, format);
  io::FileInfo out = in;
  out.spec.type = depth.value_or(io::writable_type(result.path(), in.spec));
  if (out.spec.type != in.spec.type) out.spec.range = 0;
  const double given = noise.amount;
  if (noise.kind == NoiseKind::gaussian) noise.amount *= in.spec.white() / 255;

  const std::unique_ptr<io::OutputFile> output = io::OutputFile::create(result.path(), out, input.get());
  for (int page = 0; page < in.pages; ++page) {
    if (page > 0) {
      input->select_page(page);
      output->next_page();
    }
    RowBand band(in.spec);
    RowBand noisy(out.spec);
    while (band.read_next(*input)) {
      const ImageView to = noisy.same_rows(band);
      add_noise(band.view(), to, noise);
      output->write_rows(band.first(), to);
    }
    ++noise.seed;  // pages of one file differ
  }
  input->check_unchanged();
  output->commit();
  result.deliver();
  if (!quiet) {
    print("{}  {} {:g}\n", io::one_line(shown_input(input_name) + " -> " + shown_output(output_name)),
          kinds.front(), given);
  }
  return exit_done;
}

}  // namespace ungrain::cli
