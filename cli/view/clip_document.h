// The frames of a clip, read once in the background and kept in a scratch file, so that any can be looked at.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "io/scratch_file.h"
#include "opened_clip.h"
#include "ungrain/video.h"
#include "view/document.h"

namespace ungrain::cli::view {

class ClipDocument : public Document {
 public:
  explicit ClipDocument(const ShelfFile& file);
  ~ClipDocument() override;

  Treatment treatment() const override { return Treatment::clip; }
  const io::FileInfo& info() const override { return info_; }
  int pages() const override;
  bool complete() const override;
  double rate() const override;
  std::optional<FrameColours> colours() const override { return colours_; }
  Image read(int page) override;
  // The scene that the frame belongs to. Its end is what is known of it by now.
  PageSpan span_of(int page) override;

  // The same, with its end known or at `end` at least. Throws Outdated where that is not known yet.
  PageSpan scene(int page, int end);
  // The noise of a scene, measured once. Hold noise_mutex() while using it.
  std::vector<MeasuredNoise>& noise(int first_of_scene);
  std::mutex& noise_mutex() { return noise_mutex_; }
  std::string note() const;  // what is not shown, and why; or empty

 private:
  void read_all();
  void take(const io::Frame& frame);
  PageSpan known_scene(int page, bool& closed) const;

  io::FileInfo info_;
  std::optional<FrameColours> colours_;
  std::atomic<bool> stopping_ = false;
  io::StopWaiting stop_;
  OpenedClip clip_;
  io::ScratchFile frames_;
  std::uint64_t most_frames_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int read_ = 0;
  bool ended_ = false;
  bool cut_off_ = false;  // there was no room for more
  std::string problem_;
  std::vector<FrameOutline> outlines_;  // of the last three frames
  std::vector<char> starts_;            // by frame: whether a scene starts there; as far as it is decided
  std::mutex noise_mutex_;
  std::map<int, std::vector<MeasuredNoise>> noise_;
  std::thread thread_;
};

}  // namespace ungrain::cli::view
