// The flattest blocks of an image at each level, in which its noise is measured.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/workers.h"
#include "noise/latest_rows.h"
#include "noise/noise_pass.h"
#include "noise/window_sums_simd.h"
#include "ungrain/image.h"
#include "ungrain/noise_model.h"

namespace ungrain {

inline constexpr int measured_side = 8;     // of a block
inline constexpr int flatness_window = 16;  // of the window around it that measures flatness
inline constexpr int flatness_cell = 4;     // whose 16 cells' means are compared

// The flattest blocks seen so far, `most` of them.
class BlockPool {
 public:
  static constexpr int most = 256;

  struct Block {
    double texture = 0;       // how flat it is: a multiple of the variance of the cells' sums
    std::int64_t place = 0;   // in reading order: of equally flat blocks the first ones are kept
    std::size_t samples = 0;  // where its samples begin
    friend bool operator<(const Block& a, const Block& b) {
      return a.texture != b.texture ? a.texture < b.texture : a.place < b.place;
    }
  };

  bool full() const { return blocks_.size() == most; }
  bool wants(double texture, std::int64_t place) const {
    return !full() || Block{texture, place, 0} < least_flat();
  }
  // The memory for the samples of an accepted block; it stays valid until the block is removed.
  float* add(double texture, std::int64_t place, std::size_t samples);
  const std::vector<Block>& blocks() const { return blocks_; }  // in any order
  const Block& least_flat() const { return blocks_.front(); }   // of those that were added
  const float* samples(const Block& block) const { return samples_.get() + block.samples; }

  // Blocks whose samples lie elsewhere, in place of those above.
  static constexpr std::size_t no_samples = ~std::size_t{0};
  void set(std::vector<Block> blocks) { blocks_ = std::move(blocks); }
  Block& block(std::size_t index) { return blocks_[index]; }
  bool has_samples() const { return samples_ != nullptr; }

 private:
  std::vector<Block> blocks_;         // those that were added are a heap, the least flat first
  std::unique_ptr<float[]> samples_;  // of `most` blocks, not set before they are added
};

// Blocks of one range of levels.
struct LevelBlocks {
  std::int64_t windows = 0;   // that are not constant
  std::int64_t constant = 0;  // exactly constant
  // The flattest by the whole window, and by the ring around the block. The whole window notices objects in
  // the block itself; the ring does not favour blocks whose noise happens to be low.
  BlockPool by_window;
  BlockPool by_ring;
};

// Windows that may be among the flattest of all that the workers have seen. The flattest `BlockPool::most` do
// not depend on the order in which they are added.
class FlatCandidates {
 public:
  struct Candidate {
    double texture = 0;
    std::int64_t place = 0;
    friend bool operator<(const Candidate& a, const Candidate& b) {
      return a.texture != b.texture ? a.texture < b.texture : a.place < b.place;
    }
  };

  // Windows with more texture cannot be among the flattest.
  double limit() const { return limit_.load(std::memory_order_relaxed); }
  void add(const Candidate* candidates, std::size_t count);  // on any thread
  void start(double limit);                                  // clears it
  std::vector<Candidate> flattest();                         // in order

 private:
  void keep_flattest();

  std::mutex mutex_;
  std::vector<Candidate> candidates_;
  std::atomic<double> limit_{std::numeric_limits<double>::infinity()};
};

// Candidates of one worker on their way to those of all: others' limits are felt soon, and the lock is rare.
class CandidateBuffer {
 public:
  void offer(double texture, std::int64_t place, FlatCandidates& to) {
    if (!(texture <= limit_)) return;
    candidates_[count_++] = {texture, place};
    if (count_ == candidates_.size()) flush(to);
  }
  void flush(FlatCandidates& to) {
    if (count_ > 0) to.add(candidates_.data(), std::exchange(count_, 0));
    limit_ = to.limit();
  }
  void follow(const FlatCandidates& to) { limit_ = to.limit(); }

 private:
  double limit_ = std::numeric_limits<double>::infinity();
  std::size_t count_ = 0;
  std::array<FlatCandidates::Candidate, 32> candidates_;
};

// Examines the windows of an image. Levels and textures are those of the mean of its channels. A block's
// samples are those of the channels, one 8 x 8 block after the other.
class FlatWindows {
 public:
  // From black to white, evenly in the root of the level.
  static constexpr int level_count = WindowLattice::level_count;

