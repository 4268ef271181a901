// The cosine transform of a small block, reduced to the energies that the noise estimator needs.
#pragma once

#include <array>
#include <vector>

#include "noise/drawn_blocks.h"

namespace ungrain {

// Bands of frequency from the lowest to the highest. A frequency is horizontal plus vertical of an 8 x 8
// block: 2-3, 4-5, 6-7, 8-9 and 10-14. The very lowest, which hold smooth shading, belong to no band.
inline constexpr int band_count = 5;

// The frequencies are split into two sets like the fields of a chessboard. A block's detail shows in both
// sets, but its noise in the two is independent: blocks selected by one set can be measured in the other.
inline constexpr int set_count = 2;

using BandEnergies = std::array<double, band_count>;  // sums of squared coefficients

struct BlockSpectrum {
  double mean = 0;
  std::array<BandEnergies, set_count> energy{};
  // Low-frequency energy outside the set, by which blocks are selected for it.
  std::array<double, set_count> busyness{};
  Neighbours neighbours;
};

class BlockTransform {
 public:
  static constexpr int largest_side = 8;

  BlockTransform(int width, int height);  // up to largest_side each

  // `block` holds height rows of width samples.
  BlockSpectrum operator()(const double* block) const;

  int samples() const { return width_ * height_; }
  int coefficients(int set, int band) const { return counts_[set][band]; }
  int coefficients(int band) const { return counts_[0][band] + counts_[1][band]; }
  int busyness_coefficients(int set) const { return busyness_counts_[set]; }

 private:
  // The set and band of a coefficient; band -1: shading, which only counts as busyness.
  struct Place {
    int set = 0;
    int band = 0;
  };
  using Samples = std::array<double, static_cast<std::size_t>(largest_side) * largest_side>;

  void count_coefficients();
  void transform(const double* block, Samples& coefficients) const;
  template <int width, int height>
  void transform_fixed(const double* block, Samples& coefficients) const;

  int width_;
  int height_;
  std::vector<double> along_x_;  // the basis, row k the k-th cosine
  std::vector<double> along_y_;
  std::vector<double> from_x_;  // along_x_ transposed
  std::vector<Place> places_;
  std::array<std::array<int, band_count>, set_count> counts_{};
  std::array<int, set_count> busyness_counts_{};
};

}  // namespace ungrain
