// A clip from its file to its result.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>

#include "io/clip.h"
#include "ungrain/video.h"
#include "video_request.h"

namespace ungrain::cli {

struct ClipOutcome {
  std::string output;  // as it was named, or found
  io::ClipInfo info;
  std::string note;        // what of the file an output lacks; or empty
  std::string complaints;  // of ffmpeg, which recovered
  VideoReport report;
  int written = 0;             // frames
  bool kept = true;            // what was written has become a file
  std::exception_ptr problem;  // what ended the run before the clip's end; null: nothing
  double seconds = 0;
};

struct ClipProgress {
  int done = 0;                       // frames
  std::int64_t expected = 0;          // 0: not known
  const VideoScene* scene = nullptr;  // of the last frame that is done
  ImageSpec spec;                     // of the frames
};

// Throws where nothing could be begun. What happens later is in the outcome: the frames before are written.
// Cancelled by the settings' token; `progress` is called before the first frame, and after each.
enum class WhenCancelled { keep_frames, keep_nothing };
ClipOutcome denoise_clip(const VideoRequest& request,
                         const std::function<void(const ClipProgress& progress)>& progress = {},
                         WhenCancelled when_cancelled = WhenCancelled::keep_frames);

// What the output is called where no name is given. Throws UsageError where the clip is no single file.
std::string clip_output(const VideoSettings& settings);

}  // namespace ungrain::cli
