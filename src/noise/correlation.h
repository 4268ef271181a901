// Noise that neighbouring pixels share, and its effect on the coefficients of patches.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "ungrain/noise_model.h"

namespace ungrain {

// How far a square of NoiseModel::Channel::correlation reaches; it has (2 reach + 1)² numbers.
int correlation_reach(const std::vector<double>& correlation);

// NoiseModel::Channel::correlation by distance: R(dx, dy) / R(0, 0), and 0 beyond the square. Refers to the
// numbers, which must outlive it.
class CorrelationSquare {
 public:
  explicit CorrelationSquare(const std::vector<double>& values)
      : values_(values), reach_(correlation_reach(values)) {}

  int reach() const { return reach_; }
  double at(int dx, int dy) const {
    if (std::abs(dx) > reach_ || std::abs(dy) > reach_) return 0;
    return values_[static_cast<std::size_t>((dy + reach_) * (2 * reach_ + 1) + dx + reach_)];
  }

 private:
  const std::vector<double>& values_;
  int reach_;
};

// What is wrong with a correlation; empty if it is valid.
std::string fault_of_correlation(const std::vector<double>& correlation);

// The covariances of coefficient (i, j) of one patch with coefficient (i, j) of another, over the variance of
// a pixel, by the patches' distance D: C_ij(D) = sum over t of A_ij(t) R(D + t), where A_ij is the
// autocorrelation of the cosine transform's function (i, j) and R the noise's.
class PatchCovariances {
 public:
  // For patches up to `reach` apart along each axis.
  PatchCovariances(const std::vector<double>& correlation, int reach);

  // Beyond these all covariances are 0 or negligible.
  int reach_x() const { return reach_x_; }
  int reach_y() const { return reach_y_; }
  bool within(int dx, int dy) const {
    return dx >= -reach_x_ && dx <= reach_x_ && dy >= -reach_y_ && dy <= reach_y_;
  }

  // For a distance within(). [j * 8 + i]; the same for (dx, dy) and (-dx, -dy).
  const NoiseModel::Spectrum& at(int dx, int dy) const {
    const bool back = dy < 0;
    return values_[static_cast<std::size_t>(back ? -dy : dy) * row() +
                   static_cast<std::size_t>(reach_x_ + (back ? -dx : dx))];
  }
  // Covariance of the pixels of two patches: R(D), the mean of at().
  double of_pixels(int dx, int dy) const;

 private:
  std::size_t row() const { return 2 * static_cast<std::size_t>(reach_x_) + 1; }

  int reach_x_ = 0;
  int reach_y_ = 0;
  std::vector<NoiseModel::Spectrum> values_;  // [dy >= 0][dx]
};

}  // namespace ungrain
