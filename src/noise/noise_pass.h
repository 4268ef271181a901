// What the noise estimate looks at all over an image, for images that lie in the memory of a device: the
// device looks at every pixel, and the host concludes from the numbers that come back. These are the bits
// that the processor computes for an image in its own memory.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/host_device.h"
#include "noise/block_batch_simd.h"
#include "noise/latest_rows.h"
#include "ungrain/image.h"
#include "ungrain/noise_model.h"

namespace ungrain {

// The white estimate's blocks of 8 x 8 pixels, `step` pixels apart. They are measured in batches, of which a
// row of blocks fills whole ones.
struct WhiteBlocks {
  int step = 0;
  int columns = 0;
  int rows = 0;
  int channels = 0;  // colour channels; of rgb, planes 3 and 4 are their mean and red - 2 green + blue
  bool rgb = false;
  float scale = 1;  // of the samples
  float white = 0;  // scaled

  UNGRAIN_HOST_DEVICE int planes() const { return rgb ? 5 : channels; }
  UNGRAIN_HOST_DEVICE int row_batches() const { return (columns + batch_blocks - 1) / batch_blocks; }
  std::size_t batches() const { return static_cast<std::size_t>(row_batches()) * rows; }
};

// FlatWindows's windows of 16 x 16 pixels.
struct WindowLattice {
  static constexpr int level_count = 64;

  int first_channel = 0;
  int channels = 0;
  int step = 0;       // pixels from a window to the next
  int cell_step = 0;  // and from a cell to the next
  int columns = 0;    // of windows
  int rows = 0;
  int cells_across = 0;
  int cells_down = 0;
  int width = 0;           // of the image
  double level_scale = 1;  // WindowRow's
};
struct FlatWindow {
  double texture = 0;
  std::int64_t place = 0;
};
struct FoundWindows {
  struct Level {
    std::int64_t windows = 0;  // LevelBlocks's
    std::int64_t constant = 0;
    // The flattest BlockPool::most and maybe some more, in any order.
    std::span<const FlatWindow> by_window;
    std::span<const FlatWindow> by_ring;
  };
  std::array<Level, WindowLattice::level_count> levels;
};

// What one block shows of the limit that its mean is closer to, black or white.
enum class CutLimit : std::uint8_t { none, black, white };
struct CutBlock {
  double mean;  // distance from the limit
  double variance;
  std::uint8_t at_limit;  // samples
  std::uint8_t changes;   // pairs of neighbours of which exactly one is at the limit
  CutLimit limit;         // none: a block that is constant or not finite
  bool below_black;       // a sample is
  bool above_white;
};
// CutDetector's blocks of 8 x 8 pixels.
struct CutLattice {
  int step = 0;
  int columns = 0;
  int rows = 0;
  int channels = 0;
  double white = 0;
  bool whole_numbers = false;  // samples and white are integers of up to 16 bits
  std::size_t blocks() const { return static_cast<std::size_t>(columns) * rows; }
};

class NoisePass : public BlockSource {
 public:
  // Plane `p` of batch `b` is number b * planes + p. Valid until the next call of the same function, as are
  // the spans of the others.
  virtual std::span<const BatchStatistics> white_blocks(const WhiteBlocks& blocks) = 0;
  // Returns false if too many windows are equally flat to be listed.
  virtual bool windows(const WindowLattice& lattice, FoundWindows& found) = 0;
  // The blocks of one channel after the other.
  virtual std::span<const CutBlock> cut_blocks(const CutLattice& lattice) = 0;
  virtual Image on_host() = 0;  // a copy of the whole image
};

// The estimates through a pass over an image of this spec.
NoiseEstimate estimate_noise(NoisePass& pass, const ImageSpec& spec);
NoiseModelEstimate estimate_noise_model(NoisePass& pass, const ImageSpec& spec,
                                        const NoiseModelOptions& options);

}  // namespace ungrain
