#include "ungrain/noise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "noise/distributions.h"
#include "noise/philox.h"
#include "ungrain/error.h"

namespace ungrain {
namespace {

constexpr ImageSpec gray_f32(int width, int height, double range = 0) {
  return {.width = width, .height = height, .type = PixelType::f32, .range = range};
}
constexpr ImageSpec rgba(int width, int height, PixelType type) {
  return {
      .width = width, .height = height, .channels = 4, .type = type, .colour = Colour::rgb, .alpha = true};
}

template <class Sample>
std::vector<Sample> samples_of(const Image& image) {
  const auto* first = image.samples<Sample>();
  const std::size_t count = image.bytes() / sizeof(Sample);
  return {first, first + count};
}

// A float image whose samples are whole multiples of 1/256 from 0 to 255/256, without a file or a generator.
Image ramp_image(const ImageSpec& spec) {
  Image image(spec);
  auto* sample = image.samples<float>();
  for (int y = 0; y < spec.height; ++y) {
    for (int x = 0; x < spec.width; ++x) {
      for (int c = 0; c < spec.channels; ++c) {
        *sample++ = static_cast<float>((7 * x + 13 * y + 31 * c) & 255) / 256.0F;
      }
    }
  }
  return image;
}

Image constant_image(const ImageSpec& spec, float value) {
  Image image(spec);
  std::fill_n(image.samples<float>(), image.bytes() / sizeof(float), value);
  return image;
}

Image noisy(const Image& image, const Noise& noise) {
  Image result(image.spec());
  add_noise(image.view(), result.view(), noise);
  return result;
}

// A sensible amount of each kind for images from 0 to 1.
const std::vector<Noise> all_kinds = {
    {NoiseKind::gaussian, 0.1, 1},   {NoiseKind::salt_pepper, 0.2, 1}, {NoiseKind::speckle, 0.25, 1},
    {NoiseKind::quantization, 7, 1}, {NoiseKind::poisson, 30, 1},
};

// FNV-1a of the samples' bytes in little-endian order, whatever the machine's.
std::uint64_t hash_of(const Image& image) {
  std::uint64_t hash = 14695981039346656037U;
  for (const float sample : samples_of<float>(image)) {
    const auto bits = std::bit_cast<std::uint32_t>(sample);
    for (unsigned shift = 0; shift < 32; shift += 8)
      hash = (hash ^ ((bits >> shift) & 255U)) * 1099511628211U;
  }
  return hash;
}

// What add_noise throws, as its code and message; code 0 where it does not throw.
struct Thrown {
  int code = 0;
  std::string message;
};
Thrown thrown_by(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return {static_cast<int>(error.code()), error.what()};
  }
  return {};
}
constexpr int invalid = static_cast<int>(ErrorCode::invalid_argument);

struct Moments {
  double mean = 0;
  double variance = 0;
  double skewness = 0;
  double kurtosis = 0;  // 3 for the normal distribution
};
Moments moments_of(const std::vector<double>& values) {
  Moments m;
  const auto n = static_cast<double>(values.size());
  for (const double v : values) m.mean += v / n;
  double third = 0;
  double fourth = 0;
  for (const double v : values) {
    const double d = v - m.mean;
    m.variance += d * d / n;
    third += d * d * d / n;
    fourth += d * d * d * d / n;
  }
  m.skewness = third / std::pow(m.variance, 1.5);
  m.kurtosis = fourth / (m.variance * m.variance);
  return m;
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const Moments ma = moments_of(a);
  const Moments mb = moments_of(b);
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - ma.mean) * (b[i] - mb.mean);
  return sum / static_cast<double>(a.size()) / std::sqrt(ma.variance * mb.variance);
}

std::vector<double> normal_draws(int side, std::uint64_t seed, int channel = 0) {
  std::vector<double> values;
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      values.push_back(draw_normal({philox_key(seed), x, y, channel, 0}));
    }
  }
  return values;
}

// ---- the generator

