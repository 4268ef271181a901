// Models of noise that is known: a power spectral density or a kernel; and what follows for patches.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "noise/correlation.h"
#include "ungrain/error.h"
#include "ungrain/image.h"
#include "ungrain/noise_model.h"

namespace ungrain::testing {
namespace {

constexpr int side = NoiseModel::side;
const double pi = std::acos(-1.0);
const ImageSpec gray{.width = 64, .height = 48, .type = PixelType::f32, .range = 255};
const ImageSpec rgb{
    .width = 64, .height = 48, .channels = 3, .type = PixelType::f32, .colour = Colour::rgb, .range = 255};

Image image_of(int width, int height, int channels, const std::function<double(int, int, int)>& value) {
  Image image({.width = width,
               .height = height,
               .channels = channels,
               .type = PixelType::f32,
               .colour = channels == 1   ? Colour::gray
                         : channels == 3 ? Colour::rgb
                                         : Colour::multi});
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c)
        image.samples<float>()[(y * width + x) * channels + c] = static_cast<float>(value(x, y, c));
    }
  }
  return image;
}

Image box(int width, int height) {
  return image_of(width, height, 1, [](int, int, int) { return 1; });
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(NoiseCorrelation, OfABoxKernelFallsLinearly) {
  const NoiseModel model = noise_model_of_kernel(gray, box(3, 3).view(), 5);
  ASSERT_EQ(model.channels.size(), 1U);
  EXPECT_NEAR(model.channels[0].deviations.at(0), 15, 1e-9);
  const std::vector<double>& correlation = model.channels[0].correlation;
  ASSERT_EQ(correlation.size(), 25U);
  for (int dy = -2; dy <= 2; ++dy) {
    for (int dx = -2; dx <= 2; ++dx)
      EXPECT_NEAR(correlation[(dy + 2) * 5 + dx + 2], (3 - std::abs(dx)) * (3 - std::abs(dy)) / 9.0, 1e-12);
  }
  validate(model);
}

TEST(NoiseCorrelation, OfAKernelThatIsNotSymmetric) {
  const Image kernel = image_of(2, 2, 1, [](int x, int y, int) { return 1 + x + 3 * y; });  // 1 2, 4 5
  const std::vector<double> correlation =
      noise_model_of_kernel(gray, kernel.view(), 1).channels[0].correlation;
  ASSERT_EQ(correlation.size(), 9U);
  const double expected[9] = {5, 14, 8, 22, 46, 22, 8, 14, 5};
  for (int i = 0; i < 9; ++i) EXPECT_NEAR(correlation[i], expected[i] / 46, 1e-7) << i;
}

// The mean of the spectrum's squares is 1: a pixel's variance is the mean of a patch's coefficients'.
TEST(NoiseCorrelation, SpectrumHasTheVarianceOfAPixel) {
  for (const Image& kernel : {box(3, 3), box(1, 1), box(9, 1)}) {
    const NoiseModel model = noise_model_of_kernel(gray, kernel.view(), 2);
    double sum = 0;
    for (const double value : model.channels[0].spectrum) sum += value * value;
    EXPECT_NEAR(sum / 64, 1, 1e-9);
  }
}

// A kernel's transform squared is the density of the noise that it makes.
TEST(NoiseCorrelation, APsdAndItsKernelGiveTheSame) {
  const auto power_along = [](int n, int count) { return std::pow(1 + 2 * std::cos(2 * pi * n / count), 2); };
  for (const auto& [width, height] : {std::pair{32, 32}, {31, 17}, {200, 64}}) {
    const Image psd = image_of(width, height, 1, [&, w = width, h = height](int u, int v, int) {
      return 25 * power_along(u, w) * power_along(v, h);
    });
    const NoiseModel of_psd = noise_model_of_psd(gray, psd.view());
    const NoiseModel of_kernel = noise_model_of_kernel(gray, box(3, 3).view(), 5);
    EXPECT_NEAR(of_psd.channels[0].deviations[0], of_kernel.channels[0].deviations[0], 1e-4);
    const std::vector<double>& a = of_psd.channels[0].correlation;
    const std::vector<double>& b = of_kernel.channels[0].correlation;
    ASSERT_EQ(a.size(), b.size()) << width;
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-6);
    for (int i = 0; i < 64; ++i)
      EXPECT_NEAR(of_psd.channels[0].spectrum[i], of_kernel.channels[0].spectrum[i], 1e-5);
  }
}

TEST(NoiseCorrelation, OneChannelServesAllAndEachMayHaveItsOwn) {
  const NoiseModel same = noise_model_of_kernel(rgb, box(2, 2).view(), 3);
  ASSERT_EQ(same.channels.size(), 3U);
  for (const NoiseModel::Channel& channel : same.channels) EXPECT_EQ(channel, same.channels[0]);
  const Image flat = image_of(16, 16, 3, [](int, int, int c) { return 100 * (c + 1); });
  const NoiseModel own = noise_model_of_psd(rgb, flat.view());
  EXPECT_NEAR(std::pow(own.channels[0].deviations[0], 2), 200, 1e-3);  // a third of each
  EXPECT_NEAR(std::pow(own.channels[1].deviations[0], 2), 200, 1e-3);  // red and blue
  EXPECT_NEAR(std::pow(own.channels[2].deviations[0], 2), (100 + 4 * 200 + 300) / 6.0, 1e-3);
  for (const NoiseModel::Channel& channel : own.channels) EXPECT_EQ(channel.correlation, std::vector{1.0});
}

