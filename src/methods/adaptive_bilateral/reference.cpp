#include <algorithm>
#include <cmath>
#include <vector>

#include "core/window.h"
#include "methods/adaptive_bilateral/adaptive_bilateral.h"

namespace ungrain {
namespace {

double squared(double v) { return v * v; }

// One pixel and the channels [first, first + count) that share its weights.
class Pixel {
 public:
  Pixel(const AdaptiveBilateralParams& params, const BorderedPlanes<const double>& image, int x, int y,
        int first, int count)
      : params_(params), image_(image), x_(x), y_(y), first_(first), count_(count) {}

  void filter(double* result) const {
    const double sigma_range = params_.sigma_range.value();
    std::vector<double> centre(static_cast<std::size_t>(count_));
    if (params_.centre == VarianceCentre::mean) {
      mean(sigma_range, centre.data());
    } else {
      for (int c = 0; c < count_; ++c) centre[static_cast<std::size_t>(c)] = image_.at(first_ + c, x_, y_);
    }
    const double epsilon = params_.epsilon.value();
    const double variance = this->variance(sigma_range, centre);
    mean(params_.factor.value() * std::sqrt(std::max(variance + epsilon, epsilon)), result);
  }

 private:
  // Calls visit(dx, dy, weight) for every pixel of the window; weights are for this strength.
  template <class Visit>
  void for_window(double sigma_range, Visit visit) const {
    for (int dy = -params_.radius; dy <= params_.radius; ++dy) {
      for (int dx = -params_.radius; dx <= params_.radius; ++dx) {
        if (!in_window(params_.window, params_.radius, dx, dy) || !image_.counts(x_ + dx, y_ + dy)) continue;
        double difference = 0;
        if (dx != 0 || dy != 0) {
          for (int c = first_; c < first_ + count_; ++c) {
            const double d = image_.at(c, x_ + dx, y_ + dy) - image_.at(c, x_, y_);
            if (d != 0) difference += squared(d / sigma_range);  // a strength of 0 keeps equal values only
          }
        }
        const double distance =
            squared(dx / params_.sigma_space.value()) + squared(dy / params_.sigma_space.value());
        visit(dx, dy, std::exp(-distance / 2) * std::exp(-difference / divisor() / 2));
      }
    }
  }

  void mean(double sigma_range, double* result) const {
    double weights = 0;
    std::fill_n(result, count_, 0.0);
    for_window(sigma_range, [&](int dx, int dy, double weight) {
      weights += weight;
      for (int c = 0; c < count_; ++c) result[c] += weight * image_.at(first_ + c, x_ + dx, y_ + dy);
    });
    for (int c = 0; c < count_; ++c) result[c] /= weights;
  }

  double variance(double sigma_range, const std::vector<double>& centre) const {
    double weights = 0;
    double sum = 0;
    for_window(sigma_range, [&](int dx, int dy, double weight) {
      weights += weight;
      for (int c = 0; c < count_; ++c) {
        sum += weight *
               squared(image_.at(first_ + c, x_ + dx, y_ + dy) - centre[static_cast<std::size_t>(c)]) /
               divisor();
      }
    });
    return sum / weights;
  }

  int divisor() const { return difference_divisor(params_.colour, count_); }

  const AdaptiveBilateralParams& params_;
  const BorderedPlanes<const double>& image_;
  int x_;
  int y_;
  int first_;
  int count_;
};

}  // namespace

Pipeline adaptive_bilateral_reference(const AdaptiveBilateralParams& params, const ImageSpec& spec) {
  if (is_identity(params)) return {};
  const double white = spec.white();
  const auto run = [=](const StageCall& call) {
    filter_working_copy(call, params.colour, white, params.border,
                        [&](const auto& image, int x, int y, int first, int count, double* result) {
                          Pixel(params, image, x, y, first, count).filter(result);
                        });
  };
  return {.stages = {{.name = "adaptive-bilateral",
                      .reach = {.x = params.radius, .y = params.radius},
                      .planes = spec.colour_channels(),
                      .run = run}},
          .wraps = params.border == Border::wrap};
}

}  // namespace ungrain
