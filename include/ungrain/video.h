// Clips: frames that are read once and in order, as from a pipe, and denoised scene by scene.
//
//   ungrain::VideoReport report = ungrain::denoise_video(ungrain::NlmParams{}, spec, reader, writer, spec);
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "ungrain/denoiser.h"
#include "ungrain/export.h"
#include "ungrain/image.h"
#include "ungrain/measured_noise.h"
#include "ungrain/noise_model.h"
#include "ungrain/parameters.h"
#include "ungrain/sequence.h"

UNGRAIN_API_BEGIN
namespace ungrain {

// Frames between two cuts.
struct VideoScene {
  int first = 0;
  int frames = 0;                           // known after the scene's last frame
  MethodParams params;                      // resolved
  std::optional<NoiseModelEstimate> noise;  // empty where the parameters need no measurement
};

struct VideoOptions {
  Options run = {};       // its `progress` is not called
  bool find_cuts = true;  // false: a scene starts only where SliceReader::starts_scene() says so
  NoiseModelOptions noise = {};
  // After each frame that was written, on a thread of the run's own.
  std::function<void(int frames_done, const VideoScene& scene)> progress = {};
};

struct VideoReport {
  int frames = 0;
  std::vector<VideoScene> scenes;
  Report report;  // sums over the scenes; buffer_bytes is the largest, strengths are the last scene's
  // The most frames that were held as they were read, besides `report.buffer_bytes`: those that later frames
  // look at, and those that were read ahead to find cuts and to measure the noise.
  int ring_frames = 0;
  std::size_t ring_bytes = 0;
};

// Reads each frame once, in order and as a whole, on a thread of its own; frames are read and written while
// others are filtered. The results have the bits of each scene denoised by itself with its `params`.
//
// A scene starts at the first frame, where the reader says so, and at cuts: frames whose picture differs from
// the one before far more than its neighbours do. Pans, fades and flashes of one frame are no cuts.
//
// Where the parameters need it, the noise is measured in every scene anew, on every second of its first 16
// frames (of fewer, where 16 take more than half a gigabyte). The frame with the median deviation gives the
// parameters.
//
// What the reader throws is thrown when the frames before it have been written. Throws Error(unsupported)
// where frames of a scene's end would be used for its start (border wrap).
VideoReport denoise_video(const MethodParams& params, const ImageSpec& spec, SliceReader& in,
                          SliceWriter& out, const ImageSpec& out_spec, const VideoOptions& options = {});

// The parts of denoise_video(), for programs that see frames in another order.

// Throws Error(unsupported) where frames of a scene's end would be used for its start (border wrap).
void check_for_clip(const MethodParams& params, const Reach& reach);

// resolve_with_noise() on several frames of one clip: the one with the median deviation gives the parameters.
Resolved resolve_frames(const MethodParams& params, const ImageSpec& spec,
                        std::span<const ConstImageView> frames, const NoiseModelOptions& options = {});

// The same of frames whose noise was measured before.
Resolved resolve_frames(const MethodParams& params, const ImageSpec& spec, std::span<MeasuredNoise> frames);
// The frames of a scene, counted from its start, on which denoise_video() measures its noise. `frames`: how
// many the scene has.
std::vector<int> frames_to_measure(const ImageSpec& spec, int frames);

// A coarse picture of a frame, by which cuts are found: the mean of each block of a frame's luma (of rgb and
// independent channels: their mean), in units of the white level. A frame has up to 16 blocks across, each of
// at least 12 x 12 pixels: noise of deviation 50 moves a mean by 4 at most. What is not finite does not
// count.
struct FrameOutline {
  std::vector<float> blocks;
};
FrameOutline outline_of(const ConstImageView& frame);

// Whether a scene starts with `frame`, which comes after `before`. Null: there is no such frame.
bool is_cut(const FrameOutline* two_before, const FrameOutline& before, const FrameOutline& frame,
            const FrameOutline* after);

}  // namespace ungrain
UNGRAIN_API_END
