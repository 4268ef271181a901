// ungrain video: the frames of a clip through one method, each with its neighbours in time.
#include "ungrain/video.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "arguments.h"
#include "clip_slices.h"
#include "commands.h"
#include "files.h"
#include "io/failure.h"
#include "io/ffmpeg.h"
#include "io/frame_files.h"
#include "io/raw_frames.h"
#include "io/y4m.h"
#include "json_text.h"
#include "noise_options.h"
#include "output.h"
#include "progress.h"
#include "signals.h"
#include "streams.h"
#include "ungrain/error.h"
#include "ungrain/memory.h"

namespace ungrain::cli {
namespace {

struct VideoSettings {
  std::string input;
  std::string output;
  Options options;
  NoiseOptions noise;
  io::SaveOptions save;
  bool quality_given = false;
  std::int64_t start = 0;
  std::optional<std::int64_t> frames;
  std::string size;
  std::string format;  // of raw frames
  io::Ratio rate;
  std::string encoder;
  bool no_cuts = false;
  bool json = false;
  bool quiet = false;
};

// What a name stands for.
enum class ClipKind : std::uint8_t { y4m, raw, frame_files, video };

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

std::string lower_extension(const fs::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension;
}

bool has_raw_name(const fs::path& path) {
  const std::string extension = lower_extension(path);
  return extension == ".yuv" || extension == ".raw" || extension == ".rgb" || extension == ".gray";
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), std::istream_iterator<std::string>()};
}

std::string chroma_text(const ImageSpec& spec) {
  if (spec.colour != Colour::ycbcr) return std::string(name(spec.colour));
  const char* kind = spec.chroma == Subsampling{2, 2}   ? "4:2:0"
                     : spec.chroma == Subsampling{2, 1} ? "4:2:2"
                     : spec.chroma == Subsampling{4, 1} ? "4:1:1"
                                                        : "4:4:4";
  return spec.alpha ? fmt::format("{} with alpha", kind) : kind;
}

// "9.1 3.2 3.4" of 255, for the channels of a frame; empty: not measured.
std::string sigma_text(const VideoScene& scene, const ImageSpec& spec) {
  if (!scene.noise) return "";
  std::vector<std::string> channels;
  for (const double deviation : scene.noise->deviations)
    channels.push_back(fmt::format("{:.1f}", deviation * 255 / spec.white()));
  return fmt::format("{}", fmt::join(channels, " "));
}

class VideoRun {
 public:
  VideoRun(VideoSettings settings, const MethodOptions& method)
      : settings_(std::move(settings)), method_(method) {
    stop_ = [this] { return stopped_ || interrupted().cancelled(); };
  }

  int run() {
    open_input();
    name_output();
    create_output();
    filter();
    return conclude();
  }

 private:
  const ImageSpec& spec() const { return reader_->info().spec; }
  std::string shown_in() const { return shown_input(settings_.input); }
  std::string shown_out() const { return shown_output(settings_.output); }

  // ---- The input

  void open_input() {
    const fs::path input = settings_.input;
    if (!settings_.format.empty()) {
      in_kind_ = ClipKind::raw;
      open_raw();
    } else if (has_raw_name(input)) {
      throw UsageError(fmt::format("{}: raw frames need --size WxH and --format NAME", settings_.input));
    } else if (io::FramePattern::is_pattern(input) && !fs::exists(input)) {
      in_kind_ = ClipKind::frame_files;
      pattern_.emplace(input);
      first_number_ = io::first_number(*pattern_);
      reader_ = io::open_frame_files(*pattern_);
    } else if (is_y4m(input)) {
      in_kind_ = ClipKind::y4m;
      reader_ = io::open_y4m(std::move(bytes_));
    } else {
      in_kind_ = ClipKind::video;
      stream_ = io::probe_video(input, stop_);
      auto video = io::VideoReader::open(*stream_, stop_);
      video_ = video.get();
      reader_ = std::move(video);
    }
    info_ = reader_->info();
    if (settings_.rate.known()) {
      if (info_.rate.known()) throw UsageError(fmt::format("--rate: {} tells its own rate", shown_in()));
      info_.rate = settings_.rate;
    }
  }

  std::unique_ptr<io::ByteSource> open_bytes() const {
    return settings_.input == stream_name ? io::ByteSource::standard_input(stop_)
                                          : io::ByteSource::open(settings_.input, stop_);
  }