  FlatWindows(const ImageSpec& image, int first_channel,
              int channels);  // [first, first + count) of the image

  // Examines the windows whose last row is in [first, end): in pieces on several threads at once, one piece a
  // worker at a time, and then collect() with the same rows. The result does not depend on the pieces.
  void prepare(int workers);
  void look_at(const LatestRows& rows, int first, int end, int worker);
  void collect(const LatestRows& rows, Workers& workers);

  // For a pass over the image, in place of look_at().
  WindowLattice lattice() const;
  void take(const FoundWindows& found, Workers& workers);

  // For an image whose pixels stay available, in place of collect(): the samples of the few blocks that are
  // measured in the end are fetched then. Most of the flattest blocks are not.
  void choose(Workers& workers);
  void request(int level, BlockPool LevelBlocks::*pool, std::size_t index);  // one of the pool's blocks
  void fetch(const BlockSource& source, Workers& workers);                   // all that were requested

  // Of one of the pool's blocks. It was requested and fetched, if the pool has no samples.
  const float* samples(const BlockPool& pool, const BlockPool::Block& block) const {
    return pool.has_samples() ? pool.samples(block) : fetched_.get() + block.samples;
  }

  // In the middle of a range of levels.
  double level_of(int range) const {
    const double root = (range + 0.5) / level_count;
    return root * root * white_;
  }
  int channels() const { return channels_; }
  NoiseBlock block_at(std::int64_t place) const;  // of BlockPool::Block
  const std::array<LevelBlocks, level_count>& levels() const { return levels_; }

  static int step(const ImageSpec& image);  // pixels from a window to the next

 private:
  struct LevelCandidates {
    FlatCandidates by_window;
    FlatCandidates by_ring;
  };
  // One worker's results and scratch memory.
  struct Level {
    std::int64_t windows = 0;
    std::int64_t constant = 0;
    CandidateBuffer by_window;
    CandidateBuffer by_ring;
  };
  struct WorkerState {
    std::array<Level, level_count> levels;
    std::vector<float> samples;
    std::vector<std::vector<float>> quads;  // two rows of sums over 2 x 2 pixels
    std::array<int, 2> quad_tops{-1, -1};   // the image's rows that they begin with
    std::vector<std::vector<float>> cells;  // the latest rows of cells that a window may need
    int first_cells = 0;  // rows of cells that begin in [first_cells, next_cells) were added without a gap
    int next_cells = -1;
    std::vector<double> sums;
    std::vector<double> textures;
    std::vector<double> rings;
    std::vector<std::int32_t> places;
  };

  // A block with a place in a pool, whose samples are still to be fetched.
  struct PendingBlock {
    std::int64_t place = 0;
    float* to = nullptr;
  };

  std::size_t block_samples() const {
    return static_cast<std::size_t>(channels_) * measured_side * measured_side;
  }
  WorkerState& state_of(int worker);
  void add_up(std::size_t level);  // the workers' results
  void add_cells(const LatestRows& rows, int y, WorkerState& state) const;
  void look_at_row(const LatestRows& rows, int y, WorkerState& state) const;
  void make_room(FlatCandidates& candidates, BlockPool& pool, std::vector<PendingBlock>& wanted) const;
  void fetch(const LatestRows& rows, std::vector<PendingBlock>& wanted) const;

  int width_;
  int height_;
  int first_channel_;
  int channels_;
  int step_;
  int cell_step_;  // between cells, along both axes
  int windows_across_;
  int cells_across_;
  double white_;
  double level_scale_;
  QuadSums quad_sums_;
  std::vector<std::unique_ptr<WorkerState>> worker_states_;  // of the workers that have looked at windows
  std::unique_ptr<std::array<LevelCandidates, level_count>> candidates_;
  std::array<LevelBlocks, level_count> levels_;
  std::vector<NoiseBlock> requested_;
  std::unique_ptr<float[]> fetched_;  // the samples of the requested blocks
};

}  // namespace ungrain
