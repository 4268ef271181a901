#include "noise/clipped_gaussian.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/portable_math.h"

namespace ungrain {
namespace {

// A Gaussian of strength 1 as weights at equal distances out to five standard deviations: its moments after a
// cut come out to four digits, without an error function.
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
  double weight(int i) const { return weights_[i]; }

 private:
  std::vector<double> weights_;
};

struct Moments {
  double mean = 0;
  double second = 0;  // about the mean, as the fourth
  double fourth = 0;
};

Moments moments_after_cut(double centre, double sigma, double white) {
  static const GaussianNodes nodes;
  const auto value = [&](int i) {
    return std::clamp(centre + sigma * GaussianNodes::position(i), 0.0, white);
  };
  Moments moments;
  for (int i = 0; i < GaussianNodes::count; ++i) moments.mean += nodes.weight(i) * value(i);
  for (int i = 0; i < GaussianNodes::count; ++i) {
    const double deviation = value(i) - moments.mean;
    const double square = deviation * deviation;
    moments.second += nodes.weight(i) * square;
    moments.fourth += nodes.weight(i) * square * square;
  }
  return moments;
}

}  // namespace

ClippedGaussian::ClippedGaussian(double sigma, double white) {
  // Nodes where the cut is felt, near black and near white; three sigma outside hardly a sample comes back
  // in.
  const double felt = std::min(4 * sigma, white / 2);
  add_nodes(-3 * sigma, felt, sigma, white);
  add_nodes(white - felt, white + 3 * sigma, sigma, white);
}

void ClippedGaussian::add_nodes(double first, double last, double sigma, double white) {
  constexpr int nodes = 129;
  for (int i = 0; i < nodes; ++i) {
    const Moments moments = moments_after_cut(first + (last - first) * i / (nodes - 1), sigma, white);
    // Far outside the kurtosis is positive and large; such areas are of no use, and none is claimed for them.
    const double kurtosis = moments.second > 0 ? moments.fourth / (moments.second * moments.second) - 3 : 0;
    means_.push_back(moments.mean);
    shapes_.push_back({moments.second / (sigma * sigma), std::min(kurtosis, 0.0)});
  }
}

ClippedGaussian::Shape ClippedGaussian::at_mean(double mean) const {
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
