#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "ungrain/error.h"
#include "ungrain/video.h"
#include "video/clip_frames.h"

namespace ungrain {
namespace {

// ---- the noise of a scene

constexpr int looked_through = 16;  // frames
constexpr int from_one_to_the_next = 2;
constexpr std::size_t most_bytes = std::size_t{1} << 29;  // of them

std::size_t frame_bytes(const ImageSpec& spec) {
  return static_cast<std::size_t>(spec.width) * static_cast<std::size_t>(spec.height) *
         static_cast<std::size_t>(spec.channels) * static_cast<std::size_t>(bytes_per_sample(spec.type));
}

int frames_looked_through(const ImageSpec& spec) {
  return static_cast<int>(std::clamp<std::size_t>(most_bytes / frame_bytes(spec), 1, looked_through));
}

double deviation_of(const Resolved& found) {
  if (!found.noise) return 0;
  double squares = 0;
  for (const double deviation : found.noise->deviations) squares += deviation * deviation;
  return std::sqrt(squares);
}

Resolved resolve_scene(const MethodParams& params, const ImageSpec& spec, SceneFrames& frames,
                       const NoiseModelOptions& options) {
  if (!params.needs_image()) return {resolve_derived(params, spec), std::nullopt};
  const std::vector<const Image*> first = frames.first_frames(frames_looked_through(spec));
  std::vector<ConstImageView> views;
  for (const int frame : frames_to_measure(spec, static_cast<int>(first.size())))
    views.push_back(first[static_cast<std::size_t>(frame)]->view());
  return resolve_frames(params, spec, views, options);
}

// The one with the median deviation.
Resolved middle_of(std::vector<Resolved> found) {
  if (found.empty()) throw Error(ErrorCode::invalid_argument, "there is no frame to measure the noise on");
  const auto median = found.begin() + static_cast<std::ptrdiff_t>((found.size() - 1) / 2);
  std::nth_element(found.begin(), median, found.end(),
                   [](const Resolved& a, const Resolved& b) { return deviation_of(a) < deviation_of(b); });
  return std::move(*median);
}

// ---- the results

class SceneWriter : public SliceWriter {
 public:
  SceneWriter(SliceWriter& out, const ImageSpec& spec, const VideoOptions& options, VideoReport& report)
      : out_(out), height_(spec.height), progress_(options.progress), report_(report) {}

  void write_rows(int slice, int first, const ConstImageView& rows) override {
    VideoScene& scene = report_.scenes.back();
    out_.write_rows(scene.first + slice, first, rows);
    if (first + rows.spec.height < height_) return;
    scene.frames = slice + 1;
    report_.frames = scene.first + scene.frames;
    if (progress_) progress_(report_.frames, scene);
  }

 private:
  SliceWriter& out_;
  int height_;
  const std::function<void(int, const VideoScene&)>& progress_;
  VideoReport& report_;
};

void add(Report& sum, Report part) {
  part.bands += sum.bands;
  part.ms += sum.ms;
  part.nonfinite_pixels += sum.nonfinite_pixels;
  part.buffer_bytes = std::max(part.buffer_bytes, sum.buffer_bytes);
  for (StageTime& stage : sum.stages) {
    const auto same = std::find_if(part.stages.begin(), part.stages.end(),
                                   [&](const StageTime& other) { return other.name == stage.name; });
    if (same != part.stages.end()) {
      same->ms += stage.ms;
    } else {
      part.stages.push_back(std::move(stage));
    }
  }
  sum = std::move(part);
}

}  // namespace

void check_for_clip(const MethodParams& params, const Reach& reach) {
  if (reach.slices() == 1) return;
  for (const ParamInfo& info : method_info(params.method()).params) {
    if (info.name != "border" || params.get_text("border") != "wrap") continue;
    throw Error(ErrorCode::unsupported,
                std::string(params.method()) + ": border wrap cannot be used along a clip");
  }
}

Resolved resolve_frames(const MethodParams& params, const ImageSpec& spec,
                        std::span<const ConstImageView> frames, const NoiseModelOptions& options) {
  if (!params.needs_image()) return {resolve_derived(params, spec), std::nullopt};
  std::vector<Resolved> found;
  for (const ConstImageView& frame : frames) found.push_back(resolve_with_noise(params, frame, options));
  return middle_of(std::move(found));
}

Resolved resolve_frames(const MethodParams& params, const ImageSpec& spec, std::span<MeasuredNoise> frames) {
  if (!params.needs_image()) return {resolve_derived(params, spec), std::nullopt};
  std::vector<Resolved> found;
  for (MeasuredNoise& frame : frames) found.push_back(frame.resolve(params));
  return middle_of(std::move(found));
}

std::vector<int> frames_to_measure(const ImageSpec& spec, int frames) {
  std::vector<int> chosen;
  for (int frame = 0; frame < std::min(frames, frames_looked_through(spec)); frame += from_one_to_the_next)
    chosen.push_back(frame);
  return chosen;
}

VideoReport denoise_video(const MethodParams& params, const ImageSpec& spec, SliceReader& in,
                          SliceWriter& out, const ImageSpec& out_spec, const VideoOptions& options) {
  params.validate(spec);
  Options run = options.run;
  run.progress = nullptr;
  NoiseModelOptions noise = options.noise;
  if (noise.threads == 0) noise.threads = run.threads;

  VideoReport report;
  SceneWriter writer(out, spec, options, report);
  FrameSource source(in, spec, options.find_cuts, run.cancel);
  SceneFrames frames(source, options.find_cuts);
  std::optional<Denoiser> denoiser;
  while (frames.start_scene()) {
    Resolved found = resolve_scene(params, spec, frames, noise);
    report.scenes.push_back({frames.first(), 0, std::move(found.params), std::move(found.noise)});
    const MethodParams& resolved = report.scenes.back().params;
    if (denoiser) {
      denoiser->set_params(resolved);
    } else {
      denoiser = Denoiser::create(resolved, spec, run);
    }
    check_for_clip(resolved, denoiser->reach());
    frames.set_reach(denoiser->reach());
    add(report.report, denoiser->run(frames, writer, out_spec));
  }
  report.ring_frames = source.frames_made();
  report.ring_bytes = static_cast<std::size_t>(report.ring_frames) * frame_bytes(spec);
  source.rethrow();
  return report;
}

}  // namespace ungrain
