// Noise of magnitude MRI: moments, stabilising curves, estimate of sigma, and its use around a method.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "noise/rician.h"
#include "ungrain/denoiser.h"
#include "ungrain/error.h"
#include "ungrain/methods.h"
#include "ungrain/parameters.h"
#include "ungrain/volume.h"

namespace ungrain {
namespace {

// ---- moments

struct MomentCase {
  double nu;
  int coils;
  double mean;
  double variance;
};

// sqrt(2) gamma(coils + 1/2) / gamma(coils) 1F1(-1/2; coils; -nu² / 2), summed with 2600 decimal digits;
// above nu = 100 the asymptotic series with as many.
constexpr MomentCase moment_cases[] = {
    {0, 1, 1.2533141373155003, 0.42920367320510339},    {0, 4, 2.7416246753776568, 0.48349413936035796},
    {0, 32, 7.968812221998629, 0.49803177052527925},    {0.5, 1, 1.3304473406107031, 0.47990987386190759},
    {0.5, 32, 7.9843615966844679, 0.49996989339025588}, {1, 1, 1.5485724605511453, 0.60192333442257129},
    {1, 4, 2.9088632865068371, 0.5385143804126421},     {1, 32, 8.0308344666265246, 0.50569776964346136},
    {3, 1, 3.1725772879007179, 0.93475335229652579},    {3, 4, 4.0295478232980555, 0.76274433975390021},
    {3, 32, 8.511188584239779, 0.55966888350645594},    {10, 1, 10.050126936677421, 0.99494855667091597},
    {10, 32, 12.774773497565166, 0.80516208590666116},  {19.9, 1, 19.925141550440035, 0.99873419492800108},
    {20.1, 1, 20.12489107243805, 0.99875932250338595},  {20.1, 4, 20.273592597178169, 0.99144320364263583},
    {33, 32, 33.94152897390957, 0.97261091325698057},   {45, 4, 45.077729802356544, 0.99827586573655969},
    {45, 32, 45.6948038654293, 0.98489969994754845},    {1e4, 1, 10000.000050000001, 0.99999999499999992},
    {1e4, 32, 10000.00314999952, 0.9999996850001921},   {1e6, 1, 1000000.0000005, 0.99999999999949996},
    {1e6, 32, 1000000.0000315, 0.99999999996849998},
};

TEST(RicianMoments, are_those_of_the_closed_form) {
  for (const auto& [nu, coils, mean, variance] : moment_cases) {
    EXPECT_NEAR(rician_mean(nu, 1, coils), mean, 1e-12 * mean) << nu << ' ' << coils;
    EXPECT_NEAR(rician_variance(nu, 1, coils), variance, 1e-10 * variance) << nu << ' ' << coils;
    EXPECT_NEAR(rician_mean(7 * nu, 7, coils), 7 * mean, 1e-11 * mean);
    EXPECT_NEAR(rician_variance(7 * nu, 7, coils), 49 * variance, 1e-9 * variance);
  }
}

// Mean² + variance = nu² + 2 coils, also where the two ways of computing meet.
TEST(RicianMoments, add_up_to_the_mean_square) {
  for (const int coils : {1, 2, 7, 25, 64, 128}) {
    for (double nu = 0.1; nu < 300; nu *= 1.07) {
      const double mean = rician_mean(nu, 1, coils);
      EXPECT_NEAR(mean * mean + rician_variance(nu, 1, coils), nu * nu + 2 * coils,
                  1e-12 * (nu * nu + 2 * coils))
          << nu << ' ' << coils;
    }
  }
}

TEST(RicianMoments, refuse_what_is_no_noise) {
  EXPECT_THROW(rician_mean(1, 0, 1), Error);
  EXPECT_THROW(rician_mean(1, 1, 0), Error);
  EXPECT_THROW(rician_mean(1, 1, Rician::most_coils + 1), Error);
  EXPECT_THROW(rician_variance(-1, 1, 1), Error);
  EXPECT_THROW(rician_variance(std::numeric_limits<double>::infinity(), 1, 1), Error);
}

// ---- simulation

struct Stats {
  double mean = 0;
  double variance = 0;
};

template <class Values>
Stats stats_of(const Values& values) {
  Stats stats;
  for (const auto value : values) stats.mean += value / static_cast<double>(values.size());
  for (const auto value : values) {
    stats.variance += (value - stats.mean) * (value - stats.mean) / static_cast<double>(values.size());
  }
  return stats;
}

std::vector<float> drawn(double nu, const Rician& noise, int side, int slice = 0) {
  std::vector<float> plane(static_cast<std::size_t>(side) * static_cast<std::size_t>(side),
                           static_cast<float>(nu));
  add_rician(plane.data(), plane.data(), side, side, side, noise, 5, slice);
  return plane;
}

TEST(AddRician, has_the_moments_of_the_distribution) {
  constexpr int side = 400;
  for (const int coils : {1, 4}) {
    for (const double nu : {0.0, 3.0, 30.0}) {
      const Stats stats = stats_of(drawn(nu, {2, coils}, side));
      const double variance = rician_variance(nu, 2, coils);
      EXPECT_NEAR(stats.mean, rician_mean(nu, 2, coils), 5 * std::sqrt(variance) / side);
      EXPECT_NEAR(stats.variance, variance, 5 * 1.5 * variance / side);
    }
  }
}

TEST(AddRician, depends_on_seed_and_slice_alone) {
  EXPECT_EQ(drawn(3, {1, 2}, 16), drawn(3, {1, 2}, 16));
  EXPECT_NE(drawn(3, {1, 2}, 16), drawn(3, {1, 2}, 16, 1));
  std::vector<float> padded(10 * 4, 3);
  std::vector<float> tight(8 * 4, 3);
  add_rician(padded.data(), padded.data(), 8, 4, 10, {1, 1}, 5);
  add_rician(tight.data(), tight.data(), 8, 4, 8, {1, 1}, 5);
  for (int y = 0; y < 4; ++y) {
    EXPECT_TRUE(std::equal(tight.begin() + 8 * y, tight.begin() + 8 * (y + 1), padded.begin() + 10 * y));
    EXPECT_EQ(padded[static_cast<std::size_t>(10 * y + 9)], 3);
  }
}

// ---- the stabiliser

// Mean and variance of f(m) by integration over the Gaussian number x that has the signal and over the length
// r of the 2 coils - 1 others: another way than that of the library, which mixes chi distributions.
template <class Function>
Stats integrated(double nu, int coils, Function f) {
  constexpr double step = 0.02;
  const double others = 2 * coils - 1;
  const double middle = std::sqrt(others);
  const double log_factor = (1 - others / 2) * std::log(2) - std::lgamma(others / 2);
  double sum = 0;
  double mean = 0;
  double square = 0;
  const double first = std::max(0.0, step * std::floor((middle - 7) / step));
  for (double r = first; r < middle + 7; r += step) {
    const double density = r > 0        ? std::exp(log_factor + (others - 1) * std::log(r) - r * r / 2)
                           : coils == 1 ? std::exp(log_factor) / 2  // the first half step
                                        : 0;
    for (double x = -7; x < 7; x += step) {
      const double weight = density * std::exp(-x * x / 2);
      const double value = f(std::sqrt((nu + x) * (nu + x) + r * r));
      sum += weight;
      mean += weight * value;
      square += weight * value * value;
    }
  }
  mean /= sum;
  return {mean, square / sum - mean * mean};
}

class Stabilized : public ::testing::TestWithParam<int> {};

TEST_P(Stabilized, mean_comes_back_as_the_true_signal) {
  const RicianStabilizer stabilizer({.sigma = 1, .coils = GetParam()});
  const auto f = [&](double m) { return stabilizer.forward(m); };
  for (const double nu : {0.0, 1.0, 2.0, 3.0, 5.0, 10.0, 50.0}) {
    const double restored = stabilizer.inverse(integrated(nu, GetParam(), f).mean);
    EXPECT_NEAR(restored, nu, std::max(0.01, 0.0005 * nu)) << "nu " << nu;
  }
}

TEST_P(Stabilized, noise_has_one_deviation) {
  const RicianStabilizer stabilizer({.sigma = 1, .coils = GetParam()});
  const auto f = [&](double m) { return stabilizer.forward(m); };
  const double tolerated = GetParam() == 1 ? 0.0135 : GetParam() == 2 ? 0.007 : 0.004;
  for (const double nu : {0.0, 0.3, 0.6, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 50.0}) {
    EXPECT_NEAR(std::sqrt(integrated(nu, GetParam(), f).variance), 1, tolerated) << "nu " << nu;
  }
}

TEST_P(Stabilized, curves_are_the_functions) {
  const double sigma = 40;
  const RicianStabilizer stabilizer({.sigma = sigma, .coils = GetParam()});
  const PointCurve forward = stabilizer.forward_curve();
  const PointCurve inverse = stabilizer.inverse_curve();
  const auto at = [](const PointCurve& curve, float value) {
    return curve_at(curve.shape, curve.table.data(), value);
  };
  float last_forward = -1;
  float last_inverse = -1;
  for (float value = 0; value < static_cast<float>(60 * sigma); value += 1.7F) {
    const float stabilized = at(forward, value);
    EXPECT_NEAR(stabilized, stabilizer.forward(value), 0.002 * sigma) << value;
    EXPECT_GT(stabilized, last_forward) << value;
    last_forward = stabilized;
    const float restored = at(inverse, value);
    EXPECT_GE(restored, last_inverse) << value;
    const double zone = stabilizer.background() + RicianStabilizer::background_zone * sigma;
    if (value < zone - 1) {
      EXPECT_EQ(restored, 0) << value;
    }
    if (value > zone + 1) {
      const bool near = value < zone + 0.2 * sigma;
      EXPECT_NEAR(restored, stabilizer.inverse(value), (near ? 0.05 : 0.002) * sigma) << value;
      EXPECT_GT(restored, last_inverse) << value;
    }
    last_inverse = restored;
  }
  for (const double value : {1e2, 1e3, 1e5}) {
    const auto level = static_cast<float>(value * sigma);
    EXPECT_NEAR(at(forward, level), stabilizer.forward(level), 0.02 * sigma + 2e-7 * level);
    EXPECT_NEAR(at(inverse, level), stabilizer.inverse(level), 0.02 * sigma + 2e-7 * level);
  }
  EXPECT_NEAR(at(forward, 0), 0, 1e-5 * sigma);
  EXPECT_EQ(at(inverse, 0), 0);
  EXPECT_EQ(at(inverse, -100), 0);
  EXPECT_EQ(at(inverse, static_cast<float>(stabilizer.background() - 0.5)), 0);
  EXPECT_TRUE(std::isnan(at(forward, std::numeric_limits<float>::quiet_NaN())));
  EXPECT_TRUE(std::isnan(at(inverse, std::numeric_limits<float>::quiet_NaN())));
}

INSTANTIATE_TEST_SUITE_P(Coils, Stabilized, ::testing::Values(1, 2, 4, 8, 32));

// The same with draws and in floats, where the draws' own error allows it.
TEST(RicianStabilizer, mean_of_draws_comes_back_as_the_true_signal) {
  constexpr int side = 700;
  const double sigma = 25;
  for (const int coils : {1, 4}) {
    const RicianStabilizer stabilizer({sigma, coils});
    const PointCurve forward = stabilizer.forward_curve();
    for (const double nu : {0.0, 2.0, 3.0, 5.0, 10.0, 50.0}) {
      std::vector<float> samples = drawn(nu * sigma, {sigma, coils}, side);
      for (float& sample : samples) sample = curve_at(forward.shape, forward.table.data(), sample);
      const Stats stats = stats_of(samples);
      const double error = 4 * sigma / side;  // of the mean of the draws
      EXPECT_GE(stabilizer.inverse(stats.mean + error), nu * sigma) << nu;
      EXPECT_LE(stabilizer.inverse(stats.mean - error), nu * sigma) << nu;
      EXPECT_NEAR(std::sqrt(stats.variance), sigma, 0.02 * sigma) << nu;
    }
  }
}

TEST(RicianStabilizer, far_from_0_it_is_a_shift) {
  for (const int coils : {1, 32}) {
    const RicianStabilizer stabilizer({1, coils});
    for (const double nu : {20.0, 100.0, 1e4, 1e6}) {
      const double mean = stabilizer.forward(std::sqrt(nu * nu + 2 * coils - 1));  // nearly that of forward()
      EXPECT_NEAR(stabilizer.inverse(mean), nu, 2e-3 * coils / nu + 1e-9 * nu);
    }
  }
}

// ---- the estimate

enum class Outside { noise, masked, object };

// An ellipsoidal head of white matter 1: skin, skull, gray matter, folds of white matter, ventricles, with
// coarse and fine texture.
class Head {
 public:
  Head(int side, int depth) : side_(side), depth_(depth) {}

