#include "noise/rician.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

#include "core/portable_math.h"
#include "noise/distributions.h"
#include "noise/stabilize.h"
#include "ungrain/error.h"

namespace ungrain {

void validate(const Rician& noise) {
  if (!(noise.sigma > 0) || std::isinf(noise.sigma)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("Rician noise takes a sigma above 0, got {}", noise.sigma));
  }
  if (noise.coils < 1 || noise.coils > Rician::most_coils) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("Rician noise takes 1 to {} coils, got {}", Rician::most_coils, noise.coils));
  }
}

// ---- moments
//
// With sigma = 1, m² is chi-squared distributed with 2 (coils + k) degrees of freedom, where k is Poisson
// distributed with the mean t = nu² / 2. So every mean over m is a mean over k of means over central chi
// distributions: sums of positive numbers, without the cancellation of series of 1F1.
namespace {

// Mean of the chi distribution with 2 n degrees of freedom: sqrt(2) gamma(n + 1/2) / gamma(n).
double chi_mean(double n) {
  constexpr double large = 24;  // the first term left out is below 1e-15 there
  static constexpr std::array<double, 9> series = {1,
                                                   -1. / 8,
                                                   1. / 128,
                                                   5. / 1024,
                                                   -21. / 32768,
                                                   -399. / 262144,
                                                   869. / 4194304,
                                                   39325. / 33554432,
                                                   -334477. / 2147483648.};
  double factor = 1;
  for (; n < large; n += 1) factor *= n / (n + 0.5);
  double sum = 0;
  for (std::size_t i = series.size(); i-- > 0;) sum = sum / n + series[i];
  return factor * std::sqrt(2 * n) * sum;
}

// Calls f(k, probability) for the numbers that a Poisson distribution takes; the rest has less than 1e-17.
template <class Function>
void for_poisson(double mean, Function f) {
  const double spread = 9 * std::sqrt(mean);
  const int first = static_cast<int>(std::max(mean - spread - 9, 0.0));
  const int last = static_cast<int>(mean + spread + 20);
  if (mean == 0) return f(0, 1.0);
  double probability = portable::exp(poisson_log_probability(first, mean));
  for (int k = first; k <= last; ++k) {
    f(k, probability);
    probability *= mean / (k + 1);
  }
}

struct Moments {
  double mean;
  double variance;
};

// The asymptotic series: mean = nu (1 + c1 / t + c2 / t² ...). The variance's leading 1 is split off, so that
// nothing cancels.
Moments far_moments(double nu, int coils) {
  const double t = nu * nu / 2;
  double term = 1;
  double above = 0;  // sum of c_k / t^(k - 1), k >= 2
  double first = 0;  // c1
  for (int k = 1; k <= 40; ++k) {
    term *= (k - 1.5) * (k - 0.5 - coils) / k;  // c_k, over t^(k - 1) from here on
    if (k == 1) {
      first = term;
    } else {
      term /= t;
      above += term;
    }
    if (std::abs(term) < 1e-18) break;
  }
  const double rest = first + above;
  return {nu * (1 + rest / t), 1 - 4 * above - 2 * rest * rest / t};
}

Moments near_moments(double nu, int coils) {
  const double t = nu * nu / 2;
  double sum = 0;
  double mean = 0;
  for_poisson(t, [&](int k, double probability) {
    sum += probability;
    mean += probability * chi_mean(coils + k);
  });
  mean /= sum;
  double variance = 0;
  for_poisson(t, [&](int k, double probability) {
    const double part = chi_mean(coils + k);
    const double within = 2.0 * (coils + k) - part * part;
    variance += probability * (within + (part - mean) * (part - mean));
  });
  return {mean, variance / sum};
}

Moments unit_moments(double nu, int coils) {
  const bool far = nu * nu / 2 > std::max(200.0, 8.0 * coils);
  return far ? far_moments(nu, coils) : near_moments(nu, coils);
}

void check_signal(double nu) {
  if (nu >= 0 && std::isfinite(nu)) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("a true signal is 0 or more, got {}", nu));
}

}  // namespace

double rician_mean(double nu, double sigma, int coils) {
  validate(Rician{sigma, coils});
  check_signal(nu);
  return sigma * unit_moments(nu / sigma, coils).mean;
}

double rician_variance(double nu, double sigma, int coils) {
  validate(Rician{sigma, coils});
  check_signal(nu);
  return sigma * sigma * unit_moments(nu / sigma, coils).variance;
}

// ---- the optimal curve

