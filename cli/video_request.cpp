#include "video_request.h"

#include <fmt/format.h>

#include "arguments.h"
#include "io/raw_frames.h"
#include "option_values.h"
#include "preset_file.h"

namespace ungrain::cli {
namespace {

constexpr std::int64_t most_frames = 1'000'000'000;

io::Ratio parse_rate(const std::string& text) {
  const std::size_t between = text.find_first_of("/:");
  const auto number = [&](const std::string& part) {
    const std::optional<std::int64_t> value = read_number<std::int64_t>(part);
    constexpr std::int64_t largest = 1'000'000'000;
    if (!value || *value < 1 || *value > largest)
      throw UsageError(fmt::format("--rate takes frames a second such as 25 or 30000/1001, got '{}'", text));
    return *value;
  };
  if (between == std::string::npos) return {number(text), 1};
  return {number(text.substr(0, between)), number(text.substr(between + 1))};
}

void add_options(OptionTable& table, VideoSettings& settings) {
  table
      .add("clip",
           "a .y4m file, - (Y4M on the standard input), frames such as 'f%05d.png', raw frames, or any video "
           "file that ffmpeg reads",
           settings.input)
      .file = true;
  table.add("-o,--output PATH",
            "what to write, told by its name as the clip is; .yuv, .raw and .rgb are raw frames (default: "
            "NAME.ungrain.EXT beside the clip)",
            settings.output);
  table.add("--start N", "the first frame to take, counted from 0 (default 0)", [&](const std::string& text) {
    settings.start = static_cast<std::int64_t>(parse_whole("--start", text, most_frames));
  });
  table.add("--frames N", "how many frames to take (default: all)", [&](const std::string& text) {
    settings.frames = static_cast<std::int64_t>(parse_whole("--frames", text, most_frames, 1));
  });
  table.add("--size WxH", "of raw frames (default: none)", settings.size);
  table
      .add("--format NAME", "of raw frames, by ffmpeg's name: gray, yuv420p10le, rgb24 ... (default: none)",
           settings.format)
      .choices = io::raw_formats();
  table.add("--rate N",
            "frames a second of raw frames and frame files, such as 24 or 30000/1001 (default 25)",
            [&](const std::string& text) { settings.rate = parse_rate(text); });
  table.add(
      "--encoder OPTIONS",
      "ffmpeg's options for the video it writes, such as '-c:v libx265 -crf 18' (default: H.264 at -crf 16 "
      "where the file holds it, lossless FFV1 for more than 10 bits in .mkv)",
      settings.encoder);
  table.add("--no-cuts", "take the whole clip for one scene", settings.no_cuts);
  add_device_option(table, "auto, cpu, cuda, cuda:N or reference (default auto: the fastest that is there)",
                    settings.options.device);
  table.add("--threads N", fmt::format("0 to {} (default 0: one for each processor)", max_threads),
            [&](const std::string& text) {
              settings.options.threads = static_cast<int>(parse_whole("--threads", text, max_threads));
            });
  table.add("--memory SIZE", "for working buffers, such as 512M or 2G (default: half of what is free)",
            [&](const std::string& text) { settings.options.memory = parse_bytes("--memory", text); });
  add_save_options(table, settings.save, settings.quality_given);
  table.add("--json", "one JSON object on the standard output", settings.json);
  table.add("-q,--quiet", "print errors only", settings.quiet);
}

}  // namespace

VideoRequest::VideoRequest() : method_(io::read_image) {}

void VideoRequest::add_to(OptionTable& table) {
  add_options(table, settings_);
  add_preset_file_option(table);
  settings_.noise.add_to(table);
  method_.add_to(table, MethodOptions::For::clips);
}

bool VideoRequest::read(const Arguments& words) {
  OptionTable table("Remove noise from a clip, its frames together.", "ungrain video");
  add_to(table);
  if (!parse(table, with_preset_files(words, table))) return false;
  if (const std::string option = settings_.noise.instead_of_sigma();
      !option.empty() && !method_.given("sigma").empty())
    throw UsageError(option + " and --sigma exclude each other");
  if (settings_.noise.takes_sigma() && !method_.given("sigma").empty())
    settings_.noise.take_sigma(method_.take("sigma"));
  if (!settings_.format.empty() && settings_.size.empty()) throw UsageError("--format needs --size WxH");
  if (!settings_.size.empty() && settings_.format.empty())
    throw UsageError("--size needs --format NAME: it is for raw frames");
  if (settings_.noise.measures_line())
    throw UsageError("--noise poisson-gaussian needs --gain and --read-noise for a clip");
  method_.read();  // a wrong value ends the run before the clip is opened
  settings_.noise.check(table);
  return true;
}

MethodParams VideoRequest::params(const ImageSpec& spec) const {
  MethodParams params = method_.for_image(spec);
  params.set_noise(settings_.noise.for_image(spec));
  // Images are filtered alone unless told otherwise, frames of a clip are not.
  const int radius_t = params.clip_radius_t();
  const bool open = method_.given("radius_t").empty() && method_.words().preset.empty();
  if (radius_t > 0 && open) params.set("radius_t", static_cast<double>(radius_t));
  return params;
}

}  // namespace ungrain::cli
