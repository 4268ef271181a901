#include "denoised_clip.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "frames.h"
#include "ungrain/error.h"
#include "ungrain/methods.h"
#include "ungrain/video.h"

namespace ungrain::vapoursynth {

// ---- the frames around one

class Window {
 public:
  Window(int first, int last, VSNode* node, VSFrameContext& context, const VSAPI& api)
      : first_(first), api_(api) {
    for (int frame = first; frame <= last; ++frame)
      frames_.push_back(api.getFrameFilter(frame, node, &context));
  }
  ~Window() {
    for (const VSFrame* frame : frames_) api_.freeFrame(frame);
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  int first() const { return first_; }
  const VSFrame* at(int frame) const {
    const auto index = static_cast<std::size_t>(frame - first_);
    if (frame < first_ || index >= frames_.size()) {
      throw Error(ErrorCode::internal, "frame " + std::to_string(frame) + " was not asked for");
    }
    return frames_[index];
  }

 private:
  int first_;
  const VSAPI& api_;
  std::vector<const VSFrame*> frames_;
};

// ---- one Denoiser

namespace {

// The frames of `ref`, as the library reads a pilot.
class PilotFrames : public SliceReader {
 public:
  explicit PilotFrames(const VSAPI& api) : api_(api) {}
  const Window* window = nullptr;

  bool has(int) override { return true; }
  void read_rows(int slice, int first, const ImageView& rows) override {
    copy_rows(*window->at(slice), api_, first, rows);
  }

 private:
  const VSAPI& api_;
};

MethodParams with_pilot(const MethodParams& params, std::shared_ptr<SliceReader> pilot) {
  Bm3dParams values = params.as<Bm3dParams>();
  values.pilot = std::move(pilot);
  MethodParams made(std::move(values));
  made.set_noise(params.noise());
  return made;
}

}  // namespace

class FrameStream : public SliceReader {
 public:
  FrameStream(const MethodParams& params, const ImageSpec& spec, const Options& options, int frames,
              Scenes& scenes, bool has_pilot, const VSAPI& api)
      : params_(params), spec_(spec), options_(options), frames_(frames), scenes_(scenes), api_(api) {
    if (!has_pilot) return;
    pilot_ = std::make_shared<PilotFrames>(api);
    params_ = with_pilot(params_, pilot_);
  }

  // The last frame that was made; -1: nothing is held.
  int at() const { return at_; }
  int target = -1;  // the frame that it is busy with
  bool busy = false;
  Device device() const { return denoiser_ ? denoiser_->device() : options_.device; }
  // What the user should know of the runs since the last call; empty: nothing.
  std::string take_warning() { return std::exchange(warning_, {}); }

  // The result is overwritten by the next one.
  ConstImageView run(int frame, const Windows& windows);

  bool has(int slice) override { return slice >= 0 && slice < frames_; }
  void read_rows(int slice, int first, const ImageView& rows) override {
    copy_rows(*window_->at(slice), api_, first, rows);
  }
  bool starts_scene(int slice) override { return scenes_.starts(slice); }

 private:
  void run_once(int frame);
  bool retries_after(const Error& error);

