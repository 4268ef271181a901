#include "scenes.h"

#include <optional>

#include "frames.h"

namespace ungrain::vapoursynth {
namespace {

constexpr std::size_t most_outlines = 256;

}  // namespace

Scenes::Scenes(const ImageSpec& spec, int frames, bool find_cuts)
    : spec_(spec), find_cuts_(find_cuts), starts_(static_cast<std::size_t>(frames), Start::unknown) {
  starts_[0] = Start::yes;
}

void Scenes::look(int first, int last, const FrameAt& frame_at, const VSAPI& api) {
  const std::lock_guard lock(mutex_);
  for (int frame = first; frame <= last; ++frame) {
    Start& start = starts_[static_cast<std::size_t>(frame)];
    if (start == Start::unknown) start = decide(frame, frame_at, api) ? Start::yes : Start::no;
  }
  while (outlines_.size() > most_outlines) {  // those that lie farthest from here
    const bool front_is_far = first - outlines_.begin()->first > outlines_.rbegin()->first - last;
    outlines_.erase(front_is_far ? outlines_.begin() : std::prev(outlines_.end()));
  }
}

bool Scenes::starts(int frame) {
  const std::lock_guard lock(mutex_);
  return starts_[static_cast<std::size_t>(frame)] == Start::yes;
}

// Properties decide where either is set.
bool Scenes::decide(int frame, const FrameAt& frame_at, const VSAPI& api) {
  const std::optional<std::int64_t> here = property(*frame_at(frame), api, "_SceneChangePrev");
  const std::optional<std::int64_t> before = property(*frame_at(frame - 1), api, "_SceneChangeNext");
  if (here || before) return here.value_or(0) != 0 || before.value_or(0) != 0;
  if (!find_cuts_) return false;
  return is_cut(outline(frame - 2, frame_at, api), *outline(frame - 1, frame_at, api),
                *outline(frame, frame_at, api), outline(frame + 1, frame_at, api));
}

const FrameOutline* Scenes::outline(int frame, const FrameAt& frame_at, const VSAPI& api) {
  if (frame < 0 || frame >= static_cast<int>(starts_.size())) return nullptr;
  if (const auto found = outlines_.find(frame); found != outlines_.end()) return &found->second;
  const VSFrame& from = *frame_at(frame);
  FrameOutline outline;
  if (spec_.colour == Colour::rgb) {
    outline = outline_of(image_of(from, api, spec_).view());
  } else {
    const ImageSpec luma = spec_.colour == Colour::ycbcr ? luma_spec(spec_) : spec_;
    Strides strides = interleaved_strides(luma);
    strides.y = api.getStride(&from, 0);
    outline = outline_of(ConstImageView(api.getReadPtr(&from, 0), luma, strides));
  }
  return &outlines_.emplace(frame, std::move(outline)).first->second;
}

}  // namespace ungrain::vapoursynth
