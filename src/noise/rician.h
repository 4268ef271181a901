// Moments of the Rician and the noncentral chi distribution, and the curves that give such noise one
// deviation at all levels.
#pragma once

#include <memory>

#include "core/point_curve.h"
#include "ungrain/rician.h"

namespace ungrain {

// Mean and variance of a magnitude around the true signal nu. Relative error below 1e-9 for any nu / sigma.
double rician_mean(double nu, double sigma, int coils);
double rician_variance(double nu, double sigma, int coils);

struct RicianTables;  // for one number of coils and sigma = 1

// forward() gives magnitudes noise of deviation sigma at every true signal nu from 0 on; it starts at 0 and
// grows. inverse() takes the mean of forward() to the true signal itself, not to the mean magnitude: what a
// perfect filter leaves of the background becomes 0. Below background() it is 0.
//
// The curve is found by optimisation (README.md). Deviation of forward(m) over sigma, by nu / sigma:
//
//   coils   1              2              4              8              32
//   0 to 1  0.988 - 1.009  0.994 - 1.004  0.997 - 1.001  0.999 - 1.000  1.000
//   above   0.993 - 1.012  0.996 - 1.006  0.998 - 1.003  0.999 - 1.001  1.000
//
// The inverse of the mean of forward() differs from nu by less than 1e-5 sigma for nu = 0 and by less than
// 1e-5 nu from nu = sigma on.
class RicianStabilizer {
 public:
  explicit RicianStabilizer(const Rician& noise);

  double forward(double magnitude) const;
  double inverse(double stabilized) const;
  double background() const;  // mean of forward() at nu = 0

  // The same for planes of floats, within 0.002 sigma.
  PointCurve forward_curve() const;
  // Near background() the inverse is steep, and would turn the little noise that a filter leaves there into a
  // signal: what exceeds background() by less than background_zone sigma becomes 0.
  PointCurve inverse_curve() const;
  static constexpr double background_zone = 0.2;

 private:
  double sigma_;
  std::shared_ptr<const RicianTables> tables_;
};

}  // namespace ungrain
