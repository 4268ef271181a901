#include "noise/clipped_gaussian.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "core/portable_math.h"
#include "noise/clipped_gaussian_simd.h"

namespace ungrain {
namespace {

// A Gaussian of deviation 1 as weights at equal distances up to five deviations. Its moments after a cut are
// accurate to four digits, without an error function.
class GaussianNodes {
 public:
  static constexpr int count = 401;
  static constexpr double reach = 5;

  GaussianNodes() : weights_(count) {
    double sum = 0;
    for (int i = 0; i < count; ++i) {
      weights_[i] = portable::exp(-0.5 * position(i) * position(i));
      sum += weights_[i];
    }
    for (double& weight : weights_) weight /= sum;
  }
  static double position(int i) { return reach * (2.0 * i / (count - 1) - 1); }
  const double* weights() const { return weights_.data(); }

 private:
  std::vector<double> weights_;
};

}  // namespace

ClippedGaussian::ClippedGaussian(double sigma, double white) {
  // Nodes near black and near white, where the cut has an effect. From three sigma outside hardly a sample
  // comes back in.
  const double felt = std::min(4 * sigma, white / 2);
  add_nodes(-3 * sigma, felt, sigma, white);
  add_mirrored(white);
}

void ClippedGaussian::add_nodes(double first, double last, double sigma, double white) {
  static const GaussianNodes gaussian;
  constexpr std::size_t nodes = 129;
  std::array<double, cut_areas> centres{};
  for (std::size_t i = 0; i < nodes; ++i) {
    centres[i] = first + (last - first) * static_cast<double>(i) / (nodes - 1);
  }
  std::array<double, GaussianNodes::count> offsets;
  for (int i = 0; i < GaussianNodes::count; ++i) offsets[i] = sigma * GaussianNodes::position(i);
  CutMoments moments;
  find_cut_moments(centres.data(), {gaussian.weights(), offsets.data(), GaussianNodes::count}, white,
                   moments);
  for (std::size_t i = 0; i < nodes; ++i) {
    // Far outside the kurtosis is positive and large. Such areas are useless and get a kurtosis of 0.
    const double second = moments.second[i];
    const double kurtosis = second > 0 ? moments.fourth[i] / (second * second) - 3 : 0;
    means_.push_back(moments.mean[i]);
    shapes_.push_back({second / (sigma * sigma), std::min(kurtosis, 0.0)});
  }
}

// White is the mirror image of black.
void ClippedGaussian::add_mirrored(double white) {
  const std::size_t count = means_.size();
  for (std::size_t i = count; i-- > 0;) {
    means_.push_back(white - means_[i]);
    shapes_.push_back(Shape{shapes_[i]});
  }
}

ClippedGaussian::Shape ClippedGaussian::at_mean(double mean) const {
  const std::ptrdiff_t near_black = static_cast<std::ptrdiff_t>(means_.size() / 2);
  const auto middle = means_.begin() + near_black;
  // Most means lie between the nodes near black and those near white, which have the same shape.
  if (mean >= middle[-1] && mean < middle[0]) return shapes_[static_cast<std::size_t>(near_black)];
  const auto above = std::upper_bound(means_.begin(), means_.end(), mean);
  if (above == means_.begin()) return shapes_.front();
  if (above == means_.end()) return shapes_.back();
  const auto i = static_cast<std::size_t>(above - means_.begin());
  const double t = (mean - means_[i - 1]) / (means_[i] - means_[i - 1]);
  const auto between = [t](double a, double b) { return a + t * (b - a); };
  return {between(shapes_[i - 1].variance_share, shapes_[i].variance_share),
          between(shapes_[i - 1].excess_kurtosis, shapes_[i].excess_kurtosis)};
}

}  // namespace ungrain