// The known-answer vectors that its authors publish with their library.
TEST(Philox, KnownAnswers) {
  constexpr std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, KeyTakesAllTheSeedsBits) {
  EXPECT_EQ(philox_key(0x123456789abcdef0U), (PhiloxKey{0x9abcdef0, 0x12345678}));
}

TEST(SampleDraws, UniformsAreFlatAndInsideTheOpenInterval) {
  constexpr int bins = 64;
  constexpr int draws = 100'000;
  std::vector<int> counts(bins);
  for (std::uint32_t i = 0; i < draws; ++i) {
    const auto [u, v] = SampleDraws(philox_key(5), 3, 4, 0, 0).draw(i);
    ASSERT_TRUE(u > 0 && u < 1 && v > 0 && v < 1);
    ++counts[static_cast<std::size_t>(u * bins)];
    ++counts[static_cast<std::size_t>(v * bins)];
  }
  double chi_square = 0;
  constexpr double expected = 2.0 * draws / bins;
  for (const int count : counts) chi_square += (count - expected) * (count - expected) / expected;
  EXPECT_LT(chi_square, 63 + 4 * std::sqrt(2 * 63.0));
}

// ---- the normal distribution

TEST(NormalDraws, MomentsAreThoseOfTheNormalDistribution) {
  const std::vector<double> values = normal_draws(512, 11);
  const Moments m = moments_of(values);
  const auto n = static_cast<double>(values.size());
  EXPECT_NEAR(m.mean, 0, 4 / std::sqrt(n));
  EXPECT_NEAR(m.variance, 1, 4 * std::sqrt(2 / n));
  EXPECT_NEAR(m.skewness, 0, 4 * std::sqrt(6 / n));
  EXPECT_NEAR(m.kurtosis, 3, 4 * std::sqrt(24 / n));
}

TEST(NormalDraws, KolmogorovSmirnov) {
  std::vector<double> values = normal_draws(400, 12);
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  double distance = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double expected = 0.5 * std::erfc(-values[i] / std::sqrt(2.0));
    const auto below = static_cast<double>(i);
    distance = std::max({distance, expected - below / n, (below + 1) / n - expected});
  }
  EXPECT_LT(distance * std::sqrt(n), 1.95);  // passed by 999 in 1000
}

TEST(NormalDraws, NeighboursChannelsAndSeedsAreUncorrelated) {
  constexpr int side = 400;
  const std::vector<double> values = normal_draws(side, 13);
  const double limit = 4 / std::sqrt(static_cast<double>(values.size()));
  const auto shifted = [&](int by) {
    std::vector<double> other = values;
    std::rotate(other.begin(), other.begin() + by, other.end());
    return other;
  };
  EXPECT_NEAR(correlation(values, shifted(1)), 0, limit);
  EXPECT_NEAR(correlation(values, shifted(2)), 0, limit);
  EXPECT_NEAR(correlation(values, shifted(side)), 0, limit);
  EXPECT_NEAR(correlation(values, shifted(side + 1)), 0, limit);
  EXPECT_NEAR(correlation(values, normal_draws(side, 13, 1)), 0, limit);
  EXPECT_NEAR(correlation(values, normal_draws(side, 14)), 0, limit);
}

// ---- the Poisson distribution

class PoissonDraws : public testing::TestWithParam<double> {
 protected:
  static constexpr int count = 100'000;
  static std::vector<double> draws() {
    std::vector<double> values;
    for (int i = 0; i < count; ++i) {
      values.push_back(draw_poisson(GetParam(), {philox_key(21), i % 331, i / 331, 0, 4}));
    }
    return values;
  }
};

TEST_P(PoissonDraws, MeanAndVarianceAreTheMean) {
  const double mean = GetParam();
  const Moments m = moments_of(draws());
  EXPECT_NEAR(m.mean, mean, 4 * std::sqrt(mean / count));
  EXPECT_NEAR(m.variance, mean, 4 * std::sqrt((mean + 2 * mean * mean) / count));
}

