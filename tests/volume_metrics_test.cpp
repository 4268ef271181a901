// Metrics of volumes, and metrics over masks.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/convert.h"
#include "ungrain/error.h"
#include "ungrain/metrics.h"
#include "ungrain/volume.h"

namespace ungrain {
namespace {

constexpr int radius = 5;  // of SSIM's window

int truth_value(int x, int y, int z) {
  return (x * y / 7 + z * z / 3 + (x / 5 + y / 6 + z / 4) % 2 * 90) % 256;
}
// The same with an error from -20 to 20, clipped.
int image_value(int x, int y, int z) {
  return std::clamp(truth_value(x, y, z) + (x * 37 + y * 101 + z * 59) % 41 - 20, 0, 255);
}
int mask_value(int x, int y, int z) { return (x + 2 * y + 3 * z) % 5 == 0 ? 1 : 0; }
int nothing(int, int, int) { return 0; }
int everything(int, int, int) { return 3; }
// Only where no window has its centre.
int border_value(int x, int, int) { return x < radius ? 1 : 0; }

ImageSpec volume_of(PixelType type, int width, int height, int depth, double range = 0, int channels = 1) {
  return volume_spec({.width = width,
                      .height = height,
                      .channels = channels,
                      .type = type,
                      .colour = channels == 1 ? Colour::gray : Colour::multi,
                      .range = range},
                     depth);
}

using Value = int (*)(int x, int y, int z);

Image build(const ImageSpec& spec, Value value, double scale = 1) {
  Image volume(spec);
  std::vector<double> slice(static_cast<std::size_t>(spec.width));
  for (int z = 0; z < spec.height; ++z) {
    for (int c = 0; c < spec.channels; ++c) {
      for (int i = 0; i < spec.width; ++i) {
        slice[static_cast<std::size_t>(i)] = value(i % spec.slice.width + 3 * c, i / spec.slice.width, z);
      }
      store_row(volume.view(), z, c, slice.data(), scale);
    }
  }
  return volume;
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void expect_same_bits(const Metrics& a, const Metrics& b) {
  EXPECT_EQ(a.mse, b.mse);
  EXPECT_EQ(a.psnr, b.psnr);
  EXPECT_EQ(a.max_abs, b.max_abs);
  EXPECT_EQ(a.ssim, b.ssim);
  ASSERT_EQ(a.in_mask.has_value(), b.in_mask.has_value());
  if (!a.in_mask) return;
  EXPECT_EQ(a.in_mask->pixels, b.in_mask->pixels);
  EXPECT_EQ(a.in_mask->mse, b.in_mask->mse);
  EXPECT_EQ(a.in_mask->psnr, b.in_mask->psnr);
  EXPECT_EQ(a.in_mask->max_abs, b.in_mask->max_abs);
  EXPECT_EQ(a.in_mask->ssim, b.in_mask->ssim);
}

struct Expected {
  PixelType type;
  int width;
  int height;
  int depth;
  double scale;
  double mse;
  double psnr;
  double ssim;
  std::int64_t masked;
  double masked_mse;
  double masked_ssim;
};

// scikit-image 0.26 on the volumes above in double: structural_similarity(gaussian_weights=True, sigma=1.5,
// use_sample_covariance=False, data_range=white, full=True) and peak_signal_noise_ratio. Over the mask: the
// mean of the full result where the mask is set and the border is 5 voxels away.
const std::vector<Expected> scikit_image = {
    {PixelType::u8, 11, 11, 11, 1, 124.78287002253944, 27.169253906280808, 0.9722775873817733, 267,
     129.97752808988764, 0.9722775873817733},
    {PixelType::u8, 17, 13, 19, 1, 132.8204334365325, 26.89815467717779, 0.9678775785354421, 840,
     132.46785714285716, 0.9678593704322589},
    {PixelType::u16, 23, 31, 14, 257, 8942625.681126026, 26.8148155502082, 0.9671598648114949, 1997,
     8908346.472208312, 0.9671331310672142},
    {PixelType::f32, 12, 40, 16, 1.0 / 256, 0.002058786153793335, 26.86388761225915, 0.9680870527852168, 1536,
     0.0020654002825419107, 0.968114321760758},
};

TEST(VolumeMetrics, AgreeWithScikitImage) {
  for (const Expected& want : scikit_image) {
    const ImageSpec spec = volume_of(want.type, want.width, want.height, want.depth);
    const Image mask = build(volume_of(PixelType::u8, want.width, want.height, want.depth), mask_value);
    const Metrics metrics = compare(build(spec, truth_value, want.scale).view(),
                                    build(spec, image_value, want.scale).view(), mask.view());
    EXPECT_NEAR(metrics.mse, want.mse, 1e-13 * want.mse);
    EXPECT_NEAR(metrics.psnr, want.psnr, 1e-12);
    ASSERT_TRUE(metrics.ssim.has_value());
    EXPECT_NEAR(*metrics.ssim, want.ssim, 1e-12);
    EXPECT_EQ(metrics.max_abs, 20 * want.scale);
    EXPECT_FALSE(metrics.fsim.has_value());
    EXPECT_FALSE(metrics.fsimc.has_value());
    ASSERT_TRUE(metrics.in_mask.has_value());
    EXPECT_EQ(metrics.in_mask->pixels, want.masked);
    EXPECT_NEAR(metrics.in_mask->mse, want.masked_mse, 1e-13 * want.masked_mse);
    EXPECT_NEAR(metrics.in_mask->psnr, 10 * std::log10(std::pow(spec.white(), 2) / want.masked_mse), 1e-12);
    ASSERT_TRUE(metrics.in_mask->ssim.has_value());
    EXPECT_NEAR(*metrics.in_mask->ssim, want.masked_ssim, 1e-12);
  }
}

// The window's sums written out as their definition in three dimensions, at each voxel 5 from the border.
double direct_ssim(int width, int height, int depth, Value mask) {
  std::vector<double> weights;
  double total = 0;
  for (int i = 0; i < 1331; ++i) {
    const int x = i % 11 - radius;
    const int y = i / 11 % 11 - radius;
    const int z = i / 121 - radius;
    weights.push_back(std::exp(-(x * x + y * y + z * z) / (2 * 1.5 * 1.5)));
    total += weights.back();
  }
  const double c1 = 2.55 * 2.55;
  const double c2 = 7.65 * 7.65;
  double sum = 0;
  int windows = 0;
  const auto add_window = [&](int left, int top, int front) {
    double mean_a = 0;
    double mean_b = 0;
    double variance_a = 0;
    double variance_b = 0;
    double covariance = 0;
    const auto each = [&](const std::function<void(double, double, double)>& use) {
      for (int i = 0; i < 1331; ++i) {
        const int x = left + i % 11;
        const int y = top + i / 11 % 11;
        const int z = front + i / 121;
        use(weights[static_cast<std::size_t>(i)] / total, truth_value(x, y, z), image_value(x, y, z));
      }
    };
    each([&](double weight, double a, double b) {
      mean_a += weight * a;
      mean_b += weight * b;
    });
    each([&](double weight, double a, double b) {
      variance_a += weight * (a - mean_a) * (a - mean_a);
      variance_b += weight * (b - mean_b) * (b - mean_b);
      covariance += weight * (a - mean_a) * (b - mean_b);
    });
    sum += (2 * mean_a * mean_b + c1) * (2 * covariance + c2) /
           ((mean_a * mean_a + mean_b * mean_b + c1) * (variance_a + variance_b + c2));
    ++windows;
  };
  for (int z = 0; z + 11 <= depth; ++z) {
    for (int y = 0; y + 11 <= height; ++y) {
      for (int x = 0; x + 11 <= width; ++x) {
        if (mask(x + radius, y + radius, z + radius) != 0) add_window(x, y, z);
      }
    }
  }
  return sum / windows;
}

TEST(VolumeMetrics, SsimIsItsDefinition) {
  for (const auto& [width, height, depth] : {std::array{11, 11, 11}, {14, 12, 13}, {11, 16, 12}}) {
    const ImageSpec spec = volume_of(PixelType::u8, width, height, depth);
    const Image truth = build(spec, truth_value);
    const Image image = build(spec, image_value);
    const Metrics metrics = compare(truth.view(), image.view(), build(spec, mask_value).view());
    EXPECT_NEAR(*metrics.ssim, direct_ssim(width, height, depth, everything), 1e-12);
    EXPECT_NEAR(*metrics.in_mask->ssim, direct_ssim(width, height, depth, mask_value), 1e-12);
    EXPECT_EQ(ssim(truth.view(), image.view()), *metrics.ssim);
  }
}

TEST(VolumeMetrics, CutsBetweenSlicesChangeNoBit) {
  const ImageSpec spec = volume_of(PixelType::f32, 15, 13, 27, 255, 2);
  const Image truth = build(spec, truth_value, 0.97);
  const Image image = build(spec, image_value, 1.03);
  const Image mask = build(spec, mask_value);
  const Metrics whole = compare(truth.view(), image.view(), mask.view());
  for (const int step : {1, 2, 7, 11, 12, 26}) {
    Comparison comparison(spec);
    for (int z = 0; z < spec.height; z += step) {
      const int count = std::min(step, spec.height - z);
      comparison.add_rows(truth.view().rows(z, count), image.view().rows(z, count),
                          mask.view().rows(z, count));
    }
    expect_same_bits(comparison.finish(), whole);
  }
  expect_same_bits(compare(image.view(), truth.view(), mask.view()), whole);
}

TEST(VolumeMetrics, IdenticalVolumes) {
  const ImageSpec spec = volume_of(PixelType::f32, 13, 12, 14, 255);
  const Image truth = build(spec, truth_value);
  const Metrics metrics = compare(truth.view(), truth.view(), build(spec, mask_value).view());
  EXPECT_EQ(metrics.psnr, std::numeric_limits<double>::infinity());
  EXPECT_EQ(metrics.ssim, 1.0);
  EXPECT_EQ(metrics.in_mask->psnr, std::numeric_limits<double>::infinity());
  EXPECT_EQ(metrics.in_mask->ssim, 1.0);
}

TEST(VolumeMetrics, SsimIsAbsentBelowElevenVoxels) {
  for (const auto& [width, height, depth] : {std::array{10, 20, 20}, {20, 10, 20}, {20, 20, 10}, {1, 1, 1}}) {
    const ImageSpec spec = volume_of(PixelType::u8, width, height, depth);
    const Image truth = build(spec, truth_value);
    const Image image = build(spec, image_value);
    EXPECT_FALSE(compare(truth.view(), image.view()).ssim.has_value());
    EXPECT_TRUE(message_of([&] {
                  ssim(truth.view(), image.view());
                }).starts_with("SSIM needs volumes of at least 11 x 11 x 11 voxels"));
  }
}

TEST(VolumeMetrics, WhatDoesNotFit) {
  const Image truth = build(volume_of(PixelType::u8, 12, 10, 6), truth_value);
  const Image other = build(volume_of(PixelType::u8, 10, 12, 6), truth_value);
  EXPECT_EQ(message_of([&] { compare(truth.view(), other.view()); }),
            "volumes of 12 x 10 x 6 voxels and 10 x 12 x 6 voxels cannot be compared");
  EXPECT_EQ(message_of([&] { compare(truth.view(), truth.view(), other.view()); }),
            "a mask of 10 x 12 x 6 voxels does not fit a volume of 12 x 10 x 6 voxels");
  EXPECT_EQ(message_of([&] { fsim(truth.view(), truth.view()); }), "FSIM is not defined for volumes");
}

// ---- masks

TEST(MaskedMetrics, AllPixelsGiveTheWholeImagesNumbers) {
  for (const ImageSpec& spec : {volume_of(PixelType::u8, 17, 13, 19),
                                ImageSpec{.width = 40, .height = 30, .channels = 3, .colour = Colour::rgb}}) {
    Image truth(spec);
    Image image(spec);
    for (std::size_t i = 0; i < truth.bytes(); ++i) {
      truth.samples<std::uint8_t>()[i] = static_cast<std::uint8_t>(i * 7 % 251);
      image.samples<std::uint8_t>()[i] = static_cast<std::uint8_t>(i * 7 % 251 + i % 5);
    }
    ImageSpec one_channel = spec;
    one_channel.channels = 1;
    one_channel.colour = Colour::gray;
    one_channel.type = PixelType::f32;
    Image mask(one_channel);
    std::fill_n(mask.samples<float>(), mask.bytes() / sizeof(float), -0.5F);
    const Metrics metrics = compare(truth.view(), image.view(), mask.view());
    ASSERT_TRUE(metrics.in_mask.has_value());
    EXPECT_EQ(metrics.in_mask->pixels, static_cast<std::int64_t>(spec.width) * spec.height);
    EXPECT_EQ(metrics.in_mask->mse, metrics.mse);
    EXPECT_EQ(metrics.in_mask->psnr, metrics.psnr);
    EXPECT_EQ(metrics.in_mask->max_abs, metrics.max_abs);
    EXPECT_EQ(metrics.in_mask->ssim, metrics.ssim);
    EXPECT_FALSE(compare(truth.view(), image.view()).in_mask.has_value());
  }
}

// An image of 13 x 12 has 3 x 2 windows; the mask holds the centre of one of them.
TEST(MaskedMetrics, OnePixelOfAnImage) {
  const ImageSpec spec{.width = 13, .height = 12, .type = PixelType::f32, .range = 255};
  Image truth(spec);
  Image image(spec);
  for (int i = 0; i < 13 * 12; ++i) {
    truth.samples<float>()[i] = static_cast<float>(truth_value(i % 13, i / 13, 0));
    image.samples<float>()[i] = static_cast<float>(image_value(i % 13, i / 13, 0));
  }
  Image mask(spec);
  mask.samples<float>()[6 * 13 + 7] = 1;
  mask.samples<float>()[0] = std::numeric_limits<float>::quiet_NaN();  // does not count
  const Metrics metrics = compare(truth.view(), image.view(), mask.view());
  const double error = std::abs(truth_value(7, 6, 0) - image_value(7, 6, 0));
  EXPECT_EQ(metrics.in_mask->pixels, 1);
  EXPECT_EQ(metrics.in_mask->max_abs, error);
  EXPECT_EQ(metrics.in_mask->mse, error * error);
  // The image around that pixel is one window.
  ImageSpec window = spec;
  window.width = 11;
  window.height = 11;
  const float* a = truth.samples<float>() + 13 + 2;
  const float* b = image.samples<float>() + 13 + 2;
  EXPECT_NEAR(*metrics.in_mask->ssim,
              ssim(ConstImageView(a, window, interleaved_strides(spec)),
                   ConstImageView(b, window, interleaved_strides(spec))),
              1e-14);
}

TEST(MaskedMetrics, WhatIsAbsent) {
  const ImageSpec spec = volume_of(PixelType::u8, 13, 12, 14);
  const Image truth = build(spec, truth_value);
  const Image image = build(spec, image_value);
  EXPECT_FALSE(compare(truth.view(), image.view(), build(spec, nothing).view()).in_mask.has_value());
  const Metrics border = compare(truth.view(), image.view(), build(spec, border_value).view());
  ASSERT_TRUE(border.in_mask.has_value());
  EXPECT_EQ(border.in_mask->pixels, 5 * 12 * 14);
  EXPECT_FALSE(border.in_mask->ssim.has_value());
}

TEST(MaskedMetrics, AllRowsOrNone) {
  const ImageSpec spec = volume_of(PixelType::u8, 13, 12, 14);
  const Image truth = build(spec, truth_value);
  Comparison comparison(spec);
  comparison.add_rows(truth.view().rows(0, 2), truth.view().rows(0, 2));
  EXPECT_EQ(message_of([&] {
              comparison.add_rows(truth.view().rows(2, 2), truth.view().rows(2, 2), truth.view().rows(2, 2));
            }),
            "a mask is given for all rows of a comparison or none");
}

}  // namespace
}  // namespace ungrain
