// Where an image is flattest, level by level: the blocks that its noise is measured in.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ungrain/image.h"
#include "ungrain/noise_model.h"

namespace ungrain {

inline constexpr int measured_side = 8;     // of a block
inline constexpr int flatness_window = 16;  // of the window around it that says how flat it is
inline constexpr int flatness_cell = 4;     // whose 16 cells' means are compared

// The flattest blocks seen so far, `most` of them.
class BlockPool {
 public:
  static constexpr int most = 256;

  struct Block {
    double texture = 0;       // variance of the cells' means
    std::int64_t place = 0;   // in reading order: of equally flat blocks the first ones are kept
    std::size_t samples = 0;  // where its samples begin in samples()
    friend bool operator<(const Block& a, const Block& b) {
      return a.texture != b.texture ? a.texture < b.texture : a.place < b.place;
    }
  };

  bool wants(double texture, std::int64_t place) const {
    return blocks_.size() < most || Block{texture, place, 0} < blocks_.front();
  }
  // The place where the samples of a block that is wanted go.
  float* add(double texture, std::int64_t place, std::size_t samples);
  void merge(const BlockPool& other, std::size_t samples);

  const std::vector<Block>& blocks() const { return blocks_; }  // a heap, the least flat first
  const float* samples(const Block& block) const { return samples_.data() + block.samples; }

 private:
  std::vector<Block> blocks_;
  std::vector<float> samples_;
};

// Blocks of one range of levels.
struct LevelBlocks {
  std::int64_t windows = 0;   // that are not constant
  std::int64_t constant = 0;  // exactly
  // Flattest in the whole window, and in the ring around the block. The first knows when there is something
  // in the block itself, the second does not prefer blocks whose noise happens to be low.
  BlockPool by_window;
  BlockPool by_ring;
};

// Looks at the windows of an image, or of a strip of it, row by row. Levels and textures are of the mean of
// its channels; a block's samples are those channels', one 8 x 8 block after the other.
class FlatWindows {
 public:
  static constexpr int level_count = 64;  // from black to white, evenly in the root of the level

  // Channels [first, first + count) of the image; rows from first_row on.
  FlatWindows(const ImageSpec& image, int first_channel, int channels, int first_row = 0);

  void add_rows(const ConstImageView& rows);
  void merge(const FlatWindows& strip);

  // In the middle of a range of levels.
  double level_of(int range) const {
    const double root = (range + 0.5) / level_count;
    return root * root * white_;
  }
  int channels() const { return channels_; }
  int windows_across() const { return windows_across_; }
  NoiseBlock block_at(std::int64_t place) const;  // of BlockPool::Block
  const std::array<LevelBlocks, level_count>& levels() const { return levels_; }

  static int step(const ImageSpec& image);  // pixels from a window to the next

 private:
  using Row = std::vector<float>;

  std::size_t block_samples() const {
    return static_cast<std::size_t>(channels_) * measured_side * measured_side;
  }
  void add_cells(int y);
  void add_windows(int y);
  void add_window(int x, int y, double level, double texture, double ring);
  bool is_constant(int x, int y) const;
  void copy_block(int x, int y, float* to) const;
  const Row& cells(int y) const { return cells_[y / cell_step_ % cells_.size()]; }
  const float* row(int channel, int y) const {
    return rows_[channel * flatness_window + y % flatness_window].data();
  }

  int width_;
  int first_channel_;
  int channels_;
  int first_row_;
  int next_row_;
  int step_;
  int cell_step_;  // between cells, along both axes
  int windows_across_;
  double white_;
  std::vector<Row> rows_;          // the latest 16 of each channel
  std::vector<Row> channel_sums_;  // of the latest four rows
  Row column_sums_;                // of those four
  std::vector<Row> cells_;         // the latest rows of cells that a window may need: sums over 4 x 4 pixels
  std::array<LevelBlocks, level_count> levels_;
};

}  // namespace ungrain