namespace {

// Densities of central chi distributions with 2 n degrees of freedom at m = 0, step, 2 step ... of one n
// after the other, times the step.
class ChiDensities {
 public:
  ChiDensities(int n, double step, std::size_t nodes) : n_(n), step_(step), values_(nodes) {
    double log_factor = portable::log(2 * step);  // 2 step / (2^n gamma(n))
    for (int i = 1; i < n; ++i) log_factor -= portable::log(i);
    log_factor -= n * portable::log(2);
    for (std::size_t i = 1; i < nodes; ++i) {
      const double m = step * static_cast<double>(i);
      values_[i] = portable::exp(log_factor + (2 * n - 1) * portable::log(m) - m * m / 2);
    }
  }
  void next() {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const double m = step_ * static_cast<double>(i);
      values_[i] *= m * m / (2 * n_);
    }
    ++n_;
  }
  const std::vector<double>& values() const { return values_; }

 private:
  int n_;
  double step_;
  std::vector<double> values_;
};

// The curve f for sigma = 1. The logarithm of its slope is linear between knots; from the last knot on it is
// f = offset + sqrt(m² - radicand), whose deviation is 1 up to terms of nu^-4.
class SlopeCurve {
 public:
  explicit SlopeCurve(int coils)
      : radicand_(coils - 0.5), first_(std::max(0.0, std::sqrt(2.0 * coils) - 4.5)) {
    const double last = std::sqrt(2.0 * coils) + 6;
    const int intervals = static_cast<int>(std::ceil((last - first_) / knot_step));
    for (int k = 0; k <= intervals; ++k) {
      const double at = first_ + knot_step * k + (k < intervals ? 0.3 : 0);  // a start without a pole
      logs.push_back(portable::log(far_slope(at)));
    }
  }
  static constexpr double knot_step = 0.25;

  std::vector<double> logs;  // of the slopes at the knots; the last one is fixed

  double last_knot() const { return first_ + knot_step * static_cast<double>(logs.size() - 1); }
  double radicand() const { return radicand_; }

  struct Place {
    std::size_t knot;
    double share;  // of the next knot
  };
  Place place(double m) const {
    const double at = std::max(0.0, (m - first_) / knot_step);
    const double knot = std::min(std::floor(at), static_cast<double>(logs.size() - 2));
    return {static_cast<std::size_t>(knot), at - knot};
  }
  double slope(double m) const {
    if (m >= last_knot()) return far_slope(m);
    const auto [knot, share] = place(m);
    return portable::exp(logs[knot] + share * (logs[knot + 1] - logs[knot]));
  }
  double far_slope(double m) const { return m / std::sqrt(std::max(m * m - radicand_, m * m / 4)); }

  // The integrals of the slope from 0 to 0, step, 2 step ...
  std::vector<double> integrated(double step, std::size_t nodes, const std::vector<double>& slopes) const {
    std::vector<double> values(nodes);
    for (std::size_t i = 1; i < nodes; ++i)
      values[i] = values[i - 1] + step * (slopes[i - 1] + slopes[i]) / 2;
    return values;
  }
  std::vector<double> slopes(double step, std::size_t nodes) const {
    std::vector<double> values(nodes);
    for (std::size_t i = 0; i < nodes; ++i) values[i] = slope(std::max(1e-3, step * static_cast<double>(i)));
    return values;
  }

 private:
  double radicand_;
  double first_;
};

// Solves A x = b for a positive definite A by Cholesky's method, in place; the result is in b.
void solve(std::vector<double>& a, std::vector<double>& b) {
  const std::size_t n = b.size();
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t i = j; i < n; ++i) {
      double sum = a[i * n + j];
      for (std::size_t k = 0; k < j; ++k) sum -= a[i * n + k] * a[j * n + k];
      a[i * n + j] = i == j ? std::sqrt(sum) : sum / a[j * n + j];
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= a[i * n + k] * b[k];
    b[i] /= a[i * n + i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= a[k * n + i] * b[k];
    b[i] /= a[i * n + i];
  }
}

// Gauss and Newton: least squares of (deviation - 1) over signals from 0 to 9 and of the logarithmic slope's
// second derivative.
class SlopeFit {
 public:
  explicit SlopeFit(int coils) : curve_(coils) {
    for (int i = 0; i < 30; ++i) signals_.push_back(0.1 * i);
    for (int i = 0; i < 25; ++i) signals_.push_back(3 + 0.25 * i);
    nodes_ = static_cast<std::size_t>((std::sqrt(2.0 * coils + 81) + 8) / step);
    fill_densities(coils);
  }

