// ungrain video: the frames of a clip through one method, each with its neighbours in time.
#include "ungrain/video.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "arguments.h"
#include "commands.h"
#include "denoise_clip.h"
#include "files.h"
#include "io/failure.h"
#include "json_text.h"
#include "output.h"
#include "progress.h"
#include "signals.h"
#include "streams.h"
#include "ungrain/error.h"
#include "ungrain/memory.h"
#include "video_request.h"

namespace ungrain::cli {
namespace {

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
  explicit VideoRun(VideoRequest& request) : request_(request) {}

  int run() {
    request_.settings().options.cancel = interrupted();
    std::unique_ptr<FrameBar> bar;
    outcome_ = denoise_clip(request_, [&](const ClipProgress& progress) {
      if (!bar) {
        bar = std::make_unique<FrameBar>(
            !settings().quiet, io::one_line(fs::path(shown_in()).filename().string()), progress.expected);
      }
      if (progress.scene != nullptr) bar->update(progress.done, sigma_text(*progress.scene, progress.spec));
    });
    bar.reset();
    return conclude();
  }

 private:
  const VideoSettings& settings() const { return request_.settings(); }
  const ImageSpec& spec() const { return outcome_.info.spec; }
  std::string shown_in() const { return shown_input(settings().input); }
  std::string shown_out() const { return shown_output(outcome_.output); }

  int conclude() {
    if (interrupted().cancelled()) {
      const std::string message =
          fmt::format("interrupted: {} frames done{}", outcome_.written,
                      outcome_.written > 0 && outcome_.kept ? fmt::format(", {} holds them", shown_out())
                                                            : ", nothing written");
      tell("interrupted", message);
      return exit_failed;
    }
    if (outcome_.problem) {
      try {
        std::rethrow_exception(outcome_.problem);
      } catch (const Error& error) {
        const bool usage = error.code() == ErrorCode::invalid_argument;
        if (usage && outcome_.written == 0) throw;
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
    if (outcome_.written == 0 || !outcome_.kept) return "";
    return fmt::format("; {} frames are in {}", outcome_.written, shown_out());
  }

  void tell(const char* status, const std::string& message) const {
    if (!message.empty()) print_error(message);
    if (settings().json) {
      put(json_text(to_json(status, message)) + "\n");
    } else if (!settings().quiet && message.empty()) {
      put(line_text());
    }
    if (message.empty() && !outcome_.complaints.empty() && !settings().quiet)
      print_error(fmt::format("{}: ffmpeg: {}", shown_in(), outcome_.complaints));
    flush_output();
  }

  std::string scenes_text() const {
    constexpr std::size_t most = 4;
    std::string text = fmt::format("{} scene{}", outcome_.report.scenes.size(),
                                   outcome_.report.scenes.size() == 1 ? "" : "s");
    for (std::size_t i = 0; i < std::min(most, outcome_.report.scenes.size()); ++i) {
      const VideoScene& scene = outcome_.report.scenes[i];
      const std::string sigma = sigma_text(scene, spec());
      if (outcome_.report.scenes.size() > 1)
        text += fmt::format("{} {}-{}", i == 0 ? ":" : ",", scene.first, scene.first + scene.frames - 1);
      if (!sigma.empty()) text += fmt::format(" sigma {}", sigma);
    }
    return text + (outcome_.report.scenes.size() > most ? " ..." : "");
  }

  std::string line_text() const {
    std::string line = fmt::format(
        "{} -> {}  {}x{} {} {}  {} frames  {}  {}  {} x{}  {:.2f} s  {:.1f} frames/s  ring of {} frames, {}",
        shown_in(), shown_out(), spec().width, spec().height, bits_text(), chroma_text(spec()),
        outcome_.written, scenes_text(), request_.method().words().method,
        name(outcome_.report.report.device), outcome_.report.report.threads, outcome_.seconds,
        outcome_.written / outcome_.seconds, outcome_.report.ring_frames,
        bytes_text(outcome_.report.ring_bytes));
    if (!outcome_.note.empty()) line += fmt::format("  ({})", outcome_.note);
    return io::one_line(line) + "\n";
  }

  std::string bits_text() const {
    return is_float(spec().type) ? std::string(name(spec().type))
                                 : fmt::format("{} bits", io::bits_of(spec()));
  }

  nlohmann::json to_json(const char* status, const std::string& message) const {
    nlohmann::json json{{"input", settings().input},
                        {"output", outcome_.output},
                        {"status", status},
                        {"format", outcome_.info.format},
                        {"width", spec().width},
                        {"height", spec().height},
                        {"channels", spec().channels},
                        {"type", name(spec().type)},
                        {"colour", name(spec().colour)},
                        {"range", spec().white()},
                        {"frames", outcome_.written},
                        {"method", request_.method().words().method},
                        {"seconds", outcome_.seconds}};
    if (spec().colour == Colour::ycbcr) json["chroma"] = {spec().chroma.x, spec().chroma.y};
    if (outcome_.info.rate.known())
      json["rate"] = fmt::format("{}/{}", outcome_.info.rate.num, outcome_.info.rate.den);
    if (!message.empty()) json["message"] = message;
    if (!outcome_.note.empty()) json["note"] = outcome_.note;
    if (outcome_.report.frames == 0) return json;
    json["device"] = name(outcome_.report.report.device);
    json["threads"] = outcome_.report.report.threads;
    json["bands"] = outcome_.report.report.bands;
    json["filter_ms"] = outcome_.report.report.ms;
    json["buffer_bytes"] = outcome_.report.report.buffer_bytes;
    json["ring_frames"] = outcome_.report.ring_frames;
    json["ring_bytes"] = outcome_.report.ring_bytes;
    if (!outcome_.report.report.choice.empty()) json["device_choice"] = outcome_.report.report.choice;
    for (const StageTime& stage : outcome_.report.report.stages) json["stages_ms"][stage.name] = stage.ms;
    for (const VideoScene& scene : outcome_.report.scenes) json["scenes"].push_back(to_json(scene));
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

  VideoRequest& request_;
  ClipOutcome outcome_;
};

}  // namespace

int video_command(const Arguments& arguments) {
  VideoRequest request;
  if (!request.read(arguments)) return exit_done;
  const VideoSettings& settings = request.settings();
  if (settings.input.empty()) throw UsageError("name a clip");
  check_streams({settings.input}, settings.output);
  check_device(settings.options.device);
  return VideoRun(request).run();
}

}  // namespace ungrain::cli
