#include "clip_slices.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "signals.h"
#include "ungrain/error.h"

namespace ungrain::cli {
namespace {

// Frames that are read before the library asks for them.
constexpr std::size_t frames_ahead = 2;

}  // namespace

void copy_rows(const ConstImageView& from, const ImageView& to) {
  const auto sample = static_cast<std::size_t>(bytes_per_sample(from.spec.type));
  const auto width = static_cast<std::size_t>(from.spec.width);
  const auto channels = static_cast<std::size_t>(from.spec.channels);
  const auto row_of = [](const auto& view, int y, std::size_t channel) {
    using Byte = std::conditional_t<std::is_same_v<std::decay_t<decltype(view)>, ImageView>, std::byte,
                                    const std::byte>;
    return static_cast<Byte*>(view.data) + y * view.strides.y +
           static_cast<std::ptrdiff_t>(channel) * view.strides.channel;
  };
  const bool interleaved = from.spec.colour != Colour::ycbcr && from.strides.x == to.strides.x &&
                           from.strides.channel == to.strides.channel &&
                           from.strides.x == static_cast<std::ptrdiff_t>(sample * channels);
  for (int y = 0; y < from.spec.height; ++y) {
    if (interleaved) {
      std::memcpy(row_of(to, y, 0), row_of(from, y, 0), sample * width * channels);
      continue;
    }
    for (std::size_t channel = 0; channel < channels; ++channel) {
      const bool chroma = from.spec.colour == Colour::ycbcr && (channel == 1 || channel == 2);
      if (chroma && y % from.spec.chroma.y != 0) continue;
      const std::size_t columns =
          chroma ? (width - 1) / static_cast<std::size_t>(from.spec.chroma.x) + 1 : width;
      const std::byte* source = row_of(from, y, channel);
      std::byte* target = row_of(to, y, channel);
      if (from.strides.x == to.strides.x && from.strides.x == static_cast<std::ptrdiff_t>(sample)) {
        std::memcpy(target, source, sample * columns);
        continue;
      }
      for (std::size_t x = 0; x < columns; ++x) {
        std::memcpy(target, source, sample);
        source += from.strides.x;
        target += to.strides.x;
      }
    }
  }
}

ClipReader::ClipReader(io::FrameReader& clip, std::int64_t start, std::optional<std::int64_t> frames,
                       std::atomic<bool>& stopped)
    : clip_(clip), start_(start), most_(frames), stopped_(stopped), thread_([this] { read_ahead(); }) {}

ClipReader::~ClipReader() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool ClipReader::wants_more() const { return frames_.size() < frames_ahead || read_ <= wanted_; }

void ClipReader::read_ahead() {
  std::exception_ptr problem;
  try {
    const ImageSpec& spec = clip_.info().spec;
    io::Frame frame{Image(spec)};
    for (std::int64_t skipped = 0; skipped < start_; ++skipped) {
      if (stopped_ || interrupted().cancelled() || !clip_.read(frame)) break;
    }
    while (!stopped_ && !interrupted().cancelled() && (!most_ || read_ < *most_) && clip_.read(frame)) {
      std::unique_lock lock(mutex_);
      labels_[read_] = {frame.words, frame.number};
      frames_.push_back(std::move(frame));
      ++read_;
      changed_.notify_all();
      changed_.wait(lock, [&] { return stopped_ || wants_more(); });
      if (blanks_.empty()) {
        frame = {Image(spec)};
      } else {
        frame = std::move(blanks_.back());
        blanks_.pop_back();
      }
    }
  } catch (...) {
    problem = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  problem_ = problem;
  ended_ = true;
  changed_.notify_all();
}

bool ClipReader::has(int slice) {
  std::unique_lock lock(mutex_);
  wanted_ = std::max(wanted_, slice);
  changed_.notify_all();
  changed_.wait(lock, [&] { return ended_ || read_ > slice; });
  return read_ > slice;
}

void ClipReader::read_rows(int slice, int first, const ImageView& rows) {
  if (!has(slice)) throw Error(ErrorCode::internal, "a frame was asked for that is not there");
  const Image* image = nullptr;
  {
    const std::lock_guard lock(mutex_);
    while (first_ < slice) {
      blanks_.push_back(std::move(frames_.front()));
      frames_.pop_front();
      ++first_;
    }
    if (slice < first_) throw Error(ErrorCode::internal, "a frame was asked for twice");
    image = &frames_.front().pixels;  // stays where it is until a later slice is read
    changed_.notify_all();
  }
  copy_rows(image->view().rows(first, rows.spec.height), rows);
}

FrameLabel ClipReader::take_label(int slice) {
  const std::lock_guard lock(mutex_);
  const auto found = labels_.find(slice);
  FrameLabel label = std::move(found->second);
  labels_.erase(found);
  return label;
}

std::exception_ptr ClipReader::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

int ClipReader::frames_read() const {
  const std::lock_guard lock(mutex_);
  return read_;
}

ClipWriter::ClipWriter(io::FrameWriter& clip, ClipReader& source, const ImageSpec& spec)
    : clip_(clip), source_(source), frame_{Image(spec)} {}

void ClipWriter::write_rows(int slice, int first, const ConstImageView& rows) {
  copy_rows(rows, frame_.pixels.view().rows(first, rows.spec.height));
  if (first + rows.spec.height < frame_.pixels.spec().height) return;
  FrameLabel label = source_.take_label(slice);
  frame_.words = std::move(label.words);
  frame_.number = label.number;
  clip_.write(frame_);
  ++written_;
}

}  // namespace ungrain::cli
