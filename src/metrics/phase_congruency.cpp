#include "metrics/phase_congruency.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace ungrain {
namespace {

constexpr int scales = 4;
constexpr int orientations = 4;
constexpr double smallest_wavelength = 6;  // pixels
constexpr double wavelength_factor = 2;    // from a scale to the next
constexpr double sigma_on_frequency = 0.55;
constexpr double theta_on_sigma = 1.2;
constexpr double noise_deviations = 2;    // above the mean of the noise's energy
constexpr double noise_correction = 1.7;  // Kovesi's, empirical
constexpr double epsilon = 1e-4;          // keeps the mean direction defined where nothing answers

// Cycles a pixel along one axis, of the transform's element `index`. Of odd lengths Kovesi's grid reaches
// from -1/2 to 1/2, ends included, and so divides by length - 1.
double frequency(int index, int length) {
  const int signed_index = index < (length + 1) / 2 ? index : index - length;
  return static_cast<double>(signed_index) / (length % 2 == 0 ? length : length - 1);
}

// Calls visit(at, x, y) with every element's place and its frequencies.
template <class Visit>
void for_each_frequency(int width, int height, const Visit& visit) {
  std::size_t at = 0;
  for (int row = 0; row < height; ++row) {
    for (int column = 0; column < width; ++column, ++at) {
      visit(at, frequency(column, width), frequency(row, height));
    }
  }
}

// Butterworth's low pass: keeps the corners of the spectrum, beyond the reach of the axes, out.
double low_pass(double radius) {
  constexpr double cutoff = 0.45;
  constexpr int sharpness = 15;
  return 1 / (1 + std::pow(radius / cutoff, 2 * sharpness));
}

// A Gaussian over the logarithm of the frequency; nothing of the mean.
Plane log_gabor(int width, int height, int scale) {
  const double centre = 1 / (smallest_wavelength * std::pow(wavelength_factor, scale));
  const double log_sigma = std::log(sigma_on_frequency);
  Plane filter(width, height);
  for_each_frequency(width, height, [&](std::size_t at, double x, double y) {
    if (at == 0) return;
    const double radius = std::sqrt(x * x + y * y);
    const double octaves = std::log(radius / centre);
    filter.values[at] = std::exp(-octaves * octaves / (2 * log_sigma * log_sigma)) * low_pass(radius);
  });
  return filter;
}

// A Gaussian over the angle to the orientation; the opposite direction is left out, which makes the filter's
// response complex: even and odd at once.
Plane angular_spread(int width, int height, int orientation) {
  const double angle = orientation * std::numbers::pi / orientations;
  const double sigma = std::numbers::pi / orientations / theta_on_sigma;
  Plane filter(width, height);
  for_each_frequency(width, height, [&](std::size_t at, double x, double y) {
    const double across = -y * std::cos(angle) - x * std::sin(angle);
    const double along = x * std::cos(angle) - y * std::sin(angle);
    const double difference = std::atan2(across, along);
    filter.values[at] = std::exp(-difference * difference / (2 * sigma * sigma));
  });
  return filter;
}

// The mean of the middle two where the count is even. NaN where a value is not finite.
double median(std::vector<double> values) {
  for (const double value : values) {
    if (!std::isfinite(value)) return std::numeric_limits<double>::quiet_NaN();
  }
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

double power(const ComplexPlane& response, std::size_t at) {
  const double even = response.real.values[at];
  const double odd = response.imaginary.values[at];
  return even * even + odd * odd;
}

}  // namespace

PhaseCongruency::PhaseCongruency(int width, int height)
    : fft_(width, height), responses_(scales, ComplexPlane(width, height)) {
  for (int scale = 0; scale < scales; ++scale) radial_.push_back(log_gabor(width, height, scale));
  for (int i = 0; i < orientations; ++i) {
    angular_.push_back(angular_spread(width, height, i));
    prepare_noise(i);
  }
}

// Kovesi sums over all pixels the square of the scales' even filters added up, in space. By Parseval's
// theorem that is a sum over frequencies, and the even part of a filter there is its mean with its mirror
// image.
void PhaseCongruency::prepare_noise(int orientation) {
  const Plane& angular = angular_[orientation];
  const auto all_scales = [&](std::size_t at) {
    double sum = 0;
    for (const Plane& radial : radial_) sum += radial.values[at];
    return sum * angular.values[at];
  };
  double even_energy = 0;
  double smallest_energy = 0;
  for (int y = 0; y < angular.height; ++y) {
    const std::size_t row = static_cast<std::size_t>(y) * angular.width;
    const std::size_t opposite_row =
        static_cast<std::size_t>((angular.height - y) % angular.height) * angular.width;
    for (int x = 0; x < angular.width; ++x) {
      const std::size_t opposite = opposite_row + (angular.width - x) % angular.width;
      const double even = (all_scales(row + x) + all_scales(opposite)) / 2;
      const double smallest = radial_[0].values[row + x] * angular.values[row + x];
      even_energy += even * even;
      smallest_energy += smallest * smallest;
    }
  }
  noise_gain_.push_back(even_energy / smallest_energy);
}

// The smallest scale answers almost only to noise. The energy of noise is Rayleigh distributed: its mean and
// deviation follow from the median of its square.
double PhaseCongruency::noise_threshold(int orientation, const Plane& smallest_scale_power) const {
  const double mean_power = median(smallest_scale_power.values) / std::numbers::ln2;
  const double tau = std::sqrt(mean_power * noise_gain_[orientation]);
  const double mean = tau * std::sqrt(std::numbers::pi / 2);
  const double deviation = tau * std::sqrt(2 - std::numbers::pi / 2);
  return (mean + noise_deviations * deviation) / noise_correction;
}

void PhaseCongruency::add_orientation(const ComplexPlane& spectrum, int orientation) {
  for (int scale = 0; scale < scales; ++scale) {
    ComplexPlane& response = responses_[scale];
    for (std::size_t at = 0; at < energy_.values.size(); ++at) {
      const double filter = radial_[scale].values[at] * angular_[orientation].values[at];
      response.real.values[at] = spectrum.real.values[at] * filter;
      response.imaginary.values[at] = spectrum.imaginary.values[at] * filter;
    }
    fft_.inverse(response);
  }
  add_energy(orientation);
}

// The energy: how far the responses of all scales reach along their mean direction, less how far they reach
// across.
void PhaseCongruency::add_energy(int orientation) {
  Plane smallest_scale_power(energy_.width, energy_.height);
  for (std::size_t at = 0; at < energy_.values.size(); ++at) {
    smallest_scale_power.values[at] = power(responses_[0], at);
  }
  const double threshold = noise_threshold(orientation, smallest_scale_power);
  for (std::size_t at = 0; at < energy_.values.size(); ++at) {
    double even_sum = 0;
    double odd_sum = 0;
    for (const ComplexPlane& response : responses_) {
      even_sum += response.real.values[at];
      odd_sum += response.imaginary.values[at];
      amplitude_.values[at] += std::sqrt(power(response, at));
    }
    const double length = std::sqrt(even_sum * even_sum + odd_sum * odd_sum) + epsilon;
    const double mean_even = even_sum / length;
    const double mean_odd = odd_sum / length;
    double energy = 0;
    for (const ComplexPlane& response : responses_) {
      const double even = response.real.values[at];
      const double odd = response.imaginary.values[at];
      energy += even * mean_even + odd * mean_odd - std::fabs(even * mean_odd - odd * mean_even);
    }
    energy_.values[at] += std::max(energy - threshold, 0.0);  // in this order a NaN stays
  }
}

Plane PhaseCongruency::of(const Plane& image) {
  energy_ = Plane(image.width, image.height);
  amplitude_ = Plane(image.width, image.height);
  const ComplexPlane spectrum = fft_.forward(image);
  for (int i = 0; i < orientations; ++i) add_orientation(spectrum, i);
  Plane congruency(image.width, image.height);
  for (std::size_t at = 0; at < congruency.values.size(); ++at) {
    // Where no wave has any amplitude, as in a constant image, there is no feature.
    const bool silent = amplitude_.values[at] == 0;
    congruency.values[at] = silent ? 0 : energy_.values[at] / amplitude_.values[at];
  }
  return congruency;
}

}  // namespace ungrain
