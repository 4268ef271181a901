// Video files through the programs ffmpeg and ffprobe, which do all decoding and encoding.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/clip.h"

namespace ungrain::io {

// A video file's first video stream that is no cover picture.
struct VideoStream {
  std::filesystem::path file;
  int index = 0;              // among the file's streams
  Ratio time_base = {};       // seconds of one tick of its timestamps
  std::string samples = {};   // ffmpeg's name of the pixel format
  std::string unpacked = {};  // the one in which frames are read
  std::string range = {};     // colour tags, in ffmpeg's words; empty: unknown
  std::string matrix = {};
  std::string transfer = {};
  std::string primaries = {};
  std::string siting = {};
  std::string note = {};     // what of the file the frames and an output lack; or empty
  std::int64_t frames = -1;  // a guess from the header; -1: none
  FileAccess access = {};
};

// Throws Error(io) where ffmpeg is not on PATH, or the file has no video, or its frames are interlaced.
VideoStream probe_video(const std::filesystem::path& file, const StopWaiting& stop);

// Decoded frames, with their timestamps.
class VideoReader : public FrameReader {
 public:
  static std::unique_ptr<VideoReader> open(const VideoStream& stream, const StopWaiting& stop);
  // The time of a frame in ticks of the stream's time_base. Waits for it; it comes with the frame.
  virtual std::int64_t timestamp(int frame) = 0;
  // Errors from which ffmpeg recovered; empty: none. After the last frame.
  virtual std::string complaints() const = 0;
};

struct VideoOutput {
  std::filesystem::path file;
  std::vector<std::string> encoder = {};  // ffmpeg's options for the video; empty: chosen by the file's name
  // Where the frames come from: its other streams, its timestamps and tags are kept. Null: there is none.
  VideoReader* reader = nullptr;
  const VideoStream* stream = nullptr;
  bool from_start = true;  // false: frames before were left out, and time counts from the first one written
  bool to_end = true;
};
std::unique_ptr<FrameWriter> create_video(const VideoOutput& output, const ClipInfo& info, StopWaiting stop);

}  // namespace ungrain::io
