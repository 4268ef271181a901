#include "denoise_clip.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <vector>

#include <fmt/format.h>

#include "clip_slices.h"
#include "io/failure.h"
#include "io/raw_frames.h"
#include "io/y4m.h"
#include "opened_clip.h"
#include "streams.h"
#include "ungrain/error.h"

namespace ungrain::cli {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), std::istream_iterator<std::string>()};
}

class ClipRun {
 public:
  ClipRun(const VideoRequest& request, const std::function<void(const ClipProgress&)>& progress,
          WhenCancelled when_cancelled)
      : request_(request),
        settings_(request.settings()),
        progress_(progress),
        when_cancelled_(when_cancelled),
        cancel_(request.settings().options.cancel) {
    stop_ = [this] { return stopped_ || cancel_.cancelled(); };
  }

  ClipOutcome run() {
    clip_ = open_clip(settings_, stop_);
    outcome_.info = clip_.info;
    if (clip_.stream) outcome_.note = clip_.stream->note;
    outcome_.output = clip_output(settings_);
    create_output();
    filter();
    if (clip_.video != nullptr) outcome_.complaints = clip_.video->complaints();
    return std::move(outcome_);
  }

 private:
  const ImageSpec& spec() const { return clip_.reader->info().spec; }
  std::string shown_in() const { return shown_input(settings_.input); }

  ClipKind output_kind() const {
    const fs::path output = outcome_.output;
    if (output == stream_name) return clip_.kind == ClipKind::raw ? ClipKind::raw : ClipKind::y4m;
    if (io::FramePattern::is_pattern(output)) return ClipKind::frame_files;
    if (has_y4m_name(output)) return ClipKind::y4m;
    if (has_raw_name(output)) return ClipKind::raw;
    // A named pipe or a device gets what the input is.
    std::error_code error;
    if (fs::exists(output, error) && !fs::is_regular_file(output, error) && !fs::is_directory(output, error))
      return clip_.kind == ClipKind::raw ? ClipKind::raw : ClipKind::y4m;
    return ClipKind::video;
  }

  std::unique_ptr<io::ByteSink> create_bytes() const {
    return outcome_.output == stream_name ? io::standard_output_sink(stop_)
                                          : io::create_sink(outcome_.output, clip_.info.access, stop_);
  }

  void create_output() {
    const ClipKind kind = output_kind();
    if (!settings_.encoder.empty() && kind != ClipKind::video)
      throw UsageError("--encoder is for video files that ffmpeg writes");
    switch (kind) {
      case ClipKind::y4m:
        if (!io::fits_y4m(spec())) {
          io::fail(shown_output(outcome_.output),
                   fmt::format("Y4M holds gray and YCbCr frames of 8 to 16 bits, not {} {}",
                               name(spec().type), name(spec().colour)));
        }
        writer_ = io::create_y4m(create_bytes(), clip_.info);
        break;
      case ClipKind::raw:
        writer_ = io::create_raw_frames(create_bytes(), spec());
        break;
      case ClipKind::frame_files:
        writer_ =
            io::create_frame_files(io::FramePattern(outcome_.output), clip_.info,
                                   clip_.pattern ? clip_.first_number : 1, clip_.pattern, settings_.save);
        break;
      case ClipKind::video:
        writer_ = io::create_video({.file = outcome_.output,
                                    .encoder = words_of(settings_.encoder),
                                    .reader = clip_.video,
                                    .stream = clip_.stream ? &*clip_.stream : nullptr,
                                    .from_start = settings_.start == 0,
                                    .to_end = !settings_.frames},
                                   clip_.info, stop_);
        break;
    }
  }

  void filter() {
    const auto begin = std::chrono::steady_clock::now();
    VideoOptions options;
    options.run = settings_.options;
    options.noise.threads = settings_.options.threads;
    options.find_cuts = !settings_.no_cuts;
    const std::int64_t expected = frames_expected();
    if (progress_) progress_({.expected = expected, .spec = spec()});
    options.progress = [&](int done, const VideoScene& scene) {
      if (progress_) progress_({.done = done, .expected = expected, .scene = &scene, .spec = spec()});
    };
    ClipReader frames(*clip_.reader, settings_.start, settings_.frames, stopped_);
    ClipWriter results(*writer_, frames, writer_->spec());
    try {
      if (frames.has(0))
        outcome_.report =
            denoise_video(request_.params(spec()), spec(), frames, results, writer_->spec(), options);
    } catch (...) {
      outcome_.problem = std::current_exception();
    }
    // What ended the clip is told first: the frames before it are filtered and written.
    if (const std::exception_ptr reading = frames.problem()) outcome_.problem = reading;
    outcome_.written = results.frames_written();
    if (outcome_.written == 0 && !outcome_.problem && !cancel_.cancelled()) outcome_.problem = nothing_read();
    finish_output_file();
    outcome_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  std::int64_t frames_expected() const {
    const std::int64_t there =
        clip_.info.frames < 0 ? 0 : std::max<std::int64_t>(0, clip_.info.frames - settings_.start);
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
    const bool cancelled = cancel_.cancelled();
    const bool nothing = outcome_.written == 0 && (outcome_.problem || cancelled);
    if (nothing || (cancelled && when_cancelled_ == WhenCancelled::keep_nothing)) {
      writer_.reset();
      outcome_.kept = false;
      return;
    }
    try {
      writer_->finish();
    } catch (...) {
      if (!outcome_.problem) outcome_.problem = std::current_exception();
      outcome_.kept = false;
    }
  }

  const VideoRequest& request_;
  const VideoSettings& settings_;
  const std::function<void(const ClipProgress&)>& progress_;
  WhenCancelled when_cancelled_;
  CancelToken cancel_;
  std::atomic<bool> stopped_ = false;
  io::StopWaiting stop_;
  OpenedClip clip_;
  std::unique_ptr<io::FrameWriter> writer_;
  ClipOutcome outcome_;
};

}  // namespace

std::string clip_output(const VideoSettings& settings) {
  if (!settings.output.empty()) return settings.output;
  const fs::path input = settings.input;
  const bool is_pattern = io::FramePattern::is_pattern(input) && !fs::exists(input);
  if (is_pattern || input == stream_name)
    throw UsageError("name the output: -o, for a clip that is no single file");
  return (input.parent_path() /
          fmt::format("{}.ungrain{}", input.stem().string(), input.extension().string()))
      .string();
}

ClipOutcome denoise_clip(const VideoRequest& request,
                         const std::function<void(const ClipProgress& progress)>& progress,
                         WhenCancelled when_cancelled) {
  return ClipRun(request, progress, when_cancelled).run();
}

}  // namespace ungrain::cli
