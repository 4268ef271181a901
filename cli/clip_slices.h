// A clip's frames as a sequence for the library: read ahead on a thread of their own, written in order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "io/clip.h"
#include "ungrain/sequence.h"

namespace ungrain::cli {

// Both are rows of images of one spec; of ycbcr they begin with a row of chroma.
void copy_rows(const ConstImageView& from, const ImageView& to);

// What a result needs to know of the frame it was made from.
struct FrameLabel {
  std::string words;
  int number = 0;
};

class ClipReader : public SliceReader {
 public:
  // Slice 0 is the frame `start` of the clip; there are at most `frames` slices. The destructor sets
  // `stopped`, which must end reads of the clip that wait.
  ClipReader(io::FrameReader& clip, std::int64_t start, std::optional<std::int64_t> frames,
             std::atomic<bool>& stopped);
  ClipReader(const ClipReader&) = delete;
  ClipReader& operator=(const ClipReader&) = delete;
  ~ClipReader() override;

  bool has(int slice) override;
  void read_rows(int slice, int first, const ImageView& rows) override;

  // For the writer, on any thread, once for each slice.
  FrameLabel take_label(int slice);
  // What ended the clip before its end; null: nothing. The frames before are good.
  std::exception_ptr problem() const;
  int frames_read() const;

 private:
  void read_ahead();
  bool wants_more() const;

  io::FrameReader& clip_;
  const std::int64_t start_;
  const std::optional<std::int64_t> most_;
  mutable std::mutex mutex_;  // for all that follows but the thread
  std::condition_variable changed_;
  std::deque<io::Frame> frames_;  // from slice `first_` on
  std::vector<io::Frame> blanks_;
  std::map<int, FrameLabel> labels_;
  int first_ = 0;
  int read_ = 0;
  int wanted_ = 0;  // has() waits for this slice
  bool ended_ = false;
  std::exception_ptr problem_;
  std::atomic<bool>& stopped_;
  std::thread thread_;
};

class ClipWriter : public SliceWriter {
 public:
  ClipWriter(io::FrameWriter& clip, ClipReader& source, const ImageSpec& spec);
  void write_rows(int slice, int first, const ConstImageView& rows) override;
  int frames_written() const { return written_; }

 private:
  io::FrameWriter& clip_;
  ClipReader& source_;
  io::Frame frame_;
  std::atomic<int> written_ = 0;
};

}  // namespace ungrain::cli
