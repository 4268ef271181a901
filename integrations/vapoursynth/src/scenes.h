// Where the scenes of a clip start: what frame properties say, and cuts that the library finds.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include <VapourSynth4.h>

#include "ungrain/video.h"

namespace ungrain::vapoursynth {

class Scenes {
 public:
  // A frame of the clip, for as long as the call that it is given to.
  using FrameAt = std::function<const VSFrame*(int frame)>;
  // How many frames before and after decide about a frame.
  static constexpr int frames_before = 2;
  static constexpr int frames_after = 1;

  Scenes(const ImageSpec& spec, int frames, bool find_cuts);

  // Decides about the frames [first, last]; `frame_at` has those and frames_before and frames_after around
  // them, as far as the clip goes.
  void look(int first, int last, const FrameAt& frame_at, const VSAPI& api);
  bool starts(int frame);  // that was looked at

 private:
  enum class Start : std::uint8_t { unknown, no, yes };
  bool decide(int frame, const FrameAt& frame_at, const VSAPI& api);
  const FrameOutline* outline(int frame, const FrameAt& frame_at, const VSAPI& api);

  ImageSpec spec_;
  bool find_cuts_;
  std::mutex mutex_;
  std::vector<Start> starts_;
  std::map<int, FrameOutline> outlines_;  // of frames that were looked at lately
};

}  // namespace ungrain::vapoursynth
