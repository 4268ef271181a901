#include "noise/distributions.h"

#include <algorithm>
#include <cstdint>

namespace ungrain {
namespace {

constexpr double ln_sqrt_two_pi = 0.9189385332046728;

// k log(k / mean) + mean - k without the cancellation near k = mean. With v = (k - mean) / (k + mean) the
// logarithm is 2 atanh v, and 2 k v - (k - mean) is (k - mean) v.
double deviance(double k, double mean) {
  const double difference = k - mean;
  const double v = difference / (k + mean);
  if (std::fabs(v) > 0.1) return k * portable::log(k / mean) - difference;
  const double z = v * v;
  double series = 0;  // atanh v / v - 1; the first omitted term is below 1e-19
  for (int odd = 17; odd >= 3; odd -= 2) series = z * (1.0 / odd + series);
  return difference * v + 2 * k * v * series;
}

// log k! less Stirling's (k + 1/2) log k - k + log sqrt(2 pi), for k >= 16 to 2e-16.
double stirling_remainder(double k) {
  const double z = 1 / (k * k);
  return (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z * (1.0 / 1680 - z * (1.0 / 1188))))) / k;
}

// Adds probabilities until they exceed a uniform number. One draw; about `mean` steps.
double poisson_by_inversion(double mean, const SampleDraws& draws) {
  constexpr int beyond_any_count = 200;  // at means below 10 the steps of u are far coarser than this tail
  double left = draws.draw(0).first;
  double probability = portable::exp(-mean);
  int count = 0;
  while (left > probability && count < beyond_any_count) {
    left -= probability;
    ++count;
    probability *= mean / count;
  }
  return count;
}

double poisson_by_rejection(double mean, const SampleDraws& draws) {
  const PoissonHat hat(mean);
  for (std::uint32_t attempt = 0;; ++attempt) {
    const auto [first, v] = draws.draw(attempt);
    const double u = first - 0.5;
    const double distance = PoissonHat::edge_distance(u);
    const double count = hat.count(u);
    if (distance >= PoissonHat::inner && v <= hat.surely_below) return count;  // most; needs no logarithm
    if (count < 0 || (distance < PoissonHat::outer && v > distance)) continue;
    if (portable::log(v * hat.hat(u)) <= poisson_log_probability(count, mean)) return count;
  }
}

}  // namespace

// With the published constants the probabilities exceed the hat, and the sure region exceeds the
// probabilities, by up to 0.6 % (scanned over means from 10 to 1e12), which would distort the distribution as
// much. A hat higher by 1 % and a sure region lower by 2 % make it exact.
PoissonHat::PoissonHat(double of_mean)
    : mean(of_mean),
      b(0.931 + 2.53 * std::sqrt(mean)),
      a(-0.059 + 0.02483 * b),
      height(1.01 * (1.1239 + 1.1328 / (b - 3.4))),
      surely_below((0.9277 - 3.6224 / (b - 2)) / 1.02) {}

double poisson_log_probability(double count, double mean) {
  if (count < 16) {
    double factorial = 1;
    for (int i = 2; i <= count; ++i) factorial *= i;
    return count * portable::log(mean) - mean - portable::log(factorial);
  }
  return -deviance(count, mean) - stirling_remainder(count) - ln_sqrt_two_pi - 0.5 * portable::log(count);
}

double draw_poisson(double mean, const SampleDraws& draws) {
  if (!(mean > 0)) return 0;
  if (mean < 10) return poisson_by_inversion(mean, draws);
  if (mean <= largest_exact_poisson_mean) return poisson_by_rejection(mean, draws);
  return std::max(0.0, std::floor(mean + std::sqrt(mean) * draw_normal(draws) + 0.5));
}

}  // namespace ungrain
