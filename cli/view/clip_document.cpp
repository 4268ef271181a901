#include "view/clip_document.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include <fmt/format.h>

#include "io/failure.h"
#include "ungrain/error.h"

namespace ungrain::cli::view {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t most_scratch = std::uint64_t{16} << 30U;
constexpr std::size_t scenes_held = 4;
constexpr std::chrono::seconds longest_wait(1);

OpenedClip opened(const ShelfFile& file, const io::StopWaiting& stop) {
  VideoSettings settings;
  settings.input = file.path.string();
  return open_clip(settings, stop);
}

}  // namespace

ClipDocument::ClipDocument(const ShelfFile& file)
    : Document(file),
      stop_([this] { return stopping_.load(); }),
      clip_(opened(file, stop_)),
      frames_(file.name) {
  info_.spec = clip_.info.spec;
  info_.format = clip_.kind == ClipKind::y4m ? "Y4M" : clip_.info.format;
  if (clip_.stream) info_.note = clip_.stream->note;
  if (info_.spec.colour == Colour::ycbcr) {
    colours_ = FrameColours::of(clip_.stream ? clip_.stream->matrix : "",
                                clip_.stream ? clip_.stream->range : clip_.info.range, info_.spec.height);
  }
  std::error_code error;
  const fs::space_info space = fs::space(fs::temp_directory_path(error), error);
  const std::uint64_t room =
      error ? most_scratch : std::min<std::uint64_t>(most_scratch, space.available / 4);
  most_frames_ = std::max<std::uint64_t>(1, room / std::max<std::uint64_t>(1, Image(info_.spec).bytes()));
  thread_ = std::thread([this] { read_all(); });
}

ClipDocument::~ClipDocument() {
  stopping_ = true;
  thread_.join();
}

void ClipDocument::read_all() {
  try {
    io::Frame frame{Image(info_.spec)};
    while (!stopping_) {
      if (static_cast<std::uint64_t>(read_) >= most_frames_) {
        const std::lock_guard lock(mutex_);
        cut_off_ = true;
        break;
      }
      if (!clip_.reader->read(frame)) break;
      take(frame);
    }
  } catch (const std::exception& error) {
    const std::lock_guard lock(mutex_);
    problem_ = io::one_line(error.what());
  }
  const std::lock_guard lock(mutex_);
  if (outlines_.size() >= 2) {  // the last frame has none behind it
    const std::size_t last = outlines_.size() - 1;
    starts_.push_back(
        is_cut(last >= 2 ? &outlines_[last - 2] : nullptr, outlines_[last - 1], outlines_[last], nullptr));
  }
  ended_ = true;
  changed_.notify_all();
}

// Whether a scene starts with a frame is decided when the next one is there.
void ClipDocument::take(const io::Frame& frame) {
  frames_.write(frame.pixels.view().data, frame.pixels.bytes(),
                static_cast<std::uint64_t>(read_) * frame.pixels.bytes());
  FrameOutline outline = outline_of(frame.pixels.view());
  const std::lock_guard lock(mutex_);
  outlines_.push_back(std::move(outline));
  if (read_ == 0) starts_.push_back(1);
  if (outlines_.size() >= 3) {
    const std::size_t last = outlines_.size() - 1;
    const FrameOutline* two_before = last >= 3 ? &outlines_[last - 3] : nullptr;
    starts_.push_back(is_cut(two_before, outlines_[last - 2], outlines_[last - 1], &outlines_[last]));
  }
  constexpr std::size_t enough = 3;
  if (outlines_.size() > enough) outlines_.erase(outlines_.begin());
  ++read_;
  changed_.notify_all();
}

int ClipDocument::pages() const {
  const std::lock_guard lock(mutex_);
  constexpr std::int64_t most = 1'000'000'000;
  if (ended_) return read_;
  return static_cast<int>(std::clamp<std::int64_t>(clip_.info.frames, std::max(1, read_), most));
}

bool ClipDocument::complete() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

double ClipDocument::rate() const {
  const io::Ratio& rate = clip_.info.rate;
  return rate.known() ? static_cast<double>(rate.num) / static_cast<double>(rate.den) : 0;
}

std::string ClipDocument::note() const {
  const std::lock_guard lock(mutex_);
  std::string note = info_.note;
  const auto add = [&](const std::string& text) { note += (note.empty() ? "" : "; ") + text; };
  if (!problem_.empty()) add(problem_);
  if (cut_off_) add(fmt::format("the first {} frames are shown: there is no room for more", read_));
  return note;
}

Image ClipDocument::read(int page) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, longest_wait, [&] { return read_ > page || ended_; });
    if (page < 0 || (ended_ && page >= read_)) {
      throw Error(ErrorCode::io, problem_.empty()
                                     ? fmt::format("{}: there is no frame {}", file().name, page + 1)
                                     : problem_);
    }
    if (page >= read_) throw Outdated{};
  }
  Image pixels(info_.spec);
  frames_.read(pixels.view().data, pixels.bytes(), static_cast<std::uint64_t>(page) * pixels.bytes());
  return pixels;
}

// mutex_ is held.
PageSpan ClipDocument::known_scene(int page, bool& closed) const {
  const int decided = static_cast<int>(starts_.size());
  PageSpan span{page, page + 1};
  while (span.first > 0 && starts_[static_cast<std::size_t>(span.first)] == 0) --span.first;
  while (span.end < decided && starts_[static_cast<std::size_t>(span.end)] == 0) ++span.end;
  closed = span.end < decided || (ended_ && span.end >= read_);
  return span;
}

PageSpan ClipDocument::span_of(int page) { return scene(page, 0); }

PageSpan ClipDocument::scene(int page, int end) {
  const std::lock_guard lock(mutex_);
  if (page < 0 || page >= static_cast<int>(starts_.size())) throw Outdated{};
  bool closed = false;
  const PageSpan span = known_scene(page, closed);
  if (!closed && span.end < end) throw Outdated{};
  return span;
}

std::vector<MeasuredNoise>& ClipDocument::noise(int first) {
  const auto known = noise_.find(first);
  if (known != noise_.end()) return known->second;
  if (noise_.size() >= scenes_held) noise_.clear();
  // The frames that are looked at are known when the scene ends, or has as many as are looked through.
  constexpr int many = 1'000'000;
  const std::vector<int> of_a_long_scene = frames_to_measure(info_.spec, many);
  const PageSpan span = scene(first, first + of_a_long_scene.back() + 2);
  std::vector<MeasuredNoise> measured;
  for (const int frame : frames_to_measure(info_.spec, span.count()))
    measured.emplace_back(read(first + frame).view());
  return noise_[first] = std::move(measured);
}

}  // namespace ungrain::cli::view
