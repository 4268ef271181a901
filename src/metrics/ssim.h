// SSIM after Wang 2004, row by row; of volumes with a window in three dimensions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "metrics/exacting_sum.h"
#include "ungrain/image.h"

namespace ungrain {

inline constexpr int ssim_radius = 5;
inline constexpr int ssim_side = 2 * ssim_radius + 1;  // of the window, and of the smallest image

bool large_enough_for_ssim(const ImageSpec& spec);

// One channel. Rows come in one by one, are averaged along x at once and along y when eleven are there. Of a
// volume the rows are those of slice after slice; the averages of a slice's rows are kept, and averaged along
// z when eleven slices are there.
class ChannelSsim {
 public:
  explicit ChannelSsim(const ImageSpec& spec);
  // `mask`: 1 where a pixel counts, else 0; null: there is no mask, neither here nor in other rows.
  void add_row(const double* truth, const double* image, const std::uint8_t* mask = nullptr);
  double mean() const;
  std::optional<double> mean_in_mask() const;  // absent where no window has its centre in the mask

 private:
  // The window's weights along one axis from its centre outwards; the other half is the same.
  using HalfWindow = std::array<double, ssim_radius + 1>;
  // The local SSIM needs four averages over the window: of both images, of the sum of their squares (the
  // variances appear only as a sum) and of their product.
  static constexpr int average_count = 4;
  using Averages = std::array<std::vector<double>, average_count>;  // a row, or the rows of a slice
  // The same average in eleven rows or slices, from the oldest to the newest.
  using Sources = std::array<const double*, ssim_side>;

  static HalfWindow gaussian_half_window();
  void average_along_x(const double* in, double* out) const;
  void average_across(const Sources& rows, double* out) const;
  void finish_line();
  void finish_slice();
  void add_local_ssim(const Averages& local, const std::uint8_t* mask);

  int width_;
  int lines_;    // of a slice; 0: an image
  int columns_;  // at which the whole window lies inside
  HalfWindow weights_;
  double c1_;
  double c2_;
  std::vector<double> squares_;
  std::vector<double> products_;
  std::array<Averages, ssim_side> rows_;    // averaged along x; row y is at y % 11
  std::array<Averages, ssim_side> slices_;  // of a volume, averaged along x and y; slice z is at z % 11
  Averages local_;                          // a row averaged along all axes
  Averages line_;                           // of a volume: a row averaged along x and y
  std::vector<std::uint8_t> masks_;         // of the last eleven rows or slices, in the same order
  std::int64_t row_ = 0;                    // of the image or the slice
  std::int64_t slice_ = 0;
  ExactingSum total_;
  ExactingSum masked_total_;
  std::int64_t windows_ = 0;
  std::int64_t masked_windows_ = 0;
};

}  // namespace ungrain