  SlopeCurve result() {
    double cost = measure();
    for (int round = 0; round < 50; ++round) {
      const std::vector<double> move = newton_step();
      const std::vector<double> before = curve_.logs;
      const double cost_before = cost;
      for (double share = 1; share > 1e-3; share /= 2) {
        for (std::size_t k = 0; k < move.size(); ++k) curve_.logs[k] = before[k] - share * move[k];
        cost = measure();
        if (cost < cost_before) break;
      }
      if (cost >= cost_before) curve_.logs = before;
      if (cost >= cost_before * (1 - 1e-6)) break;
    }
    return curve_;
  }

 private:
  static constexpr double step = 1. / 32;
  // Weight of smoothness. Less of it steepens the start of the curve and makes it wavy, which spoils the
  // shape of the noise: one coil, 0.01: deviations within 0.6 % and slopes from 0.77 to 13; 0.03: 1.3 % and
  // 0.84 to 7.7.
  static constexpr double smoothness = 0.03;

  void fill_densities(int coils) {
    densities_.assign(signals_.size(), std::vector<double>(nodes_));
    std::vector<std::vector<double>> shares(signals_.size());
    std::size_t most = 0;
    for (std::size_t j = 0; j < signals_.size(); ++j) {
      for_poisson(signals_[j] * signals_[j] / 2, [&](int k, double probability) {
        shares[j].resize(static_cast<std::size_t>(k) + 1);
        shares[j].back() = probability;
      });
      most = std::max(most, shares[j].size());
    }
    ChiDensities chi(coils, step, nodes_);
    for (std::size_t k = 0; k < most; ++k, chi.next()) {
      for (std::size_t j = 0; j < signals_.size(); ++j) {
        if (k >= shares[j].size() || shares[j][k] < 1e-14) continue;
        for (std::size_t i = 0; i < nodes_; ++i) densities_[j][i] += shares[j][k] * chi.values()[i];
      }
    }
    for (std::vector<double>& density : densities_) {
      double sum = 0;
      for (const double value : density) sum += value;
      for (double& value : density) value /= sum;
    }
  }

  double smoothness_weight() const { return smoothness / std::pow(SlopeCurve::knot_step, 1.5); }
  double second_difference(std::size_t k) const {
    return curve_.logs[k - 1] - 2 * curve_.logs[k] + curve_.logs[k + 1];
  }

  double measure() {
    slopes_ = curve_.slopes(step, nodes_);
    values_ = curve_.integrated(step, nodes_, slopes_);
    means_.clear();
    deviations_.clear();
    double cost = 0;
    for (const std::vector<double>& density : densities_) {
      double mean = 0;
      double variance = 0;
      for (std::size_t i = 0; i < nodes_; ++i) mean += density[i] * values_[i];
      for (std::size_t i = 0; i < nodes_; ++i)
        variance += density[i] * (values_[i] - mean) * (values_[i] - mean);
      means_.push_back(mean);
      deviations_.push_back(std::sqrt(variance));
      cost += std::pow(deviations_.back() - 1, 2);
    }
    for (std::size_t k = 1; k + 1 < curve_.logs.size(); ++k) {
      cost += std::pow(smoothness_weight() * second_difference(k), 2);
    }
    return cost;
  }

  // The change of the logarithmic slopes. A slope counts for every value above it: sums from the end.
  std::vector<double> newton_step() const {
    const std::size_t unknowns = curve_.logs.size() - 1;
    std::vector<double> matrix(unknowns * unknowns);
    std::vector<double> right(unknowns);
    std::vector<double> gradient(unknowns + 1);
    const auto add_row = [&](double residual) {
      for (std::size_t a = 0; a < unknowns; ++a) {
        right[a] += gradient[a] * residual;
        for (std::size_t b = 0; b < unknowns; ++b) matrix[a * unknowns + b] += gradient[a] * gradient[b];
      }
    };
    for (std::size_t j = 0; j < densities_.size(); ++j) {
      std::fill(gradient.begin(), gradient.end(), 0);
      double above = 0;
      for (std::size_t i = nodes_; i-- > 0;) {
        const double own = densities_[j][i] * (values_[i] - means_[j]);
        const double m = step * static_cast<double>(i);
        if (m < curve_.last_knot()) {
          const auto [knot, share] = curve_.place(m);
          const double change = (above + own / 2) * step * slopes_[i] / deviations_[j];
          gradient[knot] += (1 - share) * change;
          gradient[knot + 1] += share * change;
        }
        above += own;
      }
      add_row(deviations_[j] - 1);
    }
    for (std::size_t k = 1; k + 1 < curve_.logs.size(); ++k) {
      std::fill(gradient.begin(), gradient.end(), 0);
      gradient[k - 1] = gradient[k + 1] = smoothness_weight();
      gradient[k] = -2 * smoothness_weight();
      add_row(smoothness_weight() * second_difference(k));
    }
    solve(matrix, right);
    return right;
  }

