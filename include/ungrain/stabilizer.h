// The generalized Anscombe transform: gives noise of linear data, with variance a level + b, the same
// deviation at all levels.
#pragma once

#include <vector>

#include "ungrain/export.h"
#include "ungrain/noise_model.h"

UNGRAIN_API_BEGIN
namespace ungrain {

// forward() gives values whose noise has the deviation 1 at every level; 0 stays 0. inverse() is not its
// algebraic inverse, which would be biased: it gives the level whose noisy samples have this mean after
// forward(). Up to 32 counts that mean is computed; above, the closed form of M. Mäkitalo and A. Foi holds
// (Optimal inversion of the generalized Anscombe transformation for Poisson-Gaussian noise, TIP 2013). Below
// level 0 the inverse is a straight line, so that remaining noise around black keeps its mean.
class Stabilizer {
 public:
  explicit Stabilizer(const PoissonGaussian& noise);  // a or b above 0

  double forward(double sample) const;
  double inverse(double stabilized) const;

 private:
  void fill_means();
  double root_of(double counts) const;

  double a_;
  double deviation_;            // sqrt(b)
  double offset_ = 0;           // 3/8 + b / a²: the radicand at level 0
  double start_ = 0;            // twice its root: the transform of level 0 before subtraction
  std::vector<double> levels_;  // counts from 0 on
  std::vector<double> means_;   // of forward() there
};

}  // namespace ungrain
UNGRAIN_API_END
