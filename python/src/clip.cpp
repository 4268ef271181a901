#include "clip.h"

#include <chrono>
#include <cstring>
#include <utility>

#include "ungrain/error.h"
#include "ungrain/video.h"

namespace nb = nanobind;

namespace ungrain::python {
namespace {

// Between views of one type, of any strides.
void copy_row(const ConstImageView& from, const ImageView& to, int y) {
  const auto sample = static_cast<std::size_t>(bytes_per_sample(from.spec.type));
  for (int channel = 0; channel < from.spec.channels; ++channel) {
    const auto* in =
        static_cast<const std::byte*>(from.data) + y * from.strides.y + channel * from.strides.channel;
    auto* out = static_cast<std::byte*>(to.data) + y * to.strides.y + channel * to.strides.channel;
    for (int x = 0; x < from.spec.width; ++x) {
      std::memcpy(out + x * to.strides.x, in + x * from.strides.x, sample);
    }
  }
}

bool is_packed(const ConstImageView& view) {
  Strides packed = interleaved_strides(view.spec);
  packed.y = view.strides.y;
  if (view.spec.channels == 1) packed.channel = view.strides.channel;
  return view.strides == packed;
}

void copy_frame(const ConstImageView& from, const ImageView& to) {
  const auto row = static_cast<std::size_t>(interleaved_strides(from.spec).y);
  const bool packed = is_packed(from) && is_packed(to);
  for (int y = 0; y < from.spec.height; ++y) {
    if (packed) {
      std::memcpy(static_cast<std::byte*>(to.data) + y * to.strides.y,
                  static_cast<const std::byte*>(from.data) + y * from.strides.y, row);
    } else {
      copy_row(from, to, y);
    }
  }
}

}  // namespace

// The clip's two ends as denoise_video() sees them, on threads of its own.
class HeldClip::Ends : public SliceReader, public SliceWriter {
 public:
  explicit Ends(HeldClip& clip) : clip_(clip) {}

  bool has(int) override {
    std::unique_lock lock(clip_.mutex_);
    clip_.changed_.wait(lock, [&] { return !clip_.given_.empty() || clip_.finished_ || clip_.stopping_; });
    return !clip_.given_.empty() && !clip_.stopping_;
  }
  void read_rows(int, int, const ImageView& rows) override {
    Image frame;
    {
      const std::lock_guard lock(clip_.mutex_);
      frame = std::move(clip_.given_.front());
      clip_.given_.pop_front();
      clip_.changed_.notify_all();
    }
    copy_frame(frame.view(), rows);
  }

  void write_rows(int, int first, const ConstImageView& rows) override {
    if (first == 0) result_ = Image(clip_.spec_);
    copy_frame(rows, result_.view().rows(first, rows.spec.height));
    if (first + rows.spec.height < clip_.spec_.height) return;
    std::unique_lock lock(clip_.mutex_);
    clip_.changed_.wait(lock, [&] { return clip_.made_.size() < most_waiting || clip_.stopping_; });
    if (clip_.stopping_) throw Error(ErrorCode::cancelled, "cancelled");
    clip_.made_.push_back(std::move(result_));
    clip_.changed_.notify_all();
  }

 private:
  HeldClip& clip_;
  Image result_;
};

HeldClip::HeldClip(HeldParams params, const ImageSpec& spec, const Options& options, bool find_cuts)
    : params_(std::move(params)), spec_(spec) {
  params_.params.validate(spec);
  thread_ = std::thread([this, options, find_cuts] { run(options, find_cuts); });
}

HeldClip::~HeldClip() { stop(); }

void HeldClip::run(const Options& options, bool find_cuts) {
  std::exception_ptr failure;
  try {
    Ends ends(*this);
    VideoOptions video;
    video.run = options;
    video.run.cancel = cancel_;
    video.find_cuts = find_cuts;
    video.progress = [this](int done, const VideoScene& scene) {
      if (done > 1) return;
      const std::lock_guard lock(mutex_);
      noise_level_ = python::noise_level(scene.params);
    };
    denoise_video(params_.params, spec_, ends, ends, spec_, video);
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  failure_ = failure;
  ended_ = true;
  changed_.notify_all();
}

HeldClip::Next HeldClip::wait(bool gives) {
  constexpr std::chrono::milliseconds between_signals{100};
  while (true) {
    {
      const nb::gil_scoped_release unlocked;
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, between_signals,
                        [&] { return !made_.empty() || ended_ || (gives && given_.size() < most_waiting); });
      if (!made_.empty()) return Next::result;
      if (ended_) break;
      if (gives && given_.size() < most_waiting) return Next::room;
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  return Next::end;
}

void HeldClip::give(const ConstImageView& frame) {
  const nb::gil_scoped_release unlocked;
  Image copy(spec_);
  copy_frame(frame, copy.view());
  const std::lock_guard lock(mutex_);
  given_.push_back(std::move(copy));
  changed_.notify_all();
}

void HeldClip::finish() {
  const std::lock_guard lock(mutex_);
  finished_ = true;
  changed_.notify_all();
}

void HeldClip::take(const ImageView& to) {
  const nb::gil_scoped_release unlocked;
  Image frame;
  {
    const std::lock_guard lock(mutex_);
    frame = std::move(made_.front());
    made_.pop_front();
    changed_.notify_all();
  }
  copy_frame(frame.view(), to);
}

void HeldClip::stop() {
  if (!thread_.joinable()) return;
  const nb::gil_scoped_release unlocked;
  cancel_.cancel();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

double HeldClip::noise_level() const {
  const std::lock_guard lock(mutex_);
  return noise_level_;
}

}  // namespace ungrain::python
