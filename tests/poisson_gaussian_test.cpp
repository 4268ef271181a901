#include "ungrain/stabilizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "scene/scene.h"
#include "ungrain/error.h"
#include "ungrain/noise.h"

namespace ungrain {
namespace {

constexpr double white = 15871;  // 14 bits above a black level of 512

ImageSpec linear_spec(int width, int height, int channels = 1) {
  return {.width = width,
          .height = height,
          .channels = channels,
          .type = PixelType::f32,
          .colour = channels == 1 ? Colour::gray : Colour::multi,
          .range = white};
}

// The demo's picture in linear light, 70 % of the sensor's range.
Image linear_scene(int width, int height, int channels = 1) {
  Image image = render_scene(linear_spec(width, height, channels));
  float* samples = image.samples<float>();
  for (std::ptrdiff_t i = 0; i < std::ptrdiff_t{width} * height * channels; ++i) {
    samples[i] = static_cast<float>(0.7 * white * std::pow(samples[i] / white, 2.2));
  }
  return image;
}

Image flat(int width, int height, double level) {
  Image image(linear_spec(width, height));
  std::fill_n(image.samples<float>(), std::ptrdiff_t{width} * height, static_cast<float>(level));
  return image;
}

// Photons and then what reading them adds.
Image exposed(const Image& light, const PoissonGaussian& noise, std::uint64_t seed = 1) {
  Image image = light.copy();
  if (noise.a > 0) {
    add_noise(image.view(), image.view(), {NoiseKind::poisson, light.spec().white() / noise.a, seed});
  }
  if (noise.b > 0) {
    add_noise(image.view(), image.view(), {NoiseKind::gaussian, std::sqrt(noise.b), seed + 1});
  }
  return image;
}

double mean_of(const Image& image) {
  const std::ptrdiff_t count = std::ptrdiff_t{image.spec().width} * image.spec().height;
  double sum = 0;
  for (std::ptrdiff_t i = 0; i < count; ++i) sum += image.samples<float>()[i];
  return sum / static_cast<double>(count);
}

// ISO 100 to 25600 of the simulated camera, a electrons a count and read noise.
class FitOfScene : public ::testing::TestWithParam<double> {};

TEST_P(FitOfScene, finds_both_numbers) {
  const double electrons = 25000 * 100 / GetParam();  // at white
  const double read = 2.5 / electrons * white;
  const PoissonGaussian truth{.a = white / electrons, .b = read * read};
  const Image noisy = exposed(linear_scene(1000, 700), truth);
  const PoissonGaussian found = fit_poisson_gaussian(noisy.view())[0];
  EXPECT_NEAR(found.a, truth.a, 0.15 * truth.a);
  // In the dark, where the read noise counts. The scene has no flat area there.
  const double deviation = std::sqrt(truth.variance(0.01 * white));
  EXPECT_NEAR(std::sqrt(found.variance(0.01 * white)), deviation, 0.2 * deviation);
}

INSTANTIATE_TEST_SUITE_P(Iso, FitOfScene, ::testing::Values(400, 1600, 6400, 25600));

TEST(PoissonGaussianFit, channels_are_measured_by_themselves) {
  const PoissonGaussian truth{.a = 10, .b = 400};
  const Image noisy = exposed(linear_scene(600, 500, 4), truth);
  const std::vector<PoissonGaussian> found = fit_poisson_gaussian(noisy.view());
  ASSERT_EQ(found.size(), 4U);
  for (const PoissonGaussian& channel : found) EXPECT_NEAR(channel.a, truth.a, 0.15 * truth.a);
}

TEST(PoissonGaussianFit, a_flat_area_tells_the_variance_at_its_level) {
  for (const double level : {0.0, 200.0, 8000.0}) {
    const PoissonGaussian truth{.a = 12, .b = 300};
    const Image noisy = exposed(flat(400, 400, level), truth);
    const PoissonGaussian found = fit_poisson_gaussian(noisy.view())[0];
    EXPECT_NEAR(found.variance(level), truth.variance(level), 0.05 * truth.variance(level)) << level;
    EXPECT_GE(found.a, 0);
    EXPECT_GE(found.b, 0);
  }
}

TEST(PoissonGaussianFit, noise_of_one_strength_has_no_slope) {
  const PoissonGaussian truth{.a = 0, .b = 2500};
  const Image noisy = exposed(linear_scene(1000, 700), truth);
  const PoissonGaussian found = fit_poisson_gaussian(noisy.view())[0];
  EXPECT_NEAR(found.variance(0), truth.b, 0.15 * truth.b);
  EXPECT_LT(found.a * white, 0.2 * truth.b);
}

TEST(PoissonGaussianFit, areas_that_are_cut_off_do_not_count) {
  const PoissonGaussian truth{.a = 40, .b = 10000};
  Image light = linear_scene(1000, 700);
  for (std::ptrdiff_t i = 0; i < 700000; ++i) light.samples<float>()[i] *= 1.6F;  // much is beyond white
  Image noisy = exposed(light, truth);
  for (std::ptrdiff_t i = 0; i < 700000; ++i) {
    noisy.samples<float>()[i] = std::clamp(noisy.samples<float>()[i], 0.0F, static_cast<float>(white));
  }
  const PoissonGaussian found = fit_poisson_gaussian(noisy.view())[0];
  EXPECT_NEAR(found.a, truth.a, 0.15 * truth.a);
}

TEST(PoissonGaussianFit, what_tells_nothing_gives_0) {
  EXPECT_EQ(fit_poisson_gaussian(flat(15, 15, 100).view())[0], PoissonGaussian{});
  EXPECT_EQ(fit_poisson_gaussian(flat(64, 64, 100).view())[0], PoissonGaussian{});
  EXPECT_EQ(fit_poisson_gaussian(flat(64, 64, white).view())[0], PoissonGaussian{});
}

// ---- the transform

struct FlatCase {
  double counts;
  double read;  // deviation in counts
};

class StabilizedFlat : public ::testing::TestWithParam<FlatCase> {};

// What a perfect filter leaves of a flat area is its mean.
TEST_P(StabilizedFlat, keeps_its_mean) {
  const auto [counts, read] = GetParam();
  const double a = 7;
  const PoissonGaussian noise{.a = a, .b = a * a * read * read};
  const Image noisy = exposed(flat(1500, 1500, a * counts), noise);
  const Stabilizer stabilizer(noise);
  Image stabilized = noisy.copy();
  for (std::ptrdiff_t i = 0; i < 2250000; ++i) {
    float& sample = stabilized.samples<float>()[i];
    sample = static_cast<float>(stabilizer.forward(sample));
  }
  // The draws' own mean is off by 1 / 1500 of their deviation.
  const double drawn = 4 * std::sqrt(noise.variance(a * counts)) / 1500;
  EXPECT_NEAR(stabilizer.inverse(mean_of(stabilized)), a * counts, 0.01 * a * std::max(1.0, counts) + drawn);
}

INSTANTIATE_TEST_SUITE_P(Levels, StabilizedFlat,
                         ::testing::Values(FlatCase{1, 0}, FlatCase{1, 1}, FlatCase{1, 2.5}, FlatCase{3, 0},
                                           FlatCase{0, 2.5}, FlatCase{0.3, 2.5}, FlatCase{20, 1},
                                           FlatCase{500, 4}));

TEST(Stabilizer, noise_has_the_deviation_1_at_every_level) {
  const PoissonGaussian noise{.a = 7, .b = 200};
  const Stabilizer stabilizer(noise);
  for (const double level : {0.0, 30.0, 200.0, 3000.0, 12000.0}) {
    Image image = exposed(flat(500, 500, level), noise);
    double sum = 0, squares = 0;
    for (std::ptrdiff_t i = 0; i < 250000; ++i) {
      const double value = stabilizer.forward(image.samples<float>()[i]);
      sum += value;
      squares += value * value;
    }
    const double mean = sum / 250000;
    // Where the noise goes beyond the transform's start it is not quite even.
    EXPECT_NEAR(std::sqrt(squares / 250000 - mean * mean), 1, level < 100 ? 0.15 : 0.03) << level;
  }
}

TEST(Stabilizer, grows_and_starts_at_0) {
  for (const PoissonGaussian noise : {PoissonGaussian{7, 0}, PoissonGaussian{7, 200}, PoissonGaussian{0, 9},
                                      PoissonGaussian{1e-9, 100}, PoissonGaussian{0.2, 1e6}}) {
    const Stabilizer stabilizer(noise);
    EXPECT_EQ(stabilizer.forward(0), 0);
    double before = stabilizer.inverse(-40);
    for (double value = -39.9; value < 40; value += 0.1) {
      const double level = stabilizer.inverse(value);
      EXPECT_GT(level, before) << value;
      before = level;
    }
    // Far from black there is next to no bias.
    const double bright = 1000 * (noise.a + std::sqrt(noise.b));
    EXPECT_NEAR(stabilizer.inverse(stabilizer.forward(bright)), bright, 1e-3 * bright);
  }
}

TEST(Stabilizer, takes_noise_only) {
  EXPECT_THROW(Stabilizer(PoissonGaussian{0, 0}), Error);
  EXPECT_THROW(Stabilizer(PoissonGaussian{-1, 5}), Error);
}

}  // namespace
}  // namespace ungrain
