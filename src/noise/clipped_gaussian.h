// Gaussian noise that was cut off at black and white.
#pragma once

#include <vector>

namespace ungrain {

// For noise of one strength: properties of a flat area's noise by the area's mean after the cut.
class ClippedGaussian {
 public:
  ClippedGaussian(double sigma, double white);

  struct Shape {
    double variance_share;   // of the variance, left by the cut
    double excess_kurtosis;  // 0 for a Gaussian, down to -2 where only black and white are left
  };
  Shape at_mean(double mean) const;

 private:
  void add_nodes(double first, double last, double sigma, double white);  // first, last: before the cut
  void add_mirrored(double white);

  std::vector<double> means_;  // rising
  std::vector<Shape> shapes_;
};

}  // namespace ungrain
