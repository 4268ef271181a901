// A clip that is open for reading: a Y4M stream, raw frames, frames in files, or a video that ffmpeg decodes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "io/ffmpeg.h"
#include "io/frame_files.h"
#include "video_request.h"

namespace ungrain::cli {

enum class ClipKind : std::uint8_t { y4m, raw, frame_files, video };

struct OpenedClip {
  ClipKind kind = ClipKind::y4m;
  io::ClipInfo info;
  std::optional<io::FramePattern> pattern;  // of frame files
  std::int64_t first_number = 0;
  std::optional<io::VideoStream> stream;  // of videos
  io::VideoReader* video = nullptr;
  std::unique_ptr<io::FrameReader> reader;
};

// What the settings name. `stop` must outlive the clip.
OpenedClip open_clip(const VideoSettings& settings, const io::StopWaiting& stop);

// By its extension: raw frames without a header.
bool has_raw_name(const std::filesystem::path& path);
bool has_y4m_name(const std::filesystem::path& path);
// By its extension: what ungrain video reads besides image files.
bool has_clip_name(const std::filesystem::path& path);

}  // namespace ungrain::cli