TEST_P(PoissonDraws, CountsFollowTheProbabilities) {
  const double mean = GetParam();
  std::vector<double> values = draws();
  std::sort(values.begin(), values.end());
  const auto probability = [&](double k) { return std::exp(k * std::log(mean) - mean - std::lgamma(k + 1)); };
  // Neighbouring counts are put together until 25 draws are expected; what is left falls to the last bin.
  double chi_square = 0;
  int bins = 0;
  double expected = 0;
  double expected_so_far = 0;
  auto next = values.begin();
  const auto close_bin = [&](std::vector<double>::iterator end) {
    const auto seen = static_cast<double>(end - next);
    chi_square += (seen - expected) * (seen - expected) / expected;
    ++bins;
    next = end;
    expected_so_far += expected;
    expected = 0;
  };
  double k = std::max(0.0, std::floor(mean - 8 * std::sqrt(mean)));
  for (; expected_so_far < count - 75; ++k) {
    expected += count * probability(k);
    if (expected >= 25) close_bin(std::upper_bound(values.begin(), values.end(), k));
  }
  expected = count - expected_so_far;
  close_bin(values.end());
  const double freedom = std::max(1, bins - 1);
  EXPECT_LT(chi_square, freedom + 4 * std::sqrt(2 * freedom)) << bins << " bins";
}

INSTANTIATE_TEST_SUITE_P(Means, PoissonDraws, testing::Values(0.1, 3.0, 9.9, 10.1, 30.0, 1000.0, 1e6));

// What makes the rejection exact: the hat is nowhere below the probabilities, and the two shortcuts decide as
// the full comparison would.
TEST(Poisson, HatCoversTheProbabilities) {
  constexpr int steps = 2000;
  for (double mean = 10; mean <= largest_exact_poisson_mean; mean *= mean < 100 ? 1.013 : 1.7) {
    const PoissonHat hat(mean);
    for (int i = 0; i < steps; ++i) {
      const double u = (i + 0.5) / steps - 0.5;
      const double distance = PoissonHat::edge_distance(u);
      const double count = hat.count(u);
      if (count < 0) {
        ASSERT_LT(distance, PoissonHat::inner) << mean;
        continue;
      }
      const double accepted_share = std::exp(poisson_log_probability(count, mean)) / hat.hat(u);
      ASSERT_LE(accepted_share, 1) << mean << " " << u;
      if (distance >= PoissonHat::inner) {
        ASSERT_GE(accepted_share, hat.surely_below) << mean << " " << u;
      }
      if (distance < PoissonHat::outer) {
        ASSERT_LE(accepted_share, distance) << mean << " " << u;
      }
    }
  }
}

TEST(Poisson, LogProbabilityAgreesWithLogGamma) {
  for (const double mean : {0.1, 3.0, 10.0, 100.0, 5000.0}) {
    for (double k = 0; k < 3 * mean + 20; k += std::max(1.0, std::floor(mean / 50))) {
      const double want = k * std::log(mean) - mean - std::lgamma(k + 1);
      ASSERT_NEAR(poisson_log_probability(k, mean), want, 1e-11 * (1 + std::fabs(want)))
          << k << " of " << mean;
    }
  }
}

