// Random numbers of one sample of an image: the same at any place and in any order of drawing.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/portable_math.h"
#include "noise/philox.h"

namespace ungrain {

// All the draws of one sample: a place in the whole image, a channel and a use.
class SampleDraws {
 public:
  // Two independent numbers, uniform in the open interval (0, 1) in steps of 2^-52.
  struct Uniforms {
    double first;
    double second;
  };

  // `use` separates draws that must not be correlated: two kinds of noise over the same image.
  SampleDraws(PhiloxKey key, int x, int y, int channel, std::uint8_t use)
      : key_(key),
        x_(static_cast<std::uint32_t>(x)),
        y_(static_cast<std::uint32_t>(y)),
        stream_(static_cast<std::uint32_t>(channel) | static_cast<std::uint32_t>(use) << 8U) {}

  Uniforms draw(std::uint32_t index) const {
    const auto words = philox({x_, y_, stream_, index}, key_);
    return {open_unit(words[0], words[1]), open_unit(words[2], words[3])};
  }

 private:
  // 52 bits and a half: neither 0 nor 1, and no rounding.
  static double open_unit(std::uint32_t low, std::uint32_t high) {
    const std::uint64_t bits = (static_cast<std::uint64_t>(high) << 32U | low) >> 12U;
    return (static_cast<double>(bits) + 0.5) * 0x1p-52;
  }

  PhiloxKey key_;
  std::uint32_t x_;
  std::uint32_t y_;
  std::uint32_t stream_;
};

// Mean 0, variance 1, by Box and Muller; within +-8.6.
inline double draw_normal(const SampleDraws& draws) {
  constexpr double two_pi = 6.283185307179586;
  const auto [u, v] = draws.draw(0);
  return std::sqrt(-2 * portable::log(u)) * portable::cos(two_pi * v);
}

// The Poisson distribution, exactly, for means up to largest_exact_poisson_mean. Above it the rounded normal,
// whose missing skewness is below a millionth. 0 if the mean is not above 0.
inline constexpr double largest_exact_poisson_mean = 1e12;
double draw_poisson(double mean, const SampleDraws& draws);

// The logarithm of the probability of `count` under a Poisson distribution, mean > 0.
double poisson_log_probability(double count, double mean);

// Constants for drawing large means by Hörmann's PTRS (The transformed rejection method for generating
// Poisson random variables, 1993): u, uniform in (-1/2, 1/2), is mapped to a count; hat(u) is a little above
// that count's probability; a second uniform v accepts it if v * hat(u) <= probability. For means from 10.
struct PoissonHat {
  explicit PoissonHat(double mean);

  double count(double u) const { return std::floor((2 * a / edge_distance(u) + b) * u + mean + 0.43); }
  double hat(double u) const { return height / (a / (edge_distance(u) * edge_distance(u)) + b); }

  static double edge_distance(double u) { return 0.5 - std::fabs(u); }
  static constexpr double inner = 0.07;   // at this edge distance and above, v <= surely_below accepts
  static constexpr double outer = 0.013;  // below this one, v > edge distance rejects

  double mean;
  double b;
  double a;
  double height;
  double surely_below;
};

}  // namespace ungrain