  double at(int column, int row, int slice) const {
    const double x = (column - (side_ - 1) / 2.0) * 128 / side_;
    const double y = (row - (side_ - 1) / 2.0) * 128 / side_;
    const double z = (slice - (depth_ - 1) / 2.0) * 20 / depth_;
    const double fold = 0.5 + 0.5 * std::sin(0.35 * x + 2 * std::sin(0.13 * y)) *
                                  std::cos(0.3 * y + 1.5 * std::sin(0.11 * x + 0.2 * z));
    double value = 0;
    const auto blend = [&](double level, double share) { value += share * (level - value); };
    const double head = inside(x, y, z, 46, 56, 30);
    blend(0.9, head);
    blend(0.15, inside(x, y, z, 43, 53, 28));
    blend(0.65, inside(x, y, z, 40, 50, 26));
    blend(1, inside(x, y, z, 30, 39, 20) * (0.25 + 0.75 * fold));
    blend(0.25, std::max(inside(x - 8, y, z, 5, 14, 12), inside(x + 8, y, z, 5, 14, 12)));
    const double texture = 0.04 * std::sin(0.25 * x + 0.15 * y) * std::sin(0.21 * y - 0.1 * z) +
                           0.015 * std::sin(0.9 * x + 0.3 * y) * std::cos(0.8 * y);
    return value * (1 + texture);
  }