  MethodParams params_;
  ImageSpec spec_;
  Options options_;
  int frames_;
  Scenes& scenes_;
  const VSAPI& api_;
  std::shared_ptr<PilotFrames> pilot_;
  std::optional<Denoiser> denoiser_;
  Image result_;
  std::string warning_;
  const Window* window_ = nullptr;
  int at_ = -1;
};

void FrameStream::run_once(int frame) {
  if (result_.bytes() == 0) result_ = Image(spec_);
  if (!denoiser_) denoiser_ = Denoiser::create(params_, spec_, options_);
  denoiser_->run(*this, frame, result_.view());
}

// A frame that was planned for and found too little memory is made in bands, which give the same pixels. The
// processor serves where a GPU that nobody asked for fails.
bool FrameStream::retries_after(const Error& error) {
  constexpr std::size_t least_memory = std::size_t{32} << 20;
  if (!denoiser_) return false;  // nothing was planned
  if (error.code() == ErrorCode::out_of_memory) {
    if (options_.memory == 0) {
      const auto pixels = static_cast<std::size_t>(spec_.width) * static_cast<std::size_t>(spec_.height);
      const auto planes = static_cast<std::size_t>(spec_.channels * (denoiser_->reach().slices() + 2));
      options_.memory = 2 * pixels * planes * sizeof(float);
    }
    options_.memory /= 2;
    return options_.memory >= least_memory;
  }
  if (error.code() == ErrorCode::device && options_.device.kind == Device::Kind::automatic) {
    options_.device.kind = Device::Kind::cpu;
    warning_ = std::string("the GPU failed, the processor takes over: ") + error.what();
    return true;
  }
  return false;
}

ConstImageView FrameStream::run(int frame, const Windows& windows) {
  window_ = &windows.clip;
  if (pilot_ != nullptr) pilot_->window = windows.pilot;
  while (true) {
    try {
      run_once(frame);
      break;
    } catch (const Error& error) {
      at_ = -1;
      const bool retry = retries_after(error);
      denoiser_.reset();
      if (!retry) throw;
    } catch (...) {
      at_ = -1;
      denoiser_.reset();
      throw;
    }
  }
  at_ = frame;
  return std::as_const(result_).view();
}

// ---- the clip

namespace {

constexpr int noise_frames = 9;      // that are measured, over the whole clip
constexpr int frames_a_stream = 16;  // that follow each other go to one stream
constexpr int trial_side = 64;

// How many frames take part, and whether the device is there: of a small image with some noise, since the
// clip's is not known yet.
Reach reach_of(MethodParams params, ImageSpec spec, Options options) {
  for (const ParamInfo& param : method_info(params.method()).params) {
    if (param.fallback != Fallback::automatic || !params.needs_image()) continue;
    if (param.unit != Unit::intensity) continue;
    const double level = spec.white() / 255;
    params.set(param.name,
               param.kind == ParamKind::per_channel ? ParamValue(std::vector{level}) : ParamValue(level));
  }
  spec.width = std::min(spec.width, trial_side);
  spec.height = std::min(spec.height, trial_side);
  options.threads = 1;
  options.memory = 0;
  NoiseHandling noise = params.noise();
  noise.clipping = Clipping::keep;
  params.set_noise(noise);
  return Denoiser::create(params, spec, options).reach();
}

// Limited is 1 as "_ColorRange", and 0 as "_Range" of newer versions.
bool is_limited(const VSFrame& frame, const VSAPI& api) {
  return property(frame, api, "_ColorRange") == 1 || property(frame, api, "_Range") == 0;
}

}  // namespace

DenoisedClip::DenoisedClip(const Function& function, FunctionArguments arguments, NodeRef node,
                           std::optional<NodeRef> pilot, const VSAPI& api)
    : function_(function),
      params_(std::move(arguments.params)),
      arguments_(std::move(arguments.run)),
      node_(std::move(node)),
      pilot_(std::move(pilot)),
      api_(api),
      info_(*api.getVideoInfo(node_.get())),
      spec_(spec_of(info_)),
      scenes_(spec_, info_.numFrames, arguments_.find_cuts) {
  if (pilot_) {
    const VSVideoInfo& other = *api.getVideoInfo(pilot_->get());
    if (other.numFrames != info_.numFrames || spec_of(other) != spec_) {
      throw Error(ErrorCode::invalid_argument,
                  "ref takes a clip of clip's format, size and number of frames");
    }
    params_ = with_pilot(params_, std::make_shared<PilotFrames>(api));
  }
  params_.validate(spec_);
  reach_ = reach_of(params_, spec_, arguments_.options);
  check_for_clip(params_, reach_);
  most_streams_ = arguments_.num_streams > 0 ? arguments_.num_streams : looks_along() ? 1 : 2;
  if (arguments_.options.memory > 0) {
    arguments_.options.memory =
        std::max<std::size_t>(1, arguments_.options.memory / static_cast<std::size_t>(most_streams_));
  }
  if (!params_.needs_image()) {
    params_ = resolve_derived(params_, spec_);
    noise_known_ = true;
  }
}

DenoisedClip::~DenoisedClip() {
  for (const auto& [number, frame] : made_) api_.freeFrame(frame);
}

DenoisedClip::Range DenoisedClip::frames_around(int frame) const {
  const int before = reach_.before + (looks_along() ? Scenes::frames_before : 0);
  const int after = reach_.after + (looks_along() ? Scenes::frames_after : 0);
  return {std::max(0, frame - before), std::min(info_.numFrames - 1, frame + after)};
}

bool DenoisedClip::asks_for_others() const { return looks_along() || !noise_known_; }

std::vector<VSNode*> DenoisedClip::nodes() const {
  std::vector<VSNode*> all{node_.get()};
  if (pilot_) all.push_back(pilot_->get());
  return all;
}

std::vector<int> DenoisedClip::frames_for_noise() const {
  std::vector<int> frames;
  const int count = std::min(noise_frames, info_.numFrames);
  for (int i = 0; i < count; ++i) {
    frames.push_back(
        static_cast<int>((2 * static_cast<std::int64_t>(i) + 1) * info_.numFrames / (2 * count)));
  }
  return frames;
}

void DenoisedClip::request(int frame, VSFrameContext& context) {
  {
    const std::lock_guard lock(mutex_);
    requested_.insert(frame);
  }
  if (!noise_known_) {
    for (const int other : frames_for_noise()) api_.requestFrameFilter(other, node_.get(), &context);
  }
  const Range range = frames_around(frame);
  for (VSNode* node : nodes()) {
    for (int other = range.first; other <= range.last; ++other)
      api_.requestFrameFilter(other, node, &context);
  }
}

void DenoisedClip::forget(int frame) {
  const std::lock_guard lock(mutex_);
  if (const auto found = requested_.find(frame); found != requested_.end()) requested_.erase(found);
  const auto made = made_.find(frame);
  if (made == made_.end() || requested_.count(frame) > 0) return;
  api_.freeFrame(made->second);
  made_.erase(made);
}

void DenoisedClip::measure_noise(VSFrameContext& context) {
  const std::lock_guard lock(noise_mutex_);
  if (noise_known_) return;
  std::vector<Image> images;
  bool limited = false;
  for (const int number : frames_for_noise()) {
    const VSFrame* frame = api_.getFrameFilter(number, node_.get(), &context);
    images.push_back(image_of(*frame, api_, spec_));
    limited = limited || is_limited(*frame, api_);
    api_.freeFrame(frame);
  }
  std::vector<ConstImageView> views;
  for (const Image& image : images) views.push_back(std::as_const(image).view());
  if (limited) {  // black and white lie within the samples' range: what is at its ends was not cut there
    NoiseHandling noise = params_.noise();
    noise.clipping = Clipping::keep;
    params_.set_noise(noise);
  }
  NoiseModelOptions options;
  options.threads = arguments_.options.threads;
  Resolved found = resolve_frames(params_, spec_, views, options);
  params_ = std::move(found.params);
  if (found.noise) {
    for (const double deviation : found.noise->deviations) sigmas_.push_back(deviation * 255 / spec_.white());
  }
  noise_known_ = true;
}

// ---- streams

FrameStream& DenoisedClip::take_stream(int frame) {
  std::unique_lock lock(mutex_);
  // Whether a stream at `place` holds much of what the frame needs.
  const auto is_near = [&](int place) {
    const bool same_part = place / frames_a_stream == frame / frames_a_stream;
    return looks_along() && place >= 0 && place < frame && (same_part || place == frame - 1);
  };
  while (true) {
    FrameStream* near = nullptr;
    FrameStream* unused = nullptr;
    bool near_is_busy = false;
    for (const auto& stream : streams_) {
      if (stream->busy) {
        near_is_busy = near_is_busy || is_near(stream->target);
      } else if (is_near(stream->at())) {
        near = stream.get();
      } else if (unused == nullptr) {
        unused = stream.get();
      }
    }
    FrameStream* taken = near;
    if (taken == nullptr && !near_is_busy) {
      if (unused == nullptr && static_cast<int>(streams_.size()) < most_streams_) {
        streams_.push_back(std::make_unique<FrameStream>(params_, spec_, arguments_.options, info_.numFrames,
                                                         scenes_, pilot_.has_value(), api_));
        unused = streams_.back().get();
      }
      taken = unused;
    }
    if (taken != nullptr) {
      taken->busy = true;
      taken->target = frame;
      return *taken;
    }
    stream_is_free_.wait(lock);
  }
}

void DenoisedClip::give_back(FrameStream& stream) {
  const std::lock_guard lock(mutex_);
  stream.busy = false;
  stream_is_free_.notify_all();
}

const VSFrame* DenoisedClip::take_made(int frame) {
  const std::lock_guard lock(mutex_);
  const auto found = made_.find(frame);
  if (found == made_.end()) return nullptr;
  const VSFrame* made = found->second;
  made_.erase(found);
  return made;
}

void DenoisedClip::add_properties(VSFrame& frame, const FrameStream& stream) const {
  VSMap* properties = api_.getFramePropertiesRW(&frame);
  if (!sigmas_.empty()) {
    api_.mapSetFloatArray(properties, "UngrainSigma", sigmas_.data(), static_cast<int>(sigmas_.size()));
  }
  const std::string device = name(stream.device());
  api_.mapSetData(properties, "UngrainDevice", device.data(), static_cast<int>(device.size()), dtUtf8,
                  maReplace);
}

const VSFrame* DenoisedClip::run(FrameStream& stream, int frame, const Windows& windows, VSCore& core) {
  const VSFrame* source = windows.clip.at(frame);
  const ConstImageView result = stream.run(frame, windows);
  if (const std::string warning = stream.take_warning(); !warning.empty()) {
    api_.logMessage(mtWarning, function_.message(warning).c_str(), &core);
  }
  VSFrame* made = api_.newVideoFrame(&info_.format, info_.width, info_.height, source, &core);
  copy_image(result, *made, api_);
  add_properties(*made, stream);
  return made;
}

// Requests come a little out of order. Frames between the stream's place and this one that were requested too
// are made first: for them the stream would otherwise have to go back, which is to start anew.
void DenoisedClip::run_missed(FrameStream& stream, int frame, const Windows& windows, VSCore& core) {
  if (!looks_along() || stream.at() < 0) return;
  // The stream holds what these need from before the window; themselves and what follows lie in it.
  const int from = std::max({stream.at() + 1, frame - reach_.slices() + 1, windows.clip.first()});
  for (int missed = from; missed < frame; ++missed) {
    {
      const std::lock_guard lock(mutex_);
      if (requested_.count(missed) == 0 || made_.count(missed) > 0) continue;
    }
    if (missed != stream.at() + 1) return;
    const VSFrame* made = nullptr;
    try {
      made = run(stream, missed, windows, core);
    } catch (const std::exception&) {
      return;  // it is tried again with a window of its own, and tells what is wrong
    }
    const std::lock_guard lock(mutex_);
    const bool wanted = requested_.count(missed) > 0 && made_.emplace(missed, made).second;
    if (!wanted) api_.freeFrame(made);  // another stream was quicker
  }
}

const VSFrame* DenoisedClip::make(int frame, VSFrameContext& context, VSCore& core) {
  struct Forget {
    DenoisedClip& clip;
    int frame;
    ~Forget() { clip.forget(frame); }
  } const forget{*this, frame};

  if (const VSFrame* made = take_made(frame)) return made;
  if (!noise_known_) measure_noise(context);
  const Range range = frames_around(frame);
  const Window window(range.first, range.last, node_.get(), context, api_);
  if (property(*window.at(frame), api_, "_FieldBased").value_or(0) > 0) {
    throw Error(ErrorCode::unsupported,
                "frame " + std::to_string(frame) +
                    " is interlaced: make the clip progressive first, or tell that it is with "
                    "std.SetFieldBased(0)");
  }
  if (looks_along()) {
    scenes_.look(
        std::max(1, frame - reach_.before), std::min(info_.numFrames - 1, frame + reach_.after),
        [&](int number) { return window.at(number); }, api_);
  }
  std::optional<Window> pilot;
  if (pilot_) pilot.emplace(range.first, range.last, pilot_->get(), context, api_);
  const Windows windows{window, pilot ? &*pilot : nullptr};
  FrameStream& stream = take_stream(frame);
  struct GiveBack {
    DenoisedClip& clip;
    FrameStream& stream;
    ~GiveBack() { clip.give_back(stream); }
  } const give{*this, stream};
  run_missed(stream, frame, windows, core);
  if (const VSFrame* made = take_made(frame)) return made;
  return run(stream, frame, windows, core);
}

}  // namespace ungrain::vapoursynth
