// A page of a file in memory, with smaller copies of it, and what the screen shows of it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ungrain/image.h"
#include "ungrain/measured_noise.h"
#include "view/document.h"

namespace ungrain::cli::view {

// A part of a page: pixels [x0, x1) and [y0, y1).
struct Part {
  int x0 = 0;
  int y0 = 0;
  int x1 = 0;
  int y1 = 0;
  int width() const { return x1 - x0; }
  int height() const { return y1 - y0; }
  bool empty() const { return x1 <= x0 || y1 <= y0; }
};

// The values that are shown as black and white.
struct Window {
  double low = 0;
  double high = 255;
};

class Picture {
 public:
  // Decodes the page. Throws Error where it does not fit into `memory` bytes.
  Picture(std::shared_ptr<Document> document, int page, std::size_t memory);

  Document& document() const { return *document_; }
  const std::shared_ptr<Document>& shared_document() const { return document_; }
  const ShelfFile& file() const { return document_->file(); }
  int page() const { return page_; }
  std::size_t bytes() const;

  const ImageSpec& spec() const { return levels_.front().spec(); }  // of what is shown
  // As it is in the file; the same as level 0 unless that has luma and chroma.
  const Image& pixels() const { return frame_ ? *frame_ : levels_.front(); }
  // Level 0 is the page itself, in red, green and blue where it has luma and chroma; each further one has
  // half the width and height, rounded up.
  int levels() const { return static_cast<int>(levels_.size()); }
  const Image& level(int level) const { return levels_[static_cast<std::size_t>(level)]; }

  // The first level of at most 256 x 256 pixels.
  const Image& thumbnail() const { return level(thumbnail_level_); }

  // The noise of a level, measured once. Any thread may call it.
  MeasuredNoise& noise(int level);
  std::mutex& noise_mutex() { return noise_mutex_; }  // hold it while using noise()

  Window usual_window() const { return window_; }
  const NoiseModelOptions& noise_options() const { return noise_options_; }

 private:
  void find_window();

  std::shared_ptr<Document> document_;
  int page_;
  std::optional<Image> frame_;  // of luma and chroma
  static constexpr int largest_thumbnail = 256;
  std::vector<Image> levels_;
  int thumbnail_level_ = 0;
  Window window_;
  std::mutex noise_mutex_;
  std::vector<std::unique_ptr<MeasuredNoise>> noise_;
  NoiseModelOptions noise_options_;
};

// A part of an image, in the same memory.
ConstImageView part_view(ConstImageView image, const Part& part);
// The same, copied.
Image copied(const ConstImageView& image, const Part& part);

// An image of half the size: means of 2 x 2 pixels.
Image halved(const ConstImageView& image);

// Red, green, blue and 255 for each pixel of the part. Of gray the value for all three; of independent
// channels the first three, or the first alone where there are fewer.
std::vector<std::uint8_t> shown(const ConstImageView& image, const Part& part, const Window& window);

// 128 + gain (a - b) on the scale of the window, in gray where `gray`. Both images have the same size.
std::vector<std::uint8_t> shown_difference(const ConstImageView& a, const ConstImageView& b, const Part& part,
                                           const Window& window, double gain, bool gray);

// Counts of 256 steps from low to high, for each channel that is shown.
std::vector<std::vector<std::int64_t>> histogram(const ConstImageView& image, const Part& part,
                                                 const Window& window);

}  // namespace ungrain::cli::view