  SlopeCurve curve_;
  std::vector<double> signals_;
  std::size_t nodes_ = 0;
  std::vector<std::vector<double>> densities_;  // [signal][node], sum 1
  std::vector<double> slopes_;
  std::vector<double> values_;
  std::vector<double> means_;
  std::vector<double> deviations_;
};

}  // namespace

// ---- tables

struct RicianTables {
  explicit RicianTables(int coils);

  double forward(double m) const;
  double inverse(double stabilized) const;

  static constexpr double step = 1. / 256;  // of m
  static constexpr double signal_step = 1. / 64;
  static constexpr double last_signal = 16;  // above it the asymptotic form holds

  double radicand = 0;
  double offset = 0;           // forward() far from 0 is offset + sqrt(m² - radicand)
  std::vector<double> values;  // of forward() at 0, step ... up to its last knot
  std::vector<double> means;   // of forward() at the signals 0, signal_step ... last_signal
  double curvature = 0;        // derivative of the mean by nu² at 0
  // Beyond the last signal nu² = d² - radicand + far_term / d², where d is the mean less the offset.
  double far_term = 0;

 private:
  void fill_means(int coils);
};

RicianTables::RicianTables(int coils) {
  const SlopeCurve curve = SlopeFit(coils).result();
  radicand = curve.radicand();
  const std::size_t nodes = static_cast<std::size_t>(std::floor(curve.last_knot() / step)) + 1;
  values = curve.integrated(step, nodes, curve.slopes(step, nodes));
  const double last = step * static_cast<double>(nodes - 1);
  offset = values.back() - std::sqrt(last * last - radicand);
  fill_means(coils);
}

void RicianTables::fill_means(int coils) {
  int most = 0;
  for_poisson(last_signal * last_signal / 2, [&](int k, double) { most = k; });
  const std::size_t nodes = static_cast<std::size_t>((std::sqrt(2.0 * (coils + most)) + 8) / step);
  std::vector<double> curve(nodes);
  for (std::size_t i = 0; i < nodes; ++i) curve[i] = forward(step * static_cast<double>(i));
  ChiDensities chi(coils, step, nodes);
  std::vector<double> chi_means;  // of forward() under the chi distributions with 2 (coils + k) degrees
  for (int k = 0; k <= most; ++k, chi.next()) {
    double mean = 0;
    for (std::size_t i = 0; i < nodes; ++i) mean += chi.values()[i] * curve[i];
    chi_means.push_back(mean);
  }
  curvature = (chi_means[1] - chi_means[0]) / 2;
  for (double nu = 0; nu <= last_signal; nu += signal_step) {
    double mean = 0;
    double sum = 0;
    for_poisson(nu * nu / 2, [&](int k, double probability) {
      mean += probability * chi_means[static_cast<std::size_t>(k)];
      sum += probability;
    });
    means.push_back(mean / sum);
  }
  const double d = means.back() - offset;
  far_term = (last_signal * last_signal - d * d + radicand) * d * d;
}

double RicianTables::forward(double m) const {
  const double at = m / step;
  const std::size_t last = values.size() - 1;
  if (!(at < static_cast<double>(last))) return offset + std::sqrt(m * m - radicand);
  if (!(at > 0)) return 0;
  const double below = std::floor(at);
  const double* value = values.data() + static_cast<std::size_t>(below);
  return value[0] + (at - below) * (value[1] - value[0]);
}

double RicianTables::inverse(double stabilized) const {
  if (!(stabilized > means.front())) return stabilized <= means.front() ? 0 : stabilized;  // NaN stays
  if (stabilized >= means.back()) {
    const double d = stabilized - offset;
    return std::sqrt(d * d - radicand + far_term / (d * d));
  }
  // nu² is a smooth function of the mean; nu is not, at 0.
  const auto above = std::upper_bound(means.begin() + 1, means.end() - 1, stabilized);
  const auto i = static_cast<std::size_t>(above - means.begin());
  const double share = (stabilized - means[i - 1]) / (means[i] - means[i - 1]);
  const double low = signal_step * static_cast<double>(i - 1);
  const double high = low + signal_step;
  return std::sqrt(low * low + share * (high * high - low * low));
}