// By the definition of a covariance, with the cosine transform's functions written out.
TEST(NoiseCorrelation, CovariancesOfPatchesAreThoseOfTheirPixels) {
  const Image kernel = image_of(3, 2, 1, [](int x, int y, int) { return 1 + x - 0.5 * y; });
  const std::vector<double> correlation =
      noise_model_of_kernel(gray, kernel.view(), 1).channels[0].correlation;
  const int reach = correlation_reach(correlation);
  const auto r = [&](int dx, int dy) {
    if (std::abs(dx) > reach || std::abs(dy) > reach) return 0.0;
    return correlation[(dy + reach) * (2 * reach + 1) + dx + reach];
  };
  const auto wave = [](int k, int x) {
    return std::sqrt((k == 0 ? 1.0 : 2.0) / side) * std::cos(pi * (2 * x + 1) * k / (2.0 * side));
  };
  const PatchCovariances covariances(correlation, 12);
  EXPECT_EQ(covariances.reach_x(), side - 1 + 2);
  EXPECT_EQ(covariances.reach_y(), side - 1 + 1);
  for (const auto& [dx, dy] : {std::pair{0, 0}, {1, 0}, {-3, 2}, {5, -8}, {-9, 1}}) {
    for (const auto& [i, j] : {std::pair{0, 0}, {1, 0}, {0, 2}, {7, 3}, {5, 7}}) {
      double sum = 0;
      for (int n = 0; n < 64 * 64; ++n) {
        const int x = n % 8;
        const int y = n / 8 % 8;
        const int other_x = n / 64 % 8;
        const int other_y = n / 512;
        sum += wave(i, x) * wave(j, y) * wave(i, other_x) * wave(j, other_y) *
               r(dx + other_x - x, dy + other_y - y);
      }
      EXPECT_NEAR(covariances.at(dx, dy)[j * 8 + i], sum, 1e-9) << dx << ' ' << dy << ' ' << i << ' ' << j;
      EXPECT_NEAR(covariances.at(-dx, -dy)[j * 8 + i], sum, 1e-9);
    }
    EXPECT_NEAR(covariances.of_pixels(dx, dy), r(dx, dy), 1e-9);
  }
}

TEST(NoiseCorrelation, WhiteNoiseIsCommonToPatchesThatOverlap) {
  const PatchCovariances covariances({1.0}, 38);
  EXPECT_EQ(covariances.reach_x(), 7);
  for (const double value : covariances.at(0, 0)) EXPECT_NEAR(value, 1, 1e-12);
  EXPECT_NEAR(covariances.at(4, 0)[0], 0.5, 1e-12);
}

TEST(NoiseCorrelation, ModelsAreValidated) {
  const NoiseModel good = noise_model_of_kernel(gray, box(3, 3).view(), 5);
  const auto message = [&](const std::function<void(std::vector<double>&)>& spoil) {
    NoiseModel model = good;
    spoil(model.channels[0].correlation);
    return message_of([&] { validate(model); });
  };
  EXPECT_EQ(message([](auto&) {}), "");
  EXPECT_EQ(message([](auto& c) { c.pop_back(); }),
            "a noise model's correlation is a square of 1 x 1, 3 x 3 ... 267 x 267 numbers, got 24");
  EXPECT_EQ(message([](auto& c) { c[12] = 0.5; }), "a noise model's correlation is 1 in the middle, got 0.5");
  EXPECT_EQ(message([](auto& c) { c[0] = 1.5; }), "a noise model's correlation is -1 to 1, got 1.5");
  EXPECT_EQ(message([](auto& c) { c[0] = std::nan(""); }), "a noise model's correlation is -1 to 1, got nan");
  EXPECT_EQ(message([](auto& c) { c[0] = 0; }).substr(0, 64),
            "a noise model's correlation is the same at (dx, dy) and (-dx, -d");
  EXPECT_EQ(message([](auto& c) { c = {0, 0, 0, 1, 1, 1, 0, 0, 0}; }), "");
  EXPECT_EQ(message([](auto& c) { c = {-1, -1, -1, -1, 1, -1, -1, -1, -1}; }),
            "a noise model's correlation is that of no noise: some frequency's power is below 0");
}

TEST(NoiseCorrelation, StreaksAreValidAlthoughTheSquareEnds) {
  const NoiseModel model = noise_model_of_kernel(gray, box(200, 1).view(), 1);
  EXPECT_EQ(correlation_reach(model.channels[0].correlation), 45);
  validate(model);
}

TEST(NoiseCorrelation, WhatIsRefused) {
  const Image negative = image_of(4, 4, 1, [](int x, int, int) { return x == 2 ? -1 : 1; });
  EXPECT_EQ(message_of([&] { noise_model_of_psd(gray, negative.view()); }),
            "a power spectral density is 0 or more, got -1");
  const Image two = image_of(4, 4, 2, [](int, int, int) { return 1; });
  EXPECT_EQ(message_of([&] { noise_model_of_psd(rgb, two.view()); }),
            "a power spectral density has 1 channel or one for each of 3, got 2");
  const Image none = image_of(3, 3, 1, [](int, int, int) { return 0; });
  EXPECT_EQ(message_of([&] { noise_model_of_kernel(gray, none.view(), 1); }),
            "a noise kernel has a number that is not 0");
  EXPECT_EQ(message_of([&] { noise_model_of_kernel(gray, box(256, 1).view(), 1); }),
            "a noise kernel has at most 255 x 255 pixels, got 256 x 1");
  EXPECT_EQ(message_of([&] { noise_model_of_kernel(gray, box(3, 3).view(), -1); }),
            "sigma is 0 or more, got -1");
  // No power at all: no noise.
  EXPECT_EQ(noise_model_of_psd(gray, none.view()).channels[0].deviations[0], 0);
}

}  // namespace
}  // namespace ungrain::testing
