// Variance stabilisation: a curve f for each channel that gives noise which depends on the level one
// deviation at all levels, so that methods for one sigma can be used.
#pragma once

#include <optional>
#include <vector>

#include "core/point_curve.h"
#include "ungrain/noise_model.h"

namespace ungrain {

// The channel's Poisson-Gaussian parameters, if its variance is linear in the level with a > 0 and its
// spectrum white; else nothing.
std::optional<PoissonGaussian> as_poisson_gaussian(const NoiseModel& model, int channel);

// The deviation of one of the image's own channels (not of the opponent space's) by that channel's level, in
// pixel units. The level of an rgb pixel is assumed to be its channel's.
class ChannelDeviation {
 public:
  ChannelDeviation(const NoiseModel& model, const ImageSpec& spec, int channel);
  explicit ChannelDeviation(double sigma) : sigma_(sigma) {}  // the same at all levels

  ChannelDeviation divided_by(double factor) const;
  double at(double level) const;
  double mean() const;  // root mean square over the model's levels
  std::optional<PoissonGaussian> poisson_gaussian() const;

 private:
  struct Part {  // a channel of the model
    int channel = 0;
    double weight = 0;  // times its variance
  };
  const NoiseModel* model_ = nullptr;  // must outlive this object
  std::vector<Part> parts_;
  double sigma_ = 0;
  double factor_ = 1;
};

// The deviation of each image channel's noise after stabilisation. f maps [0, white] onto itself, so it is in
// pixel units too.
std::vector<double> stabilized_deviations(const NoiseModel& model, const ImageSpec& spec);
// Root mean square over the channels: the sigma of a method that takes one for all.
double stabilized_sigma(const NoiseModel& model, const ImageSpec& spec);

bool is_zero(const NoiseModel& model);

// The curve f that stabilises the noise of a channel. [0, white] is mapped onto itself; beyond it f continues
// as a straight line (for Poisson-Gaussian noise, unchanged).
PointCurve stabilizing_curve(const ChannelDeviation& deviation, double white);

// The unbiased inverse: from the mean of f(z) to the mean of z, which is Gaussian with that deviation.
// Poisson-Gaussian noise has the exact unbiased inverse of Makitalo and Foi.
PointCurve restoring_curve(const ChannelDeviation& deviation, double white);

// A table over evenly spaced values from `first` to `last`.
PointCurve table_curve(double first, double last, const std::vector<double>& values);

}  // namespace ungrain