namespace {

// About 20 ms of work for each number of coils, done once in a process.
std::shared_ptr<const RicianTables> tables_for(int coils) {
  static std::mutex mutex;
  static std::map<int, std::shared_ptr<const RicianTables>> made;
  const std::lock_guard lock(mutex);
  std::shared_ptr<const RicianTables>& tables = made[coils];
  if (tables == nullptr) tables = std::make_shared<const RicianTables>(coils);
  return tables;
}

constexpr int curve_steps = 4096;

// Length of the tables in sigma. Beyond it the rest is constant, which is wrong by less than 0.02 sigma.
double curve_reach(double radicand) { return 64 + 11 * std::sqrt(radicand); }

// scale * sqrt(x (x + width)), x = value - start, and a table of what is missing to `wanted`. The last two
// entries are equal: beyond the table the rest is constant.
template <class Function>
PointCurve curve_of(double first, double last, double start, double width, Function wanted) {
  std::vector<double> rest(curve_steps + 1);
  for (int i = 0; i <= curve_steps; ++i) {
    const double value = first + (last - first) * i / curve_steps;
    const double x = std::max(value - start, 0.0);
    rest[i] = wanted(value) - std::sqrt(x) * std::sqrt(x + width);
  }
  rest[curve_steps] = rest[curve_steps - 1];
  PointCurve curve = table_curve(first, last, rest);
  curve.shape.base = CurveBase::hyperbola;
  curve.shape.factor = 1;
  curve.shape.shift = static_cast<float>(-start);
  curve.shape.width = static_cast<float>(width);
  curve.shape.lowest = 0;
  return curve;
}

}  // namespace

RicianStabilizer::RicianStabilizer(const Rician& noise) : sigma_(noise.sigma) {
  validate(noise);
  tables_ = tables_for(noise.coils);
}

double RicianStabilizer::forward(double magnitude) const {
  return sigma_ * tables_->forward(magnitude / sigma_);
}

double RicianStabilizer::inverse(double stabilized) const {
  return sigma_ * tables_->inverse(stabilized / sigma_);
}

double RicianStabilizer::background() const { return sigma_ * tables_->means.front(); }

PointCurve RicianStabilizer::forward_curve() const {
  // This hyperbola has the curve's own slope far from 0, and no pole where magnitudes are.
  const double width = 2 * std::sqrt(tables_->radicand) * sigma_;
  return curve_of(0, curve_reach(tables_->radicand) * sigma_, -sigma_, width,
                  [&](double value) { return forward(value); });
}

PointCurve RicianStabilizer::inverse_curve() const {
  // The mean grows with nu² at 0, so that the inverse is a root there. One entry lies below the curve's
  // start: the table is level there.
  const double width = sigma_ / tables_->curvature;
  const double reach = curve_reach(tables_->radicand) * sigma_;
  const double start = background() + background_zone * sigma_;
  const double first = start - reach / curve_steps;
  return curve_of(first, first + reach, start, width,
                  [&](double value) { return value < start ? 0 : inverse(value); });
}

// ---- simulation

void add_rician(const float* in, float* out, int width, int height, std::ptrdiff_t stride,
                const Rician& noise, std::uint64_t seed, int slice) {
  validate(noise);
  constexpr std::uint8_t use = 32;  // apart from the draws of add_noise() and of the simulated camera
  constexpr double two_pi = 6.283185307179586;
  const PhiloxKey key = philox_key(seed);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const SampleDraws draws(key, x, y, 0, use);
      double squares = 0;
      for (int coil = 0; coil < noise.coils; ++coil) {
        const auto index = static_cast<std::uint32_t>(slice) * static_cast<std::uint32_t>(noise.coils) +
                           static_cast<std::uint32_t>(coil);
        const auto [u, v] = draws.draw(index);
        const double radius = noise.sigma * std::sqrt(-2 * portable::log(u));
        // Only the sum of the squared means counts: the whole signal is in the first coil's real part.
        const double real = radius * portable::cos(two_pi * v) + (coil == 0 ? in[y * stride + x] : 0.0F);
        const double imaginary = radius * portable::sin(two_pi * v);
        squares += real * real + imaginary * imaginary;
      }
      out[y * stride + x] = static_cast<float>(std::sqrt(squares));
    }
  }
}

}  // namespace ungrain
