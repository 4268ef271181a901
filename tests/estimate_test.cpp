#include "ungrain/estimate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/convert.h"
#include "noise/block_spectrum.h"
#include "noise/clipped_gaussian.h"
#include "scene/scene.h"
#include "test_images.h"
#include "ungrain/error.h"
#include "ungrain/noise.h"

namespace ungrain {
namespace {

ImageSpec spec_of(PixelType type, int width, int height, int channels = 1, double range = 0) {
  return {.width = width,
          .height = height,
          .channels = channels,
          .type = type,
          .colour = channels >= 3 ? Colour::rgb : Colour::gray,
          .alpha = channels == 2 || channels == 4,
          .range = range};
}

Image build(const ImageSpec& spec, const std::function<double(int x, int y)>& value) {
  Image image(spec);
  std::vector<double> row(static_cast<std::size_t>(spec.width));
  for (int y = 0; y < spec.height; ++y) {
    for (int x = 0; x < spec.width; ++x) row[static_cast<std::size_t>(x)] = value(x, y);
    for (int c = 0; c < spec.channels; ++c) store_row(image.view(), y, c, row.data());
  }
  return image;
}

// Sigma of the noise in pixel units; the output's type says whether it is cut off.
Image with_noise(const Image& clean, double sigma, PixelType type, std::uint64_t seed = 1) {
  ImageSpec spec = clean.spec();
  spec.type = type;
  spec.range = clean.spec().white();
  Image noisy(spec);
  add_noise(clean.view(), noisy.view(), {NoiseKind::gaussian, sigma, seed});
  return noisy;
}

void expect_same_bits(const NoiseEstimate& a, const NoiseEstimate& b) {
  EXPECT_EQ(a.sigma, b.sigma);
  EXPECT_EQ(a.channels, b.channels);
  EXPECT_EQ(a.correlation, b.correlation);
}

// ---- accuracy

struct Picture {
  std::string name;
  std::function<double(int x, int y)> value;  // 0 to 255
};

std::vector<Picture> pictures() {
  return {
      {"flat", [](int, int) { return 100.0; }},
      {"ramp", [](int x, int y) { return 20 + 0.4 * x + 0.4 * y; }},
      {"stripes and a sky",
       [](int x, int y) { return y < 60 ? 180.0 : 128 + 60 * std::sin(x * 0.9 + y * 0.4); }},
      {"bricks", [](int x, int y) { return (x + y / 16 % 2 * 16) % 32 < 3 || y % 16 < 2 ? 40.0 : 150.0; }},
      {"dark", [](int x, int y) { return 10 + 8 * std::sin(x * 0.02) * std::cos(y * 0.03); }},
  };
}

class Accuracy : public ::testing::TestWithParam<double> {};

TEST_P(Accuracy, UncutNoiseWithinSixPercent) {
  for (const Picture& picture : pictures()) {
    const Image clean = build(spec_of(PixelType::f32, 256, 256, 1, 255), picture.value);
    const double sigma = estimate_noise(with_noise(clean, GetParam(), PixelType::f32).view()).sigma;
    EXPECT_NEAR(sigma / GetParam(), 1, 0.06) << picture.name;
  }
}

// Cut off at black and white the noise is half itself in the dark, and its strength before that is asked for.
TEST_P(Accuracy, CutNoiseWithinTwelvePercent) {
  for (const Picture& picture : pictures()) {
    const Image clean = build(spec_of(PixelType::f32, 256, 256, 1, 255), picture.value);
    const double sigma = estimate_noise(with_noise(clean, GetParam(), PixelType::u8).view()).sigma;
    EXPECT_NEAR(sigma / GetParam(), 1, 0.12) << picture.name;
  }
}

TEST_P(Accuracy, SceneWithinEightPercent) {
  const Image clean = render_scene(spec_of(PixelType::f32, 480, 320, 3, 255));
  const double uncut = estimate_noise(with_noise(clean, GetParam(), PixelType::f32).view()).sigma;
  EXPECT_NEAR(uncut / GetParam(), 1, 0.08);
  const double cut = estimate_noise(with_noise(clean, GetParam(), PixelType::u8).view()).sigma;
  EXPECT_NEAR(cut / GetParam(), 1, 0.08);
}

INSTANTIATE_TEST_SUITE_P(Sigmas, Accuracy, ::testing::Values(1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0),
                         [](const auto& sigma) { return std::to_string(static_cast<int>(sigma.param)); });

TEST(Estimate, HalfALevelOfNoiseInWholeNumbers) {
  const Image clean =
      build(spec_of(PixelType::f32, 256, 256, 1, 255), [](int x, int) { return 100 + 0.1 * x; });
  EXPECT_NEAR(estimate_noise(with_noise(clean, 0.5, PixelType::u8).view()).sigma, 0.5, 0.03);
}

// A moving average of four pixels: the high frequencies are gone and the strength is a quarter... of the
// power.
TEST(Estimate, NoiseWithoutItsHighFrequencies) {
  const ImageSpec spec = spec_of(PixelType::f32, 512, 512, 1, 255);
  const Image white = with_noise(build(spec, [](int, int) { return 128.0; }), 20, PixelType::f32);
  const auto* from = white.samples<float>();
  const Image smooth = build(spec, [&](int x, int y) {
    const auto at = [&](int dx, int dy) { return double{from[(y + dy) % 512 * 512 + (x + dx) % 512]}; };
    return (at(0, 0) + at(1, 0) + at(0, 1) + at(1, 1)) / 4;
  });
  EXPECT_NEAR(estimate_noise(smooth.view()).sigma, 10, 2.5);
}

TEST(Estimate, SaltAndPepperIsLargelyIgnored) {
  const Image clean = render_scene(spec_of(PixelType::u8, 480, 320));
  Image noisy(clean.spec());
  add_noise(clean.view(), noisy.view(), {NoiseKind::gaussian, 5, 1});
  add_noise(noisy.view(), noisy.view(), {NoiseKind::salt_pepper, 0.02, 1});
  EXPECT_NEAR(estimate_noise(noisy.view()).sigma, 5, 1);
}

// ---- where little or nothing can be said

TEST(Estimate, ConstantsHaveNoNoise) {
  for (const double level : {0.0, 1.0, 128.0, 255.0}) {
    const Image image = build(spec_of(PixelType::u8, 50, 40, 3), [=](int, int) { return level; });
    expect_same_bits(estimate_noise(image.view()), {0, {0, 0, 0}});
  }
}

TEST(Estimate, BlackAndWhiteHaveNoNoise) {
  const Image image = build(spec_of(PixelType::u8, 64, 64),
                            [](int x, int y) { return (x / 3 + y / 5) % 2 == 0 ? 0.0 : 255.0; });
  EXPECT_EQ(estimate_noise(image.view()).sigma, 0);
}

TEST(Estimate, ADrawingWithSmoothOutlinesHasNoNoise) {
  const Image image = build(spec_of(PixelType::u8, 200, 200), [](int x, int y) {
    return std::clamp(128 + 60 * (70 - std::hypot(x - 100, y - 90)), 0.0, 255.0);
  });
  EXPECT_EQ(estimate_noise(image.view()).sigma, 0);
}

TEST(Estimate, AFrameDoesNotHideTheNoise) {
  const Image flat = build(spec_of(PixelType::f32, 256, 256, 1, 255), [](int, int) { return 120.0; });
  const Image noisy = with_noise(flat, 10, PixelType::u8);
  const auto* from = noisy.samples<std::uint8_t>();
  for (const double level : {0.0, 30.0}) {
    const Image framed = build(noisy.spec(), [&](int x, int y) {
      return std::min({x, y, 255 - x, 255 - y}) < 24 ? level : static_cast<double>(from[y * 256 + x]);
    });
    EXPECT_NEAR(estimate_noise(framed.view()).sigma, 10, 0.6) << level;
  }
}

TEST(Estimate, OnePixelHasNoNoise) {
  const Image image = build(spec_of(PixelType::f32, 1, 1), [](int, int) { return 0.3; });
  expect_same_bits(estimate_noise(image.view()), {0, {0}});
}

TEST(Estimate, TinyImagesGiveSomethingSensible) {
  for (int height = 1; height <= 12; ++height) {
    for (int width = 1; width <= 12; ++width) {
      const Image flat =
          build(spec_of(PixelType::f32, width, height, 1, 255), [](int, int) { return 100.0; });
      const double sigma = estimate_noise(with_noise(flat, 10, PixelType::f32).view()).sigma;
      EXPECT_TRUE(std::isfinite(sigma) && sigma < 40) << width << " x " << height << ": " << sigma;
      const double least = width * height >= 64 ? 4 : 0;
      EXPECT_GE(sigma, least) << width << " x " << height;
    }
  }
}

TEST(Estimate, OneLongRow) {
  const Image flat =
      build(spec_of(PixelType::f32, 5000, 1, 1, 255), [](int x, int) { return 50 + 0.01 * x; });
  EXPECT_NEAR(estimate_noise(with_noise(flat, 10, PixelType::f32).view()).sigma, 10, 1);
}

TEST(Estimate, BlocksThatAreNotFiniteAreLeftOut) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Image flat = build(spec_of(PixelType::f32, 200, 100, 1, 255), [](int, int) { return 100.0; });
  const Image noisy = with_noise(flat, 10, PixelType::f32);
  const auto* from = noisy.samples<float>();
  const Image holed = build(noisy.spec(), [&](int x, int y) {
    if (x == 40 && y == 40) return std::numeric_limits<double>::quiet_NaN();
    if (x == 90 && y % 20 == 0) return y % 40 == 0 ? infinity : -infinity;
    return double{from[y * 200 + x]};
  });
  EXPECT_NEAR(estimate_noise(holed.view()).sigma, 10, 0.8);
  const Image nothing = build(noisy.spec(), [=](int, int) { return infinity; });
  EXPECT_EQ(estimate_noise(nothing.view()).sigma, 0);
}

// ---- types, ranges, layouts, rows

TEST(Estimate, ScalesWithTheRange) {
  const Image clean = render_scene(spec_of(PixelType::f32, 240, 160, 3, 255));
  const double expected = estimate_noise(with_noise(clean, 12, PixelType::u8).view()).sigma;
  const Image clean_u16 = render_scene(spec_of(PixelType::u16, 240, 160, 3));
  EXPECT_NEAR(estimate_noise(with_noise(clean_u16, 12 * 257, PixelType::u16).view()).sigma / 257, expected,
              0.1);
  const Image clean_one = render_scene(spec_of(PixelType::f32, 240, 160, 3));
  EXPECT_NEAR(estimate_noise(with_noise(clean_one, 12 / 255.0, PixelType::f32).view()).sigma * 255, 12, 1);
  EXPECT_NEAR(estimate_noise(with_noise(clean_one, 12 / 255.0, PixelType::f16).view()).sigma * 255, 12, 1);
}

// A white that is no number of the samples' type is what they were cut off at, as that type has it.
TEST(Estimate, NoiseCutOffAtAnyWhite) {
  for (const double white : {0.3, 0.7, 100.1, 4095.3}) {
    const Image clean =
        build(spec_of(PixelType::f32, 256, 200, 1, white), [&](int x, int) { return white * 1.1 * x / 255; });
    const Image noisy = with_noise(clean, 0.1 * white, PixelType::f32);
    for (const PixelType type : {PixelType::f16, PixelType::f32}) {
      const Image cut = build(spec_of(type, 256, 200, 1, white), [&](int x, int y) {
        const auto* row = static_cast<const float*>(noisy.view().rows(y, 1).data);
        return std::clamp<double>(row[x], 0, white);
      });
      EXPECT_NEAR(estimate_noise(cut.view()).sigma / white, 0.1, 0.012)
          << white << " " << static_cast<int>(type);
    }
  }
}

TEST(Estimate, EachChannelHasItsOwn) {
  const Image clean =
      build(spec_of(PixelType::f32, 256, 200, 3, 255), [](int x, int y) { return 60 + x * 0.3 + y * 0.2; });
  Image noisy(clean.spec());
  const double sigmas[] = {4, 8, 16};
  std::vector<double> row(256);
  for (int c = 0; c < 3; ++c) {
    const Image channel = with_noise(clean, sigmas[c], PixelType::f32);
    for (int y = 0; y < 200; ++y) {
      load_row(channel.view(), y, c, row.data());
      store_row(noisy.view(), y, c, row.data());
    }
  }
  const NoiseEstimate estimate = estimate_noise(noisy.view());
  ASSERT_EQ(estimate.channels.size(), 3U);
  double squares = 0;
  for (int c = 0; c < 3; ++c) {
    EXPECT_NEAR(estimate.channels[c] / sigmas[c], 1, 0.06);
    squares += estimate.channels[c] * estimate.channels[c];
  }
  EXPECT_DOUBLE_EQ(estimate.sigma, std::sqrt(squares / 3));
}

TEST(Estimate, WhatTheChannelsNoiseHasInCommon) {
  const Image clean =
      build(spec_of(PixelType::f32, 256, 200, 3, 255), [](int x, int y) { return 60 + x * 0.3 + y * 0.2; });
  const Image own = with_noise(clean, 10, PixelType::f32, 1);  // each channel's
  const Image common = with_noise(
      build(spec_of(PixelType::f32, 256, 200, 1, 255), [](int, int) { return 0; }), 10, PixelType::f32, 2);
  std::vector<double> row(256);
  std::vector<double> same(256);
  for (const double share : {0.0, 0.5, 1.0}) {  // of the variance
    Image noisy(clean.spec());
    for (int y = 0; y < 200; ++y) {
      load_row(common.view(), y, 0, same.data());
      for (int c = 0; c < 3; ++c) {
        load_row(own.view(), y, c, row.data());
        for (int x = 0; x < 256; ++x) {
          const double ground = 60 + x * 0.3 + y * 0.2;
          row[x] = ground + std::sqrt(1 - share) * (row[x] - ground) + std::sqrt(share) * same[x];
        }
        store_row(noisy.view(), y, c, row.data());
      }
    }
    const NoiseEstimate estimate = estimate_noise(noisy.view());
    EXPECT_NEAR(estimate.sigma, 10, 0.6) << share;
    EXPECT_NEAR(estimate.correlation, share, 0.1) << share;
  }
}

TEST(Estimate, AlphaDoesNotCount) {
  using testing::Layout;
  testing::TestImage opaque(spec_of(PixelType::u8, 90, 70, 4), Layout::interleaved);
  fill_with_picture(opaque);
  testing::TestImage colours(spec_of(PixelType::u8, 90, 70, 3), Layout::interleaved);
  for (int y = 0; y < 70; ++y) {
    for (int x = 0; x < 90; ++x) {
      for (int c = 0; c < 3; ++c) colours.set(x, y, c, opaque.at(x, y, c));
      opaque.set(x, y, 3, (x * 37 + y * 11) % 256);
    }
  }
  const NoiseEstimate expected = estimate_noise(colours.view());
  EXPECT_EQ(expected.channels.size(), 3U);
  expect_same_bits(estimate_noise(opaque.view()), expected);
}

TEST(Estimate, EveryLayoutGivesTheSameBits) {
  using testing::Layout;
  NoiseEstimate expected;
  for (const Layout layout : {Layout::interleaved, Layout::planar, Layout::padded, Layout::flipped}) {
    testing::TestImage image(spec_of(PixelType::u16, 90, 70, 3), layout);
    fill_with_picture(image);
    if (layout == Layout::interleaved) expected = estimate_noise(image.view());
    expect_same_bits(estimate_noise(image.view()), expected);
  }
  EXPECT_GT(expected.sigma, 0);
}

// Also of an image so large that it is sampled and rows lie between the blocks.
TEST(Estimate, CutIntoRowsGivesTheSameBits) {
  for (const int side : {61, 300, 2500}) {
    const Image clean =
        build(spec_of(PixelType::f32, side, side, 1, 255), [](int x, int y) { return (x * y / 50) % 200; });
    const Image noisy = with_noise(clean, 7, PixelType::u8);
    const NoiseEstimate expected = estimate_noise(noisy.view());
    for (const int rows : {1, 7, 100}) {
      NoiseEstimator estimator(noisy.spec());
      for (int y = 0; y < side; y += rows) estimator.add_rows(noisy.view().rows(y, std::min(rows, side - y)));
      expect_same_bits(estimator.finish(), expected);
    }
  }
}

TEST(Estimate, OnlyTheSampledRowsAndColumnsCount) {
  for (const auto& [width, height] : {std::pair{61, 300}, {2501, 1999}, {100000, 5}}) {
    const Image clean = build(spec_of(PixelType::f32, width, height, 1, 255),
                              [](int x, int y) { return 20 + (x * y / 50) % 200; });
    Image noisy = with_noise(clean, 7, PixelType::u8);
    const NoiseEstimate expected = estimate_noise(noisy.view());
    const NoiseEstimator estimator(noisy.spec());
    std::vector<bool> row_counts(static_cast<std::size_t>(height));
    std::vector<bool> column_counts(static_cast<std::size_t>(width));
    for (const int y : estimator.sampled_rows()) row_counts[static_cast<std::size_t>(y)] = true;
    for (const int x : estimator.sampled_columns()) column_counts[static_cast<std::size_t>(x)] = true;
    auto* samples = noisy.samples<std::uint8_t>();
    for (std::size_t y = 0; y < row_counts.size(); ++y) {
      for (std::size_t x = 0; x < column_counts.size(); ++x) {
        if (!row_counts[y] || !column_counts[x]) samples[y * column_counts.size() + x] = 255;
      }
    }
    expect_same_bits(estimate_noise(noisy.view()), expected);
    EXPECT_EQ(height > 1000, std::count(row_counts.begin(), row_counts.end(), false) > height / 10);
  }
}

TEST(Estimate, WrongUseIsAnError) {
  const Image image = build(spec_of(PixelType::u8, 20, 20), [](int x, int) { return x; });
  NoiseEstimator estimator(image.spec());
  estimator.add_rows(image.view().rows(0, 12));
  EXPECT_THROW(estimator.finish(), Error);
  EXPECT_THROW(estimator.add_rows(image.view()), Error) << "too many rows";
  EXPECT_THROW(estimator.add_rows(Image(spec_of(PixelType::u8, 19, 2)).view()), Error) << "another width";
  EXPECT_THROW(estimator.add_rows(Image(spec_of(PixelType::u16, 20, 2)).view()), Error) << "another type";
  EXPECT_THROW(estimate_noise(ConstImageView(nullptr, image.spec())), Error);
}

// ---- parts

TEST(BlockTransform, KeepsTheEnergy) {
  for (const int width : {1, 3, 8}) {
    for (const int height : {2, 8}) {
      const BlockTransform transform(width, height);
      std::vector<double> block;
      for (int i = 0; i < transform.samples(); ++i) block.push_back(i * i % 17);
      double mean = 0;
      for (const double value : block) mean += value / transform.samples();
      double expected = 0;
      for (const double value : block) expected += (value - mean) * (value - mean);
      const BlockSpectrum spectrum = transform(block.data());
      EXPECT_NEAR(spectrum.mean, mean, 1e-12);
      double in_bands = 0;
      for (const BandEnergies& set : spectrum.energy) {
        for (const double energy : set) in_bands += energy;
      }
      // Both sets' busyness holds the shading, and each band up to the third is in one of them.
      double above_third = 0;
      for (const BandEnergies& set : spectrum.energy) above_third += set[3] + set[4];
      const double shading = (spectrum.busyness[0] + spectrum.busyness[1] - (in_bands - above_third)) / 2;
      EXPECT_NEAR(in_bands + shading, expected, 1e-9);
    }
  }
}

TEST(ClippedGaussian, KnownShapes) {
  const ClippedGaussian weak(1, 255);
  EXPECT_NEAR(weak.at_mean(128).variance_share, 1, 1e-4);
  EXPECT_NEAR(weak.at_mean(128).excess_kurtosis, 0, 1e-2);
  // A Gaussian around 0 that is cut there: mean 1 / sqrt(2 pi), variance 1/2 - 1 / (2 pi).
  const double pi = std::acos(-1.0);
  EXPECT_NEAR(weak.at_mean(1 / std::sqrt(2 * pi)).variance_share, 0.5 - 0.5 / pi, 1e-3);
  EXPECT_NEAR(weak.at_mean(255 - 1 / std::sqrt(2 * pi)).variance_share, 0.5 - 0.5 / pi, 1e-3);
  // So strong that only black and white are left.
  EXPECT_NEAR(ClippedGaussian(1e4, 255).at_mean(127.5).excess_kurtosis, -2, 0.05);
}

}  // namespace
}  // namespace ungrain
