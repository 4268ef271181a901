// The rows of an image that arrives in bands of any height, for code that examines windows.
#pragma once

#include <cstddef>
#include <span>

#include "core/workers.h"
#include "ungrain/image.h"
#include "ungrain/noise_model.h"

namespace ungrain {

// The newest rows and the earlier ones that a window may still reach.
class LatestRows {
 public:
  LatestRows(const ConstImageView& before, const ConstImageView& newest, int first_newest)
      : before_(before), newest_(newest), first_newest_(first_newest) {}

  const ImageSpec& spec() const { return newest_.spec; }  // its height is that of the newest rows
  int end() const { return first_newest_ + newest_.spec.height; }

  ConstImageView row(int y) const {
    return y < first_newest_ ? before_.rows(y - first_newest_ + before_.spec.height, 1)
                             : newest_.rows(y - first_newest_, 1);
  }
  // The first sample of a channel in column x and row y.
  const std::byte* sample(int x, int y, int channel) const {
    const ConstImageView& view = y < first_newest_ ? before_ : newest_;
    const int row = y < first_newest_ ? y - first_newest_ + before_.spec.height : y - first_newest_;
    return static_cast<const std::byte*>(view.data) + row * view.strides.y + x * view.strides.x +
           channel * view.strides.channel;
  }
  // Whether the samples of row y are packed in pixels of so many bytes.
  bool has_pixels_of(std::ptrdiff_t bytes, int y) const {
    const Strides& strides = y < first_newest_ ? before_.strides : newest_.strides;
    const std::ptrdiff_t sample = bytes_per_sample(newest_.spec.type);
    return strides.x == bytes && (bytes == sample || strides.channel == sample);
  }
  std::ptrdiff_t stride_x(int y) const { return y < first_newest_ ? before_.strides.x : newest_.strides.x; }

 private:
  ConstImageView before_;  // may have no rows
  ConstImageView newest_;
  int first_newest_;
};

float sample_at(const LatestRows& rows, int x, int y, int channel);

// A block of 8 x 8 samples of a channel, and the same times `scale` as one block of a batch
// (block_batch_simd.h).
void copy_block(const LatestRows& rows, int channel, int x, int y, float* to);
void copy_into_batch(const LatestRows& rows, int channel, int x, int y, float scale, float* to);
// The blocks of the channels [first, first + count), one after the other.
void copy_blocks(const LatestRows& rows, int first_channel, int channels, int x, int y, float* to);

// An image whose pixels stay available until the estimate is done, unlike those of bands of rows.
class BlockSource {
 public:
  virtual ~BlockSource() = default;
  // As copy_blocks(), for many blocks.
  virtual void copy(std::span<const NoiseBlock> blocks, int first_channel, int channels, Workers& workers,
                    float* to) const = 0;
};

class RowsSource : public BlockSource {
 public:
  explicit RowsSource(const LatestRows& rows) : rows_(rows) {}
  void copy(std::span<const NoiseBlock> blocks, int first_channel, int channels, Workers& workers,
            float* to) const override;

 private:
  LatestRows rows_;
};

// Prefetches a block that will be copied soon.
void prefetch_block(const LatestRows& rows, int x, int y);

// Whether a block's samples are all equal, in each of the channels [first, first + count).
bool is_constant_block(const LatestRows& rows, int first_channel, int channels, int x, int y);

// Keeps the rows that windows may still reach, and gathers thin bands into thicker ones, which are examined
// faster.
class RowCollector {
 public:
  static constexpr int reach = 16;  // rows up to the newest, itself included, that a window may need

  explicit RowCollector(const ImageSpec& image) : spec_(image), height_(image.height) {}

  // Adds the next rows. Calls look(rows, first) with all unexamined ones, [first, rows.end()), once they are
  // enough or the image's last.
  template <class Look>
  void add(const ConstImageView& band, const Look& look) {
    const int end = added_ + band.spec.height;
    const bool enough = end - looked_at_ >= thick || end == height_;
    if (enough) {
      const ConstImageView kept = kept_rows_ > 0 ? kept_.view().rows(0, kept_rows_) : band.rows(0, 0);
      look(LatestRows(kept, band, added_), looked_at_);
      looked_at_ = end;
    }
    if (end < height_) keep(band, end - looked_at_ + reach - 1);
    added_ = end;
  }

  int rows() const { return added_; }

 private:
  static constexpr int thick = 64;

  void keep(const ConstImageView& band, int wanted);  // the latest `wanted` rows, as far as there are so many

  ImageSpec spec_;
  int height_;
  Image kept_;  // the first kept_rows_ of it are the latest; made for the first rows to keep
  int kept_rows_ = 0;
  int added_ = 0;
  int looked_at_ = 0;
};

}  // namespace ungrain
