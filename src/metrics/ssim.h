// SSIM after Wang 2004, row by row.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "metrics/exacting_sum.h"
#include "ungrain/image.h"

namespace ungrain {

inline constexpr int ssim_radius = 5;
inline constexpr int ssim_side = 2 * ssim_radius + 1;  // of the window, and of the smallest image

bool large_enough_for_ssim(const ImageSpec& spec);

// One channel. Rows come in one by one, are averaged along x at once and along y when eleven are there.
class ChannelSsim {
 public:
  ChannelSsim(int width, double white);
  void add_row(const double* truth, const double* image);
  double mean() const;

 private:
  // The window's weights along one axis from its centre outwards; the other half is the same.
  using HalfWindow = std::array<double, ssim_radius + 1>;
  // The local SSIM needs four averages over the window: of both images, of the sum of their squares (the
  // variances appear only as a sum) and of their product.
  static constexpr int average_count = 4;
  using Averages = std::array<std::vector<double>, average_count>;  // a row of each

  static HalfWindow gaussian_half_window();
  void make_room(Averages& row) const;
  void average_along_x(const double* in, double* out) const;
  void average_along_y(int which, double* out) const;
  double sum_of_local_ssim() const;

  int columns_;  // at which the whole window lies inside
  HalfWindow weights_;
  double c1_;
  double c2_;
  std::vector<double> squares_;
  std::vector<double> products_;
  std::array<Averages, ssim_side> ring_;  // averaged along x; row y is at y % 11
  Averages local_;                        // averaged along both
  std::int64_t rows_ = 0;
  ExactingSum total_;
};

}  // namespace ungrain
