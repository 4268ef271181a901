// Large medians by counting. The number of a window's values below a threshold is a sum over a box, whose
// cost does not depend on the radius. The median is the largest threshold with no more than half of the
// values below it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "methods/median/kernels.h"

namespace ungrain {

// Pixels. Larger tiles share more work, but their medians need more thresholds.
inline constexpr int rank_tile_width = 96;
constexpr int rank_tile_height(int radius) { return radius < 32 ? 64 : 96; }

// A tile of 8-bit ranks with its border, and the results for its pixels.
struct RankTile {
  int width;  // of the output, at most rank_tile_width
  int height;
  int radius;
  const std::uint8_t* ranks;  // (width + 2 radius) x (height + 2 radius)
  std::ptrdiff_t ranks_stride;
  std::uint16_t* median;  // number of counted thresholds that the median reaches; rows of
                          // rank_tile_width
  std::uint16_t* below;   // values of the window below the highest reached threshold; or null
  std::uint8_t* room;     // room_bytes()

  static std::size_t room_bytes(int radius);
};

struct ReachedThresholds {
  bool none;  // some pixel's median reaches none of them
  bool all;   // some pixel's median reaches all of them
};

// A median reaches a threshold (1 to 255) where no more than half of the window's ranks are below it. Counts
// the thresholds [first, first + thresholds_at_once()), each at most once.
ReachedThresholds count_thresholds(const RankTile& tile, int first);
int thresholds_at_once();

// The worker's memory, and the medians of a tile. T: the samples' type.
template <class T>
class LargeMedian {
 public:
  explicit LargeMedian(int radius);

  static std::size_t scratch_floats(int radius);

  // `values`: (width + 2 radius) x (height + 2 radius) samples of one channel, `stride` apart from row to
  // row. The median of the output pixel (x, y) goes to out[y * out_stride + x * out_step].
  void filter(const T* values, std::ptrdiff_t stride, int width, int height, T* out,
              std::ptrdiff_t out_stride, int out_step, float* scratch) const;

 private:
  int radius_;
};

extern template class LargeMedian<std::uint8_t>;
extern template class LargeMedian<std::uint16_t>;
extern template class LargeMedian<float>;

}  // namespace ungrain
