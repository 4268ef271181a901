// Bilateral of 8-bit RGB whose channels share a weight, on the CPU, in integers of 16 bits: twice as many
// lanes as in floats. Sums of integers do not depend on their order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/method.h"
#include "core/samples.h"
#include "cpu/tiles.h"
#include "methods/bilateral/bilateral.h"

namespace ungrain {

// Two taps side by side: a pixel's value and its right neighbour's lie in one word of 32 bits.
struct TapPair {
  std::ptrdiff_t offset;    // words, to the first tap
  std::uint32_t exponents;  // of the distances, negated, in units of 2^-10: the first tap's in the lower half
};

// The same in one half of the window, below and to the right. The weight of a pixel and such a tap is also
// that of the tap's pixel and the first one, which lies in its other half.
struct HalfPair {
  std::ptrdiff_t offset;
  std::uint32_t exponents;
  int dx;
  int dy;
};

// A tap for the few pixels whose weights are too small for 16 bits.
struct FloatTap {
  std::ptrdiff_t offset;
  float log2_weight;
};

// A tile's memory: three planes of scaled values, three of values less 128, both as words of a pixel and its
// right neighbour, with the window's border; a row of means for each channel; a row of samples, and its
// channels' bytes; weights.
class Rgb8Window {
 public:
  static constexpr int tile_width = 256;
  static constexpr int tile_height = 32;
  static constexpr int longest_vector = 16;            // words
  static constexpr std::size_t most_half_pairs = 120;  // 4 * 2^15 * 128 times this is less than 2^31

  // None where floats are needed: other images, borders and modes; strengths below 7.9 (city block: 13.6).
  static std::optional<Rgb8Window> of(const BilateralParams& params, const ImageSpec& spec);

  // Words of a worker's memory.
  std::size_t scratch() const {
    return 6 * static_cast<std::size_t>(plane) + 3 * tile_width + static_cast<std::size_t>(pitch) +
           bytes_pitch() + static_cast<std::size_t>(rows_of_weights()) * half.size() * weights_pitch();
  }
  // Weights of the pixels of so many rows are kept, one row of words for each pair.
  int rows_of_weights() const { return radius + 1; }
  std::size_t weights_pitch() const { return static_cast<std::size_t>(pitch); }
  std::size_t weights_row() const { return half.size() * weights_pitch(); }
  // From one channel's row of bytes to the next: vectors read beyond the row.
  std::size_t bytes_pitch() const { return static_cast<std::size_t>(pitch) + 4 * longest_vector; }

  void run(const StageCall& call) const;          // on float planes that hold samples
  void run_direct(const DirectCall& call) const;  // on the samples themselves; the same result

  int radius;
  Border border;
  ColourDistance distance;
  int pitch;             // words from one row to the next
  std::ptrdiff_t plane;  // and from one plane to the next
  int scale;             // values less 128 times scale / 128 are squared, in units of 2^-26
  int doublings;         // of the squares' sum
  float range_factor;    // squared differences times this are exponents of 2
  float least_weights;   // pixels whose weights sum up to less are filtered in floats
  int left;              // words of a row before the tile's first pixel
  std::vector<TapPair> pairs;
  std::vector<HalfPair> half;  // by rows; none where they would be too many to keep
  std::vector<FloatTap> taps;
};

// The vectorised parts. Whether there are any for the vector instructions in use; elsewhere floats serve.
bool rgb8_is_there();
// Bytes of a channel's row as words of both kinds.
void rgb8_words(const Rgb8Window& window, const std::uint8_t* bytes, int columns, std::int32_t* scaled,
                std::int32_t* values);
// Means of a tile's row. `scaled` and `values` are the row's first pixel in the first channel's planes;
// `means` has `tile_width` floats for each channel.
void rgb8_row(const Rgb8Window& window, const std::int32_t* scaled, const std::int32_t* values, int width,
              float* means);

// The same with each weight found once: those of the row's pixels with the pairs at least `dy` rows below are
// kept in `weights`, the memory of all rows, of which `row` is this one; then the means, from these and those
// of the rows above. Without `means` the weights only.
void rgb8_row_once(const Rgb8Window& window, const std::int32_t* scaled, const std::int32_t* values,
                   int width, int row, int dy, std::int32_t* weights, float* means);

}  // namespace ungrain