 private:
  static double inside(double x, double y, double z, double a, double b, double c) {
    const double radius = std::sqrt(x * x / (a * a) + y * y / (b * b) + z * z / (c * c));
    return 1 / (1 + std::exp(-3 * (1 - radius) * std::min(a, b)));  // edges of about a pixel
  }

  int side_;
  int depth_;
};

struct Volume {
  int side;
  int depth;
  std::vector<float> samples = {};

  float* slice(int z) { return samples.data() + static_cast<std::ptrdiff_t>(z) * side * side; }
  RicianEstimate estimate(int coils) const {
    return estimate_rician(samples.data(), side, side, depth, coils);
  }
};

constexpr double white_matter = 1000;

Volume scanned(const Rician& noise, Outside outside, int side = 128, int depth = 12) {
  Volume volume{side, depth};
  volume.samples.resize(static_cast<std::size_t>(side) * side * depth);
  const Head head(side, depth);
  for (int z = 0; z < depth; ++z) {
    float* plane = volume.slice(z);
    for (int i = 0; i < side * side; ++i) {
      const double signal = head.at(i % side, i / side, z);
      plane[i] =
          static_cast<float>(white_matter * (outside == Outside::object ? 0.45 + 0.5 * signal : signal));
    }
    const std::vector<float> truth(plane, plane + side * side);
    add_rician(plane, plane, side, side, side, noise, 9, z);
    for (int i = 0; i < side * side && outside == Outside::masked; ++i) {
      if (truth[static_cast<std::size_t>(i)] < 0.1 * white_matter) plane[i] = 0;
    }
  }
  return volume;
}

struct EstimateCase {
  int coils;
  double share;  // sigma over white matter
  Outside outside;
  double tolerated = 0.03;  // more for the weakest noise without a background: edges and fine texture
};

class RicianEstimated : public ::testing::TestWithParam<EstimateCase> {};

TEST_P(RicianEstimated, sigma_is_found) {
  const auto [coils, share, outside, tolerated] = GetParam();
  const double sigma = share * white_matter;
  const RicianEstimate found = scanned({sigma, coils}, outside).estimate(coils);
  EXPECT_NEAR(found.sigma, sigma, tolerated * sigma)
      << "background " << found.background_sigma << ", object " << found.object_sigma;
  EXPECT_EQ(found.source,
            outside == Outside::noise ? RicianEstimate::Source::background : RicianEstimate::Source::object);
}

INSTANTIATE_TEST_SUITE_P(
    Phantoms, RicianEstimated,
    ::testing::Values(EstimateCase{1, 0.01, Outside::noise}, EstimateCase{1, 0.05, Outside::noise},
                      EstimateCase{1, 0.2, Outside::noise}, EstimateCase{1, 0.01, Outside::masked},
                      EstimateCase{1, 0.02, Outside::masked}, EstimateCase{1, 0.05, Outside::masked},
                      EstimateCase{1, 0.1, Outside::masked}, EstimateCase{1, 0.2, Outside::masked},
                      EstimateCase{1, 0.01, Outside::object}, EstimateCase{1, 0.05, Outside::object},
                      EstimateCase{1, 0.2, Outside::object}, EstimateCase{4, 0.02, Outside::noise},
                      EstimateCase{4, 0.2, Outside::masked}, EstimateCase{4, 0.2, Outside::object},
                      EstimateCase{8, 0.01, Outside::object, 0.035}, EstimateCase{8, 0.05, Outside::masked},
                      EstimateCase{32, 0.05, Outside::noise}, EstimateCase{32, 0.05, Outside::masked}));

// Weak noise of whole numbers is 0 now and then: those zeros are no mask.
TEST(RicianEstimate, whole_numbers) {
  for (const double sigma : {1.0, 3.0, 20.0}) {
    Volume volume = scanned({sigma, 1}, Outside::noise);
    for (float& sample : volume.samples) sample = std::round(sample);
    const RicianEstimate found = volume.estimate(1);
    EXPECT_NEAR(found.sigma, sigma, 0.03 * sigma);
    EXPECT_EQ(found.source, RicianEstimate::Source::background);
  }
}

// Each part is the mean of four neighbours with twice the deviation.
TEST(RicianEstimate, correlated_noise_is_read_off_the_background) {
  constexpr int side = 128;
  constexpr int depth = 8;
  const Head head(side, depth);
  Volume volume{side, depth};
  const double sigma = 50;
  for (int z = 0; z < depth; ++z) {
    // Real and imaginary parts: a signal far above the noise makes the magnitude Gaussian.
    constexpr float far = 1e5F;
    std::vector<float> parts[2];
    for (int part = 0; part < 2; ++part) {
      std::vector<float> white(side * side, far);
      add_rician(white.data(), white.data(), side, side, side, {100, 1}, 3, 2 * z + part);
      parts[part].resize(side * side);
      for (int i = 0; i < side * side; ++i) {
        const int x = i % side;
        const int y = i / side;
        const auto at = [&](int dx, int dy) {
          return white[static_cast<std::size_t>((y + dy) % side * side + (x + dx) % side)] - far;
        };
        parts[part][static_cast<std::size_t>(i)] = (at(0, 0) + at(1, 0) + at(0, 1) + at(1, 1)) / 4;
      }
    }
    for (int i = 0; i < side * side; ++i) {
      const auto place = static_cast<std::size_t>(i);
      volume.samples.push_back(
          std::hypot(static_cast<float>(white_matter * head.at(i % side, i / side, z)) + parts[0][place],
                     parts[1][place]));
    }
  }
  const RicianEstimate found = volume.estimate(1);
  EXPECT_EQ(found.source, RicianEstimate::Source::background);
  EXPECT_NEAR(found.sigma, sigma, 0.03 * sigma);
  EXPECT_LT(found.object_sigma, 0.5 * sigma);
}

// A background that was weakened says little about the object. Blocks with a part of it lower the estimate.
TEST(RicianEstimate, a_processed_background_is_not_believed) {
  const double sigma = 50;
  Volume volume = scanned({sigma, 1}, Outside::noise);
  const Head head(volume.side, volume.depth);
  for (int z = 0; z < volume.depth; ++z) {
    for (int i = 0; i < volume.side * volume.side; ++i) {
      if (head.at(i % volume.side, i / volume.side, z) < 0.1) volume.slice(z)[i] *= 0.1F;
    }
  }
  const RicianEstimate found = volume.estimate(1);
  EXPECT_EQ(found.source, RicianEstimate::Source::object);
  EXPECT_NEAR(found.sigma, sigma, 0.25 * sigma);
}

TEST(RicianEstimate, order_and_padding_of_slices_do_not_matter) {
  Volume volume = scanned({30, 1}, Outside::noise, 96, 6);
  const RicianEstimate expected = volume.estimate(1);
  RicianEstimator estimator(1);
  for (const int z : {3, 0, 5, 1, 4, 2}) {
    constexpr std::ptrdiff_t stride = 96 + 5;
    std::vector<float> padded(stride * 96, std::numeric_limits<float>::quiet_NaN());
    for (int y = 0; y < 96; ++y) std::copy_n(volume.slice(z) + y * 96, 96, padded.begin() + y * stride);
    estimator.add_slice(padded.data(), 96, 96, stride);
  }
  const RicianEstimate found = estimator.finish();
  EXPECT_EQ(found.sigma, expected.sigma);
  EXPECT_EQ(found.object_sigma, expected.object_sigma);
  EXPECT_EQ(found.background_blocks, expected.background_blocks);
}

TEST(RicianEstimate, what_tells_nothing_gives_0) {
  for (const float value :
       {0.0F, 7.0F, -3.0F, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Volume volume{64, 2};
    volume.samples.assign(64 * 64 * 2, value);
    EXPECT_EQ(volume.estimate(1).sigma, 0);
    EXPECT_EQ(volume.estimate(1).source, RicianEstimate::Source::none);
  }
  const std::vector<float> small(7 * 7, 3);
  EXPECT_EQ(estimate_rician(small.data(), 7, 7, 1, 1).sigma, 0);
  EXPECT_THROW(RicianEstimator(0), Error);
}

// ---- around a method

constexpr Device cpu{Device::Kind::cpu};
constexpr Device reference{Device::Kind::reference};

ImageSpec gray(int side) {
  return {.width = side, .height = side, .type = PixelType::f32, .colour = Colour::gray, .range = 1000};
}

MethodParams with(MethodParams params, const NoiseHandling& noise) {
  params.set_noise(noise);
  return params;
}

Image filtered(const MethodParams& params, const Image& in, Device device) {
  Image out(in.spec());
  Denoiser::create(params, in.spec(), {.device = device}).run(in.view(), out.view());
  return out;
}

// Background, dark and bright: a quarter each of dark and bright.
Image quarters(int side, const Rician& noise, bool noisy) {
  Image image(gray(side));
  float* samples = image.samples<float>();
  for (int i = 0; i < side * side; ++i) {
    const bool right = i % side >= side / 2;
    samples[i] = i / side < side / 2 ? 0.0F : static_cast<float>(noise.sigma) * (right ? 10.0F : 2.0F);
  }
  if (noisy) add_rician(samples, samples, side, side, side, noise, 17);
  return image;
}

double mean_of(const Image& image, int left, int top, int side) {
  double sum = 0;
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      sum += image.samples<float>()[static_cast<std::ptrdiff_t>(top + y) * image.spec().width + left + x];
    }
  }
  return sum / side / side;
}

TEST(RicianHandling, levels_come_back_as_the_true_signal) {
  constexpr int side = 128;
  for (const Rician noise : {Rician{40, 1}, Rician{40, 8}}) {
    const Image noisy = quarters(side, noise, true);
    for (const Device device : {cpu, reference}) {
      if (device == reference && noise.coils != 1) continue;
      const Image result = filtered(with(Bm3dParams{}, {.rician = noise}), noisy, device);
      EXPECT_LT(mean_of(result, 8, 8, 48), 0.2 * noise.sigma);  // 1.25 and more before
      EXPECT_NEAR(mean_of(result, 8, 72, 48), 2 * noise.sigma, 0.1 * noise.sigma);
      // Less what the draws themselves are off by: the deviation of their mean is sigma / 48.
      const double off = mean_of(noisy, 72, 72, 48) - rician_mean(10 * noise.sigma, noise.sigma, noise.coils);
      EXPECT_NEAR(mean_of(result, 72, 72, 48) - off, 10 * noise.sigma, 0.05 * noise.sigma);
    }
  }
}

// A volume: a layer of background, one of 2 sigma, one of 5 and one of 10.
TEST(RicianHandling, levels_of_a_volume_come_back_as_the_true_signal) {
  constexpr int side = 56;
  constexpr int depth = 24;
  constexpr double levels[] = {0, 2, 5, 10};
  ImageSpec slice = gray(side);
  const ImageSpec spec = volume_spec(slice, depth);
  for (const Rician noise : {Rician{40, 1}, Rician{40, 4}}) {
    Image volume(spec);
    float* const samples = volume.samples<float>();
    for (int z = 0; z < depth; ++z) {
      float* const to = samples + static_cast<std::ptrdiff_t>(z) * side * side;
      for (int i = 0; i < side * side; ++i)
        to[i] = static_cast<float>(noise.sigma * levels[i / side / (side / 4)]);
      add_rician(to, to, side, side, side, noise, 5, z);
    }
    const Image result = filtered(with(Bm4dParams{}, {.rician = noise}), volume, cpu);
    for (int level = 0; level < 4; ++level) {
      double sum = 0;
      int count = 0;
      for (int z = 2; z < depth - 2; ++z) {
        for (int y = level * side / 4 + 4; y < (level + 1) * side / 4 - 4; ++y) {
          for (int x = 2; x < side - 2; ++x, ++count)
            sum += result.samples<float>()[(static_cast<std::ptrdiff_t>(z) * side + y) * side + x];
        }
      }
      const double mean = sum / count / noise.sigma;
      // The draws' own mean has an error of about 1.2 % of sigma over so many voxels.
      EXPECT_NEAR(mean, levels[level], level == 0 ? 0.01 : 0.005 * levels[level] + 0.02)
          << levels[level] << " sigma, " << noise.coils << " coils";
    }
  }
}

TEST(RicianHandling, gives_the_method_its_sigma) {
  for (const char* method : {"bm3d", "nlm", "bilateral"}) {
    const MethodParams params =
        with(MethodParams::defaults(method), {.rician = Rician{40, 4}, .strength = 1.5});
    EXPECT_FALSE(params.needs_image()) << method;
    MethodParams resolved = resolve_derived(params, gray(64));
    EXPECT_EQ(resolved.get_text("sigma"), "60") << method;
    EXPECT_EQ(resolved.noise().rician, (Rician{40, 4})) << method;  // the noise itself is not stronger
    resolved = resolve_derived(resolved, gray(64));
    EXPECT_EQ(resolved.get_text("sigma"), "60") << method;
  }
}

TEST(RicianHandling, excludes_other_noise) {
  const NoiseHandling rician{.rician = Rician{40, 1}};
  const ImageSpec spec = gray(64);
  EXPECT_NO_THROW(with(Bm3dParams{}, rician).validate(spec));
  MethodParams with_sigma = with(Bm3dParams{}, rician);
  with_sigma.set_text("sigma", "12");
  EXPECT_THROW(with_sigma.validate(spec), Error);
  NoiseHandling cut = rician;
  cut.cut_at_black = true;
  EXPECT_THROW(with(Bm3dParams{}, cut).validate(spec), Error);
  NoiseHandling wrong = rician;
  wrong.rician->coils = 0;
  EXPECT_THROW(with(Bm3dParams{}, wrong).validate(spec), Error);
  ImageSpec rgb = spec;
  rgb.channels = 3;
  rgb.colour = Colour::rgb;
  EXPECT_THROW(with(Bm3dParams{}, rician).validate(rgb), Error);
}

}  // namespace
}  // namespace ungrain
