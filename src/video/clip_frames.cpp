#include "video/clip_frames.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/convert.h"
#include "ungrain/error.h"

namespace ungrain {

FrameSource::FrameSource(SliceReader& in, const ImageSpec& spec, bool find_cuts, CancelToken cancel)
    : in_(in), spec_(spec), find_cuts_(find_cuts), cancel_(std::move(cancel)) {
  thread_ = std::thread([this] { read_all(); });
}

FrameSource::~FrameSource() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void FrameSource::read_all() {
  try {
    for (int index = 0; in_.has(index); ++index) {
      std::unique_ptr<ClipFrame> frame = empty_frame();
      frame->starts_scene = in_.starts_scene(index);
      in_.read_rows(index, 0, frame->image.view());
      if (find_cuts_) frame->outline = outline_of(frame->image.view());
      if (!push(std::move(frame))) return;
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

std::unique_ptr<ClipFrame> FrameSource::empty_frame() {
  {
    const std::lock_guard lock(mutex_);
    if (!unused_.empty()) {
      std::unique_ptr<ClipFrame> frame = std::move(unused_.back());
      unused_.pop_back();
      return frame;
    }
  }
  ++frames_made_;
  auto frame = std::make_unique<ClipFrame>();
  frame->image = Image(spec_);
  return frame;
}

bool FrameSource::push(std::unique_ptr<ClipFrame> frame) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ready_.size() < most_ahead || stopping_; });
  if (stopping_) return false;
  ready_.push_back(std::move(frame));
  changed_.notify_all();
  return true;
}

std::unique_ptr<ClipFrame> FrameSource::next() {
  constexpr std::chrono::milliseconds between_looks{50};  // at the cancel token
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, between_looks, [this] { return !ready_.empty() || ended_; })) {
    if (cancel_.cancelled()) throw Error(ErrorCode::cancelled, "cancelled");
  }
  if (ready_.empty()) return nullptr;
  std::unique_ptr<ClipFrame> frame = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return frame;
}

void FrameSource::give_back(std::unique_ptr<ClipFrame> one) {
  const std::lock_guard lock(mutex_);
  unused_.push_back(std::move(one));
}

void FrameSource::rethrow() const {
  if (failure_) std::rethrow_exception(failure_);
}

bool SceneFrames::start_scene() {
  drop_before(next_);
  scene_ = next_;
  closed_ = false;
  return frame(scene_) != nullptr;
}

std::vector<const Image*> SceneFrames::first_frames(int most) {
  std::vector<const Image*> frames;
  for (int slice = 0; slice < most && has(slice); ++slice) frames.push_back(&frame(scene_ + slice)->image);
  return frames;
}

bool SceneFrames::has(int slice) {
  const int index = scene_ + slice;
  while (!closed_ && next_ <= index) {
    closed_ = frame(next_) == nullptr || (next_ > scene_ && starts_scene_at(next_));
    if (!closed_) ++next_;
  }
  return index < next_;
}

void SceneFrames::read_rows(int slice, int first, const ImageView& rows) {
  const int index = scene_ + slice;
  const ClipFrame* from = frame(index);
  if (from == nullptr) throw Error(ErrorCode::internal, "a frame of the clip is gone");
  const ConstImageView view = from->image.view().rows(first, rows.spec.height);
  for (int y = 0; y < rows.spec.height; ++y) copy_pixels(view, y, rows, y);
  // A frame is read when the first frame that looks at it is to be filtered. That one looks no further back
  // than this, and the next ones neither.
  drop_before(index - std::max(reach_.before, reach_.after) - reach_.before);
}

// With `difference_before_` and `newest_difference_`, whether the newest frame starts a scene.
void SceneFrames::decide_cut(const std::optional<FrameDifference>& after) {
  if (held_.empty() || !newest_difference_) return;
  ClipFrame& newest = *held_.back();
  newest.starts_scene = newest.starts_scene || is_cut(difference_before_, *newest_difference_, after);
}

bool SceneFrames::fetch() {
  std::unique_ptr<ClipFrame> frame = ended_ ? nullptr : source_.next();
  std::optional<FrameDifference> difference;
  if (frame != nullptr && find_cuts_ && !held_.empty()) {
    difference = frame_difference(held_.back()->outline, frame->outline);
  }
  if (!ended_) decide_cut(difference);
  difference_before_ = std::exchange(newest_difference_, difference);
  ended_ = frame == nullptr;
  if (!ended_) held_.push_back(std::move(frame));
  return !ended_;
}

ClipFrame* SceneFrames::frame(int index) {
  if (index < held_from_) throw Error(ErrorCode::internal, "a frame of the clip is gone");
  while (index - held_from_ >= static_cast<int>(held_.size())) {
    if (!fetch()) return nullptr;
  }
  return held_[static_cast<std::size_t>(index - held_from_)].get();
}

bool SceneFrames::starts_scene_at(int index) {
  if (find_cuts_) frame(index + 1);  // decides
  return frame(index)->starts_scene;
}

void SceneFrames::drop_before(int index) {
  while (held_from_ < index && !held_.empty()) {
    source_.give_back(std::move(held_.front()));
    held_.pop_front();
    ++held_from_;
  }
}

}  // namespace ungrain
