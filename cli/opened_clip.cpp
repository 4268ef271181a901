#include "opened_clip.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include <fmt/format.h>

#include "io/raw_frames.h"
#include "io/y4m.h"
#include "option_values.h"
#include "streams.h"

namespace ungrain::cli {
namespace {

namespace fs = std::filesystem;

std::string lower_extension(const fs::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension;
}

std::unique_ptr<io::ByteSource> open_bytes(const VideoSettings& settings, const io::StopWaiting& stop) {
  return settings.input == stream_name ? io::ByteSource::standard_input(stop)
                                       : io::ByteSource::open(settings.input, stop);
}

// By its content, or because ffmpeg could not read it: it reads files. What was opened is Y4M's, as a pipe
// can be opened once; null: it is no Y4M.
std::unique_ptr<io::ByteSource> y4m_bytes(const VideoSettings& settings, const io::StopWaiting& stop) {
  std::unique_ptr<io::ByteSource> bytes = open_bytes(settings, stop);
  const bool is_file = bytes->size().has_value() && settings.input != stream_name;
  if (!is_file || has_y4m_name(settings.input) || bytes->starts_with(io::y4m_signature)) return bytes;
  return nullptr;
}

}  // namespace

bool has_raw_name(const fs::path& path) {
  const std::string extension = lower_extension(path);
  return extension == ".yuv" || extension == ".raw" || extension == ".rgb" || extension == ".gray";
}

bool has_y4m_name(const fs::path& path) { return lower_extension(path) == ".y4m"; }

bool has_clip_name(const fs::path& path) {
  static constexpr std::array names = {".y4m", ".mp4", ".m4v",  ".mov", ".mkv", ".webm", ".avi", ".mpg",
                                       ".ts",  ".mts", ".m2ts", ".mxf", ".wmv", ".ogv",  ".flv", ".mpeg"};
  return std::find(names.begin(), names.end(), lower_extension(path)) != names.end();
}

OpenedClip open_clip(const VideoSettings& settings, const io::StopWaiting& stop) {
  OpenedClip clip;
  const fs::path input = settings.input;
  if (!settings.format.empty()) {
    clip.kind = ClipKind::raw;
    const Size size = parse_size(settings.size);
    const ImageSpec spec =
        naming_option("format", [&] { return io::raw_spec(settings.format, size.width, size.height); });
    clip.reader = io::open_raw_frames(open_bytes(settings, stop), spec);
  } else if (has_raw_name(input)) {
    throw UsageError(fmt::format("{}: raw frames need --size WxH and --format NAME", settings.input));
  } else if (io::FramePattern::is_pattern(input) && !fs::exists(input)) {
    clip.kind = ClipKind::frame_files;
    clip.pattern.emplace(input);
    clip.first_number = io::first_number(*clip.pattern);
    clip.reader = io::open_frame_files(*clip.pattern);
  } else if (std::unique_ptr<io::ByteSource> bytes = y4m_bytes(settings, stop)) {
    clip.kind = ClipKind::y4m;
    clip.reader = io::open_y4m(std::move(bytes));
  } else {
    clip.kind = ClipKind::video;
    clip.stream = io::probe_video(input, stop);
    auto video = io::VideoReader::open(*clip.stream, stop);
    clip.video = video.get();
    clip.reader = std::move(video);
  }
  clip.info = clip.reader->info();
  if (settings.rate.known()) {
    if (clip.info.rate.known())
      throw UsageError(fmt::format("--rate: {} tells its own rate", shown_input(settings.input)));
    clip.info.rate = settings.rate;
  }
  return clip;
}

}  // namespace ungrain::cli
