#include "denoise_request.h"

#include <algorithm>

#include <fmt/format.h>

#include "arguments.h"
#include "option_values.h"
#include "preset_file.h"
#include "volume_file.h"
#include "zarr_volume.h"

namespace ungrain::cli {
namespace {

constexpr int max_jobs = 64;

void add_options(OptionTable& table, Settings& settings) {
  table.add("files...",
            settings.volume
                ? "volumes, folders of volumes or with the slices of a DICOM series, patterns, or - "
                  "(the standard input)"
                : "images, folders of images, patterns, or - (the standard input)",
            settings.inputs);
  table.add("-o,--output PATH",
            "file or folder to write to, or - (default: NAME.ungrain.EXT beside each input)",
            settings.output);
  add_format_option(table, settings.format);
  add_device_option(
      table,
      "auto, cpu, cuda, cuda:N, cuda:all (files and bands spread over the GPUs) or reference (default "
      "auto: the fastest that is there)",
      settings.options.device);
  table.add("-j,--jobs N",
            fmt::format("files worked on at once, 1 to {} (default: one for each thread, up to {})", max_jobs,
                        most_jobs_by_default),
            [&](const std::string& text) {
              settings.jobs = static_cast<int>(parse_whole("--jobs", text, max_jobs, 1));
            });
  table.add("--threads N", fmt::format("0 to {} (default 0: one for each processor)", max_threads),
            [&](const std::string& text) {
              settings.options.threads = static_cast<int>(parse_whole("--threads", text, max_threads));
            });
  table.add("--memory SIZE", "for working buffers, such as 512M or 2G (default: half of what is free)",
            [&](const std::string& text) { settings.options.memory = parse_bytes("--memory", text); });
  add_range_option(
      table,
      "white level of the files (a number above 0; default: 255 for 8 bits, 65535 for 16; floats: 1, "
      "255, 4095, 65535 ..., by their values)",
      settings.range);
  add_depth_option(table, "samples of the output: u8, u16, f16 or f32 (default: the input's)",
                   settings.depth);
  table.add("--nonfinite RULE",
            "NaN and infinity: fill, keep or error (default fill: from the pixels around)",
            settings.options.nonfinite,
            {{"fill", NonFinite::fill}, {"keep", NonFinite::keep}, {"error", NonFinite::error}});
  add_open_options(table, settings.open);
  table
      .add("--channels KIND", "what the channels are: {} (default auto: as the file says)",
           [&](const std::string& text) {
             settings.channels = text;
             if (text != "auto") settings.open.alpha = text == "gray-alpha" || text == "rgba";
           })
      .only({"auto", "gray", "gray-alpha", "rgb", "rgba", "multi"});
  add_save_options(table, settings.save, settings.quality_given);
  table.add("--no-clobber", "leave outputs that are there already as they are", settings.no_clobber);
  table.add("--resume", "skip outputs that were made with the same settings from the same input",
            settings.resume);
  table.add("--json", "one JSON object a file on the standard output", settings.json);
  table.add("-q,--quiet", "print errors only", settings.quiet);
}

void add_volume_options(OptionTable& table, Settings& settings) {
  add_series_option(table, settings.open);
  table.add("--slices N", "slices of one volume, 1 to 1000000 (default: as the file says, or all of them)",
            [&](const std::string& text) {
              settings.slices = static_cast<int>(parse_whole("--slices", text, 1'000'000, 1));
            });
  table.add("--spacing X,Y,Z", "sizes of a voxel, numbers above 0 (default: as the file says, or 1,1,1)",
            [&](const std::string& text) { settings.spacing = parse_spacing("--spacing", text); });
}

}  // namespace

DenoiseRequest::DenoiseRequest(MethodOptions::For what)
    : what_(what),
      method_(what == MethodOptions::For::volumes ? read_volume : io::read_image,
              {.method = std::string(what == MethodOptions::For::volumes ? default_volume_method
                                                                         : default_method)}) {
  settings_.volume = what == MethodOptions::For::volumes;
}

void DenoiseRequest::add_to(OptionTable& table) {
  add_options(table, settings_);
  add_preset_file_option(table);
  if (settings_.volume) {
    add_volume_options(table, settings_);
  } else {
    table.add("--volume", "take the pages of each file for slices of a volume, as ungrain volume does",
              settings_.volume);
  }
  settings_.noise.add_to(table);
  method_.add_to(table, what_);
}

bool DenoiseRequest::read(const Arguments& words) {
  OptionTable table(settings_.volume ? "Remove noise from volumes: MRI, CT and microscopy stacks."
                                     : "Remove noise from images and keep their edges.",
                    settings_.volume ? "ungrain volume" : "ungrain");
  add_to(table);
  if (!parse(table, with_preset_files(words, table))) return false;
  if (settings_.volume && std::any_of(settings_.inputs.begin(), settings_.inputs.end(), is_zarr))
    denoise_zarr_volume(table, settings_);
  if (settings_.volume && !settings_.open.axis) settings_.open.axis = 0;
  if (const std::string option = settings_.noise.instead_of_sigma();
      !option.empty() && !method_.given("sigma").empty()) {
    throw UsageError(option + " and --sigma exclude each other");
  }
  if (settings_.noise.takes_sigma() && !method_.given("sigma").empty())
    settings_.noise.take_sigma(method_.take("sigma"));
  method_.read();  // a wrong value ends the run before the first file
  settings_.noise.check(table);
  return true;
}

}  // namespace ungrain::cli
