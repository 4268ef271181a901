// The frames of a clip, read ahead on a thread of their own, and the scenes that they form.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "ungrain/denoiser.h"
#include "ungrain/image.h"
#include "ungrain/sequence.h"
#include "video/scene_cuts.h"

namespace ungrain {

struct ClipFrame {
  Image image;
  bool starts_scene = false;
  FrameOutline outline;  // empty where no cuts are looked for
};

// Reads frames in order, a few ahead. What the reader throws ends the clip.
class FrameSource {
 public:
  FrameSource(SliceReader& in, const ImageSpec& spec, bool find_cuts, CancelToken cancel);
  ~FrameSource();  // when the reader has returned from a frame that it is reading
  FrameSource(const FrameSource&) = delete;
  FrameSource& operator=(const FrameSource&) = delete;

  std::unique_ptr<ClipFrame> next();                // null: there is none; throws Error(cancelled)
  void give_back(std::unique_ptr<ClipFrame> one);   // its memory is used again
  void rethrow() const;                             // what the reader has thrown
  int frames_made() const { return frames_made_; }  // that were in memory at once

 private:
  static constexpr std::size_t most_ahead = 2;
  void read_all();
  std::unique_ptr<ClipFrame> empty_frame();
  bool push(std::unique_ptr<ClipFrame> frame);  // false: nobody wants it

  SliceReader& in_;
  ImageSpec spec_;
  bool find_cuts_;
  CancelToken cancel_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<ClipFrame>> ready_;
  std::vector<std::unique_ptr<ClipFrame>> unused_;
  std::exception_ptr failure_;
  bool ended_ = false;
  bool stopping_ = false;
  std::atomic<int> frames_made_ = 0;
  std::thread thread_;
};

// The scene at the clip's current place, as a sequence of its own. Frames are held until no later one looks
// at them.
class SceneFrames : public SliceReader {
 public:
  SceneFrames(FrameSource& source, bool find_cuts) : source_(source), find_cuts_(find_cuts) {}

  // Goes to the frame after the last scene; false: the clip has ended.
  bool start_scene();
  int first() const { return scene_; }
  void set_reach(const Reach& reach) { reach_ = reach; }
  // The first frames of the scene, `most` at most; they stay held.
  std::vector<const Image*> first_frames(int most);

  bool has(int slice) override;
  void read_rows(int slice, int first, const ImageView& rows) override;

 private:
  bool fetch();                 // the next frame; false: there is none
  ClipFrame* frame(int index);  // of the clip; null: the clip ends before it
  bool starts_scene_at(int index);
  void decide_cut(const std::optional<FrameDifference>& after);  // at the newest frame
  void drop_before(int index);

  FrameSource& source_;
  bool find_cuts_;
  Reach reach_;
  std::deque<std::unique_ptr<ClipFrame>> held_;
  int held_from_ = 0;  // the first held frame
  // Of the newest frame to the one before it, and of that to its own.
  std::optional<FrameDifference> newest_difference_;
  std::optional<FrameDifference> difference_before_;
  bool ended_ = false;
  int scene_ = 0;        // its first frame
  int next_ = 0;         // frames before this one belong to the scene
  bool closed_ = false;  // the scene goes no further
};

}  // namespace ungrain