  void open_raw() {
    const Size size = parse_size(settings_.size);
    const ImageSpec spec =
        naming_option("format", [&] { return io::raw_spec(settings_.format, size.width, size.height); });
    reader_ = io::open_raw_frames(open_bytes(), spec);
  }

  // By its content, or because ffmpeg could not read it: it reads files. What was opened stays open for Y4M,
  // as a pipe can be opened once.
  bool is_y4m(const fs::path& input) {
    bytes_ = open_bytes();
    const bool is_file = bytes_->size().has_value() && input != stream_name;
    if (!is_file || lower_extension(input) == ".y4m" || bytes_->starts_with(io::y4m_signature)) return true;
    bytes_.reset();
    return false;
  }

  // ---- The output

  void name_output() {
    if (!settings_.output.empty()) return;
    const fs::path input = settings_.input;
    if (in_kind_ == ClipKind::frame_files || input == stream_name)
      throw UsageError("name the output: -o, for a clip that is no single file");
    settings_.output =
        (input.parent_path() / fmt::format("{}.ungrain{}", input.stem().string(), input.extension().string()))
            .string();
  }

  ClipKind output_kind() const {
    const fs::path output = settings_.output;
    if (output == stream_name) return in_kind_ == ClipKind::raw ? ClipKind::raw : ClipKind::y4m;
    if (io::FramePattern::is_pattern(output)) return ClipKind::frame_files;
    if (lower_extension(output) == ".y4m") return ClipKind::y4m;
    if (has_raw_name(output)) return ClipKind::raw;
    // A named pipe or a device gets what the input is.
    std::error_code error;
    if (fs::exists(output, error) && !fs::is_regular_file(output, error) && !fs::is_directory(output, error))
      return in_kind_ == ClipKind::raw ? ClipKind::raw : ClipKind::y4m;
    return ClipKind::video;
  }

  std::unique_ptr<io::ByteSink> create_bytes() const {
    return settings_.output == stream_name ? io::standard_output_sink(stop_)
                                           : io::create_sink(settings_.output, info_.access, stop_);
  }

  void create_output() {
    const ClipKind kind = output_kind();
    if (!settings_.encoder.empty() && kind != ClipKind::video)
      throw UsageError("--encoder is for video files that ffmpeg writes");
    switch (kind) {
      case ClipKind::y4m:
        if (!io::fits_y4m(spec())) {
          io::fail(shown_out(), fmt::format("Y4M holds gray and YCbCr frames of 8 to 16 bits, not {} {}",
                                            name(spec().type), name(spec().colour)));
        }
        writer_ = io::create_y4m(create_bytes(), info_);
        break;
      case ClipKind::raw:
        writer_ = io::create_raw_frames(create_bytes(), spec());
        break;
      case ClipKind::frame_files:
        writer_ = io::create_frame_files(io::FramePattern(settings_.output), info_,
                                         pattern_ ? first_number_ : 1, pattern_, settings_.save);
        break;
      case ClipKind::video:
        writer_ = io::create_video({.file = settings_.output,
                                    .encoder = words_of(settings_.encoder),
                                    .reader = video_,
                                    .stream = stream_ ? &*stream_ : nullptr,
                                    .from_start = settings_.start == 0,
                                    .to_end = !settings_.frames},
                                   info_, stop_);
        break;
    }
  }

  // ---- The work

  MethodParams params() const {
    MethodParams params = method_.for_image(spec());
    params.set_noise(settings_.noise.for_image(spec()));
    // Images are filtered alone unless told otherwise, frames of a clip are not.
    const int radius_t = params.clip_radius_t();
    const bool open = method_.given("radius_t").empty() && method_.words().preset.empty();
    if (radius_t > 0 && open) params.set("radius_t", static_cast<double>(radius_t));
    return params;
  }