TEST(Poisson, VeryLargeMeansHaveTheRightSpread) {
  for (const double mean : {1e9, 1e12, 1e15}) {
    std::vector<double> standardised;
    for (int i = 0; i < 40'000; ++i) {
      standardised.push_back((draw_poisson(mean, {philox_key(22), i, 0, 0, 4}) - mean) / std::sqrt(mean));
    }
    const Moments m = moments_of(standardised);
    EXPECT_NEAR(m.mean, 0, 0.02) << mean;
    EXPECT_NEAR(m.variance, 1, 4 * std::sqrt(2 / 40'000.0)) << mean;
    EXPECT_NEAR(m.kurtosis, 3, 4 * std::sqrt(24 / 40'000.0)) << mean;
  }
}

TEST(Poisson, NoPhotonsFromDarkness) {
  const SampleDraws draws(philox_key(1), 0, 0, 0, 4);
  EXPECT_EQ(draw_poisson(0, draws), 0);
  EXPECT_EQ(draw_poisson(-5, draws), 0);
}

// ---- add_noise: the same everywhere

struct KnownHash {
  Noise noise;
  std::uint64_t hash;
};

// A new compiler, processor or standard library must give these very bits.
TEST(AddNoise, HashIsTheSameOnEveryPlatform) {
  const Image image = ramp_image(rgba(67, 41, PixelType::f32));
  const std::vector<KnownHash> known = {
      {{NoiseKind::gaussian, 0.1, 42}, 0x80cac1173ef47bdcU},
      {{NoiseKind::salt_pepper, 0.2, 42}, 0xcc8d8c23e3f7e47dU},
      {{NoiseKind::speckle, 0.25, 42}, 0xde17dd8f4c4a4ef6U},
      {{NoiseKind::quantization, 7, 42}, 0x88d77db4d325ef4eU},
      {{NoiseKind::poisson, 20, 42}, 0x3ab9aedcf287d2afU},  // means on both sides of the change of method
      {{NoiseKind::poisson, 1000, 42}, 0x44c098a9419bcf27U},
      {{NoiseKind::gaussian, 0.1, 0xfedcba9876543210U}, 0x8ecb09c8b57188d9U},
  };
  for (const auto& [noise, hash] : known) {
    EXPECT_EQ(hash_of(noisy(image, noise)), hash)
        << name(noise.kind) << " " << noise.amount << std::hex << ": " << hash_of(noisy(image, noise));
  }
}

TEST(AddNoise, TilesEqualTheWhole) {
  const Image image = ramp_image(rgba(53, 37, PixelType::f32));
  const ImageSpec& spec = image.spec();
  for (const Noise& noise : all_kinds) {
    const Image whole = noisy(image, noise);
    Image tiled(spec);
    const auto tile_of = [&](auto view, int x, int y) {
      view.region = {x, y, spec.width, spec.height};
      view.spec.width = std::min(16, spec.width - x);
      view.spec.height = std::min(11, spec.height - y);
      const auto offset = x * view.strides.x + y * view.strides.y;
      view.data = const_cast<std::byte*>(static_cast<const std::byte*>(view.data)) + offset;
      return view;
    };
    for (int y = 0; y < spec.height; y += 11) {
      for (int x = 0; x < spec.width; x += 16) {
        add_noise(tile_of(image.view(), x, y), tile_of(tiled.view(), x, y), noise);
      }
    }
    EXPECT_EQ(samples_of<float>(tiled), samples_of<float>(whole)) << name(noise.kind);
  }
}

TEST(AddNoise, EitherViewsRegionSaysThePlace) {
  const Image image = ramp_image(gray_f32(8, 8));
  const Noise noise = {NoiseKind::gaussian, 1, 1};
  const Region place = {5, 6, 100, 100};
  Image both(image.spec());
  Image by_input(image.spec());
  Image by_output(image.spec());
  ConstImageView placed_in = image.view();
  placed_in.region = place;
  const auto placed = [&](Image& out) {
    ImageView view = out.view();
    view.region = place;
    return view;
  };
  add_noise(placed_in, placed(both), noise);
  add_noise(placed_in, by_input.view(), noise);
  add_noise(image.view(), placed(by_output), noise);
  EXPECT_EQ(samples_of<float>(by_input), samples_of<float>(both));
  EXPECT_EQ(samples_of<float>(by_output), samples_of<float>(both));
  EXPECT_NE(samples_of<float>(noisy(image, noise)), samples_of<float>(both));
}

TEST(AddNoise, InPlaceAndPlanarEqualThePlainRun) {
  const Image image = ramp_image(rgba(29, 17, PixelType::f32));
  const ImageSpec& spec = image.spec();
  for (const Noise& noise : all_kinds) {
    const Image plain = noisy(image, noise);
    Image in_place = image.copy();
    add_noise(in_place.view(), in_place.view(), noise);
    EXPECT_EQ(samples_of<float>(in_place), samples_of<float>(plain)) << name(noise.kind);

    Image planar(spec);
    add_noise(image.view(), {planar.samples<float>(), spec, planar_strides(spec)}, noise);
    for (int i = 0; i < spec.width * spec.height; ++i) {
      for (int c = 0; c < spec.channels; ++c) {
        ASSERT_EQ(planar.samples<float>()[c * spec.width * spec.height + i],
                  plain.samples<float>()[i * spec.channels + c]);
      }
    }
  }
}

TEST(AddNoise, SeedsKindsAndChannelsDiffer) {
  const Image image = constant_image(
      {.width = 64, .height = 64, .channels = 3, .type = PixelType::f32, .colour = Colour::rgb}, 1);
  const auto noise_of = [&](const Noise& noise, int channel) {
    std::vector<double> values;
    const Image result = noisy(image, noise);
    for (int i = 0; i < 64 * 64; ++i) values.push_back(result.samples<float>()[3 * i + channel]);
    return values;
  };
  const std::vector<double> base = noise_of({NoiseKind::gaussian, 1, 7}, 0);
  const double limit = 4.0 / 64;
  EXPECT_EQ(noise_of({NoiseKind::gaussian, 1, 7}, 0), base);
  EXPECT_NEAR(correlation(base, noise_of({NoiseKind::gaussian, 1, 8}, 0)), 0, limit);
  EXPECT_NEAR(correlation(base, noise_of({NoiseKind::gaussian, 1, 7 + (1ULL << 32U)}, 0)), 0, limit);
  EXPECT_NEAR(correlation(base, noise_of({NoiseKind::gaussian, 1, 7}, 1)), 0, limit);
  EXPECT_NEAR(correlation(base, noise_of({NoiseKind::speckle, 1, 7}, 0)), 0, limit);
}

// ---- add_noise: each kind

TEST(AddNoise, GaussianHasItsStandardDeviation) {
  const Image result = noisy(constant_image(gray_f32(300, 300, 255), 128), {NoiseKind::gaussian, 25, 3});
  std::vector<double> values;
  for (const float v : samples_of<float>(result)) values.push_back(v);
  const Moments m = moments_of(values);
  EXPECT_NEAR(m.mean, 128, 4 * 25 / 300.0);
  EXPECT_NEAR(std::sqrt(m.variance), 25, 4 * 25 / std::sqrt(2.0 * 300 * 300));
}

TEST(AddNoise, SaltAndPepperHaveTheirShares) {
  const Image result = noisy(constant_image(gray_f32(400, 400, 255), 100), {NoiseKind::salt_pepper, 0.3, 3});
  const std::vector<float> values = samples_of<float>(result);
  const auto pepper = std::count(values.begin(), values.end(), 0.0F);
  const auto salt = std::count(values.begin(), values.end(), 255.0F);
  const auto left = std::count(values.begin(), values.end(), 100.0F);
  EXPECT_EQ(pepper + salt + left, 400 * 400);
  EXPECT_NEAR(static_cast<double>(pepper) / (400 * 400), 0.15, 4 * std::sqrt(0.15 * 0.85) / 400);
  EXPECT_NEAR(static_cast<double>(salt) / (400 * 400), 0.15, 4 * std::sqrt(0.15 * 0.85) / 400);
}

TEST(AddNoise, FullSaltAndPepperLeavesNothing) {
  const Image result = noisy(constant_image(gray_f32(50, 50), 0.5F), {NoiseKind::salt_pepper, 1, 3});
  for (const float v : samples_of<float>(result)) ASSERT_TRUE(v == 0 || v == 1);
}

TEST(AddNoise, SpeckleGrowsWithTheIntensity) {
  for (const float level : {10.0F, 100.0F}) {
    std::vector<double> values;
    const Image result = noisy(constant_image(gray_f32(200, 200, 255), level), {NoiseKind::speckle, 0.2, 3});
    for (const float v : samples_of<float>(result)) values.push_back(v);
    const Moments m = moments_of(values);
    EXPECT_NEAR(m.mean, level, 4 * 0.2 * level / 200);
    EXPECT_NEAR(std::sqrt(m.variance), 0.2 * level, 4 * 0.2 * level / std::sqrt(2.0 * 200 * 200));
  }
  const Image dark = noisy(constant_image(gray_f32(9, 9), 0), {NoiseKind::speckle, 0.2, 3});
  for (const float v : samples_of<float>(dark)) EXPECT_EQ(v, 0);
}

TEST(AddNoise, QuantizationRoundsToItsLevels) {
  Image image(gray_f32(8, 1, 255));
  const std::vector<float> values = {0, 31, 32, 100, 223, 224, 255, 300};
  std::copy(values.begin(), values.end(), image.samples<float>());
  const Image five = noisy(image, {NoiseKind::quantization, 5, 0});
  EXPECT_EQ(samples_of<float>(five), (std::vector<float>{0, 0, 63.75F, 127.5F, 191.25F, 255, 255, 318.75F}));
  const Image two = noisy(image, {NoiseKind::quantization, 2, 0});
  EXPECT_EQ(samples_of<float>(two), (std::vector<float>{0, 0, 0, 0, 255, 255, 255, 255}));
}

TEST(AddNoise, QuantizationToTheTypesOwnLevelsIsTheIdentity) {
  Image image({.width = 256, .height = 1});
  for (int i = 0; i < 256; ++i) image.samples<std::uint8_t>()[i] = static_cast<std::uint8_t>(i);
  EXPECT_EQ(samples_of<std::uint8_t>(noisy(image, {NoiseKind::quantization, 256, 0})),
            samples_of<std::uint8_t>(image));
}

TEST(AddNoise, PoissonKeepsTheMeanAndCountsWholePhotons) {
  constexpr double peak = 20;
  const Image result = noisy(constant_image(gray_f32(200, 200), 0.5F), {NoiseKind::poisson, peak, 3});
  std::vector<double> photons;
  for (const float v : samples_of<float>(result)) {
    photons.push_back(v * peak);
    ASSERT_NEAR(photons.back(), std::round(photons.back()), 1e-4);
  }
  const Moments m = moments_of(photons);
  EXPECT_NEAR(m.mean, 10, 4 * std::sqrt(10.0) / 200);
  EXPECT_NEAR(m.variance, 10, 4 * std::sqrt(210.0) / 200);
}

TEST(AddNoise, AmountZeroIsTheIdentity) {
  Image image = ramp_image(gray_f32(20, 20));
  image.samples<float>()[3] = -0.0F;
  image.samples<float>()[4] = -7.5F;
  for (const NoiseKind kind : {NoiseKind::gaussian, NoiseKind::salt_pepper, NoiseKind::speckle}) {
    const Image result = noisy(image, {kind, 0, 9});
    EXPECT_EQ(std::memcmp(result.samples<float>(), image.samples<float>(), image.bytes()), 0) << name(kind);
  }
}

// ---- add_noise: types, ranges, alpha, odd values

TEST(AddNoise, IntegersSaturateAndFloatsDoNot) {
  Image bytes({.width = 100, .height = 100});
  std::fill_n(bytes.samples<std::uint8_t>(), 5000, std::uint8_t{0});
  std::fill_n(bytes.samples<std::uint8_t>() + 5000, 5000, std::uint8_t{255});
  const Noise noise = {NoiseKind::gaussian, 1000, 1};
  const std::vector<std::uint8_t> saturated = samples_of<std::uint8_t>(noisy(bytes, noise));
  EXPECT_GT(std::count(saturated.begin(), saturated.end(), 0), 4000);
  EXPECT_GT(std::count(saturated.begin(), saturated.end(), 255), 4000);
  Image floats(gray_f32(100, 100, 255));
  add_noise(bytes.view(), floats.view(), noise);
  for (int i = 0; i < 100 * 100; ++i) {
    const float unclipped = floats.samples<float>()[i];
    ASSERT_EQ(saturated[static_cast<std::size_t>(i)], std::nearbyint(std::clamp(unclipped, 0.0F, 255.0F)));
  }
}

TEST(AddNoise, ValuesAreScaledFromWhiteToWhite) {
  Image bytes({.width = 256, .height = 1});
  for (int i = 0; i < 256; ++i) bytes.samples<std::uint8_t>()[i] = static_cast<std::uint8_t>(i);
  Image floats(gray_f32(256, 1));
  Image words({.width = 256, .height = 1, .type = PixelType::u16});
  Image twelve_bits({.width = 256, .height = 1, .type = PixelType::u16, .range = 4095});
  for (Image* out : {&floats, &words, &twelve_bits}) add_noise(bytes.view(), out->view(), {});
  for (int i = 0; i < 256; ++i) {
    EXPECT_FLOAT_EQ(floats.samples<float>()[i], static_cast<float>(i) / 255);
    EXPECT_EQ(words.samples<std::uint16_t>()[i], i * 257);
    EXPECT_EQ(twelve_bits.samples<std::uint16_t>()[i], std::nearbyint(i * 4095 / 255.0));
  }
}

TEST(AddNoise, AlphaIsCopied) {
  const ImageSpec spec = rgba(16, 16, PixelType::f32);
  Image image = ramp_image(spec);
  image.samples<float>()[3] = std::numeric_limits<float>::quiet_NaN();
  image.samples<float>()[7] = -0.0F;
  Image words(rgba(16, 16, PixelType::u16));
  ImageSpec wide = spec;
  wide.range = 255;  // colour's range, not alpha's
  Image ranged(wide);
  const Noise noise = {NoiseKind::gaussian, 0.5, 1};
  const Image same = noisy(image, noise);
  add_noise(image.view(), ranged.view(), noise);
  image.samples<float>()[3] = 1;
  add_noise(image.view(), words.view(), noise);
  EXPECT_TRUE(std::isnan(same.samples<float>()[3]));
  EXPECT_TRUE(std::signbit(same.samples<float>()[7]));
  EXPECT_EQ(words.samples<std::uint16_t>()[3], 65535);
  for (int i = 11; i < 16 * 16 * 4; i += 4) {
    const float alpha = image.samples<float>()[i];
    EXPECT_EQ(same.samples<float>()[i], alpha);
    EXPECT_EQ(ranged.samples<float>()[i], alpha);
    EXPECT_EQ(words.samples<std::uint16_t>()[i], std::nearbyint(alpha * 65535.0));
  }
}

TEST(AddNoise, NonFiniteSamplesStayWhatTheyAre) {
  constexpr float infinite = std::numeric_limits<float>::infinity();
  Image image(gray_f32(4, 1));
  const std::vector<float> values = {std::numeric_limits<float>::quiet_NaN(), infinite, -infinite, 0.5F};
  std::copy(values.begin(), values.end(), image.samples<float>());
  for (const Noise& noise : all_kinds) {
    const std::vector<float> result = samples_of<float>(noisy(image, noise));
    EXPECT_TRUE(std::isnan(result[0])) << name(noise.kind);
    EXPECT_EQ(result[1], infinite) << name(noise.kind);
    EXPECT_EQ(result[2], -infinite) << name(noise.kind);
  }
}

TEST(AddNoise, HalfPrecisionIsSupported) {
  Image image = ramp_image(gray_f32(40, 40));
  Image halves({.width = 40, .height = 40, .type = PixelType::f16});
  Image back(gray_f32(40, 40));
  add_noise(image.view(), halves.view(), {NoiseKind::gaussian, 0.1, 5});
  add_noise(halves.view(), back.view(), {});
  const Image plain = noisy(image, {NoiseKind::gaussian, 0.1, 5});
  for (int i = 0; i < 1600; ++i) EXPECT_NEAR(back.samples<float>()[i], plain.samples<float>()[i], 1e-3);
}

// ---- the table and the errors

TEST(NoiseModels, OneRowAKind) {
  const std::vector<NoiseInfo>& models = noise_models();
  ASSERT_EQ(models.size(), 5U);
  for (std::size_t i = 0; i < models.size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(models[i].kind), i);
    EXPECT_EQ(models[i].amount.name, name(models[i].kind));
    EXPECT_FALSE(models[i].amount.help.empty());
  }
  EXPECT_EQ(name(NoiseKind::salt_pepper), "salt-pepper");
  EXPECT_EQ(models[0].amount.unit, Unit::intensity);
  EXPECT_EQ(models[3].amount.kind, ParamKind::integer);
}

TEST(NoiseErrors, AmountOutsideItsRange) {
  Image image(gray_f32(4, 4));
  const double nan = std::nan("");
  const std::vector<Noise> wrong = {
      {NoiseKind::gaussian, -1},      {NoiseKind::gaussian, nan},     {NoiseKind::gaussian, INFINITY},
      {NoiseKind::salt_pepper, -0.1}, {NoiseKind::salt_pepper, 1.1},  {NoiseKind::speckle, -1},
      {NoiseKind::quantization, 1},   {NoiseKind::quantization, 2.5}, {NoiseKind::quantization, 65537},
      {NoiseKind::quantization, nan}, {NoiseKind::poisson, 0},        {NoiseKind::poisson, -3},
  };
  for (const Noise& noise : wrong) {
    const Thrown thrown = thrown_by([&] { add_noise(image.view(), image.view(), noise); });
    EXPECT_EQ(thrown.code, invalid) << name(noise.kind) << " " << noise.amount;
    EXPECT_NE(thrown.message.find(name(noise.kind)), std::string::npos) << thrown.message;
    EXPECT_EQ(thrown.message.find('\n'), std::string::npos);
  }
  EXPECT_EQ(
      thrown_by([&] {
        add_noise(image.view(), image.view(), {NoiseKind::salt_pepper, 2});
      }).message,
      "salt-pepper noise: the amount (share of the samples set to black or white) must be a number from 0 "
      "to 1, got 2");
  EXPECT_EQ(
      thrown_by([&] {
        add_noise(image.view(), image.view(), {NoiseKind::quantization, 2.5});
      }).message,
      "quantization noise: the amount (levels from black to white) must be a whole number from 2 to 65536, "
      "got 2.5");
  EXPECT_EQ(thrown_by([&] {
              add_noise(image.view(), image.view(), {static_cast<NoiseKind>(99), 1});
            }).code,
            invalid);
}

TEST(NoiseErrors, ViewsThatDoNotFit) {
  Image image(gray_f32(4, 4));
  const Noise noise = {NoiseKind::gaussian, 1};
  const auto code_for = [&](const ConstImageView& in, const ImageView& out) {
    return thrown_by([&] { add_noise(in, out, noise); }).code;
  };
  std::vector<float> room(100);
  const auto with = [&](const std::function<void(ImageView&)>& change) {
    ImageView view(room.data(), gray_f32(4, 4));
    change(view);
    return view;
  };
  EXPECT_EQ(code_for(image.view(), with([](ImageView& v) { v.spec.width = 3; })), invalid);
  EXPECT_EQ(code_for(image.view(), with([](ImageView& v) { v.spec.height = 3; })), invalid);
  EXPECT_EQ(code_for(image.view(), with([](ImageView& v) { v.spec.height = 0; })), invalid);
  EXPECT_EQ(code_for(image.view(), with([](ImageView& v) { v.spec.channels = 3; })), invalid);
  EXPECT_EQ(code_for(image.view(), with([](ImageView& v) { v.spec.colour = Colour::multi; })), invalid);
  EXPECT_EQ(code_for(image.view(), with([](ImageView& v) {
                       v.spec.channels = 2;
                       v.spec.alpha = true;
                     })),
            invalid);
  EXPECT_EQ(code_for(image.view(), with([](ImageView& v) { v.data = nullptr; })), invalid);
  EXPECT_EQ(code_for(image.view(), with([](ImageView& v) { v.region = {97, 0, 100, 100}; })), invalid);
  EXPECT_EQ(code_for(image.view(), with([](ImageView& v) { v.region = {-1, 0, 100, 100}; })), invalid);
  EXPECT_EQ(code_for(image.view(), with([](ImageView& v) { v.space.memory = Space::Memory::cuda; })),
            static_cast<int>(ErrorCode::unsupported));
  ConstImageView elsewhere = image.view();
  elsewhere.region = {0, 0, 100, 100};
  EXPECT_EQ(code_for(elsewhere, with([](ImageView& v) { v.region = {1, 0, 100, 100}; })), invalid);
}

}  // namespace
}  // namespace ungrain