  void filter() {
    const auto begin = std::chrono::steady_clock::now();
    VideoOptions options;
    options.run = settings_.options;
    options.run.cancel = interrupted();
    options.noise.threads = settings_.options.threads;
    options.find_cuts = !settings_.no_cuts;
    FrameBar bar(!settings_.quiet, io::one_line(fs::path(shown_in()).filename().string()), frames_expected());
    options.progress = [&](int done, const VideoScene& scene) {
      bar.update(done, sigma_text(scene, spec()));
    };
    ClipReader frames(*reader_, settings_.start, settings_.frames, stopped_);
    ClipWriter results(*writer_, frames, writer_->spec());
    try {
      if (frames.has(0)) report_ = denoise_video(params(), spec(), frames, results, writer_->spec(), options);
    } catch (...) {
      problem_ = std::current_exception();
    }
    // What ended the clip is told first: the frames before it are filtered and written.
    if (const std::exception_ptr reading = frames.problem()) problem_ = reading;
    written_ = results.frames_written();
    if (written_ == 0 && !problem_ && !interrupted().cancelled()) problem_ = nothing_read();
    finish_output_file();
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  std::int64_t frames_expected() const {
    const std::int64_t there =
        info_.frames < 0 ? 0 : std::max<std::int64_t>(0, info_.frames - settings_.start);
    if (!settings_.frames) return there;
    return there > 0 ? std::min(there, *settings_.frames) : *settings_.frames;
  }

  std::exception_ptr nothing_read() const {
    return std::make_exception_ptr(
        Error(ErrorCode::io, settings_.start > 0
                                 ? fmt::format("{}: has no frame {} (--start)", shown_in(), settings_.start)
                                 : fmt::format("{}: has no frames", shown_in())));
  }

  void finish_output_file() {
    if (written_ == 0 && (problem_ || interrupted().cancelled())) {
      writer_.reset();
      return;
    }
    try {
      writer_->finish();
    } catch (...) {
      if (!problem_) problem_ = std::current_exception();
      kept_ = false;
    }
  }

  // ---- What is told

  int conclude() {
    if (interrupted().cancelled()) {
      const std::string message = fmt::format(
          "interrupted: {} frames done{}", written_,
          written_ > 0 && kept_ ? fmt::format(", {} holds them", shown_out()) : ", nothing written");
      tell("interrupted", message);
      return exit_failed;
    }
    if (problem_) {
      try {
        std::rethrow_exception(problem_);
      } catch (const Error& error) {
        const bool usage = error.code() == ErrorCode::invalid_argument;
        if (usage && written_ == 0) throw;
        tell("failed",
             (error.code() == ErrorCode::io ? "" : shown_in() + ": ") + error.what() + stays_text());
      } catch (const std::bad_alloc&) {
        tell("failed", shown_in() + ": out of memory" + stays_text());
      }
      return exit_failed;
    }
    tell("done", "");
    return exit_done;
  }

  std::string stays_text() const {
    if (written_ == 0 || !kept_) return "";
    return fmt::format("; {} frames are in {}", written_, shown_out());
  }

  void tell(const char* status, const std::string& message) const {
    if (!message.empty()) print_error(message);
    if (settings_.json) {
      put(json_text(to_json(status, message)) + "\n");
    } else if (!settings_.quiet && message.empty()) {
      put(line_text());
    }
    if (video_ != nullptr && message.empty() && !video_->complaints().empty() && !settings_.quiet)
      print_error(fmt::format("{}: ffmpeg: {}", shown_in(), video_->complaints()));
    flush_output();
  }

  std::string scenes_text() const {
    constexpr std::size_t most = 4;
    std::string text =
        fmt::format("{} scene{}", report_.scenes.size(), report_.scenes.size() == 1 ? "" : "s");
    for (std::size_t i = 0; i < std::min(most, report_.scenes.size()); ++i) {
      const VideoScene& scene = report_.scenes[i];
      const std::string sigma = sigma_text(scene, spec());
      if (report_.scenes.size() > 1)
        text += fmt::format("{} {}-{}", i == 0 ? ":" : ",", scene.first, scene.first + scene.frames - 1);
      if (!sigma.empty()) text += fmt::format(" sigma {}", sigma);
    }
    return text + (report_.scenes.size() > most ? " ..." : "");
  }

  std::string line_text() const {
    std::string line = fmt::format(
        "{} -> {}  {}x{} {} {}  {} frames  {}  {}  {} x{}  {:.2f} s  {:.1f} frames/s  ring of {} frames, {}",
        shown_in(), shown_out(), spec().width, spec().height, bits_text(), chroma_text(spec()), written_,
        scenes_text(), method_.words().method, name(report_.report.device), report_.report.threads, seconds_,
        written_ / seconds_, report_.ring_frames, bytes_text(report_.ring_bytes));
    if (stream_ && !stream_->note.empty()) line += fmt::format("  ({})", stream_->note);
    return io::one_line(line) + "\n";
  }

  std::string bits_text() const {
    return is_float(spec().type) ? std::string(name(spec().type))
                                 : fmt::format("{} bits", io::bits_of(spec()));
  }

  nlohmann::json to_json(const char* status, const std::string& message) const {
    nlohmann::json json{
        {"input", settings_.input},    {"output", settings_.output}, {"status", status},
        {"format", info_.format},      {"width", spec().width},      {"height", spec().height},
        {"channels", spec().channels}, {"type", name(spec().type)},  {"colour", name(spec().colour)},
        {"range", spec().white()},     {"frames", written_},         {"method", method_.words().method},
        {"seconds", seconds_}};
    if (spec().colour == Colour::ycbcr) json["chroma"] = {spec().chroma.x, spec().chroma.y};
    if (info_.rate.known()) json["rate"] = fmt::format("{}/{}", info_.rate.num, info_.rate.den);
    if (!message.empty()) json["message"] = message;
    if (stream_ && !stream_->note.empty()) json["note"] = stream_->note;
    if (report_.frames == 0) return json;
    json["device"] = name(report_.report.device);
    json["threads"] = report_.report.threads;
    json["bands"] = report_.report.bands;
    json["filter_ms"] = report_.report.ms;
    json["buffer_bytes"] = report_.report.buffer_bytes;
    json["ring_frames"] = report_.ring_frames;
    json["ring_bytes"] = report_.ring_bytes;
    if (!report_.report.choice.empty()) json["device_choice"] = report_.report.choice;
    for (const StageTime& stage : report_.report.stages) json["stages_ms"][stage.name] = stage.ms;
    for (const VideoScene& scene : report_.scenes) json["scenes"].push_back(to_json(scene));
    return json;
  }

  nlohmann::json to_json(const VideoScene& scene) const {
    nlohmann::json json{{"first", scene.first}, {"frames", scene.frames}};
    for (const ParamInfo& info : method_info(scene.params.method()).params)
      json["params"][info.name] = scene.params.get_text(info.name);
    if (scene.noise) {
      for (const double deviation : scene.noise->deviations)
        json["sigma"].push_back(json_number(deviation * 255 / spec().white()));
    }
    return json;
  }

  VideoSettings settings_;
  const MethodOptions& method_;
  std::atomic<bool> stopped_ = false;
  io::StopWaiting stop_;
  ClipKind in_kind_ = ClipKind::y4m;
  std::unique_ptr<io::ByteSource> bytes_;
  std::optional<io::VideoStream> stream_;
  std::optional<io::FramePattern> pattern_;
  std::int64_t first_number_ = 0;
  std::unique_ptr<io::FrameReader> reader_;
  io::VideoReader* video_ = nullptr;
  io::ClipInfo info_;
  std::unique_ptr<io::FrameWriter> writer_;
  VideoReport report_;
  std::exception_ptr problem_;
  int written_ = 0;
  bool kept_ = true;  // what was written has become a file
  double seconds_ = 0;
};

void check(const VideoSettings& settings) {
  if (settings.input.empty()) throw UsageError("name a clip");
  if (!settings.format.empty() && settings.size.empty()) throw UsageError("--format needs --size WxH");
  if (!settings.size.empty() && settings.format.empty())
    throw UsageError("--size needs --format NAME: it is for raw frames");
  if (settings.noise.measures_line())
    throw UsageError("--noise poisson-gaussian needs --gain and --read-noise for a clip");
  check_streams({settings.input}, settings.output);
}

}  // namespace

int video_command(const Arguments& arguments) {
  VideoSettings settings;
  MethodOptions method(io::read_image);
  OptionTable table("Remove noise from a clip, its frames together.", "ungrain video");
  add_options(table, settings);
  settings.noise.add_to(table);
  method.add_to(table, MethodOptions::For::clips);
  if (!parse(table, arguments)) return exit_done;
  if (const std::string option = settings.noise.instead_of_sigma();
      !option.empty() && !method.given("sigma").empty())
    throw UsageError(option + " and --sigma exclude each other");
  if (settings.noise.takes_sigma() && !method.given("sigma").empty())
    settings.noise.take_sigma(method.take("sigma"));
  check(settings);
  method.read();  // a wrong value ends the run before the clip is opened
  settings.noise.check(table);
  check_device(settings.options.device);
  return VideoRun(std::move(settings), method).run();
}

}  // namespace ungrain::cli
