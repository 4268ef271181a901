#include "ungrain/metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/convert.h"
#include "ungrain/error.h"

namespace ungrain {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

ImageSpec spec_of(PixelType type, int width, int height, int channels, double range = 0) {
  return {.width = width,
          .height = height,
          .channels = channels,
          .type = type,
          .colour = channels == 3 ? Colour::rgb : Colour::gray,
          .range = range};
}

// Whole numbers from 0 to 255: hyperbolas, a chessboard, and each channel a little brighter.
int truth_value(int x, int y, int channel) {
  return (x * y / 7 + (x / 16 + y / 16) % 2 * 90 + 40 * channel) % 256;
}
// The same with an error from -20 to 20, clipped.
int image_value(int x, int y, int channel) {
  return std::clamp(truth_value(x, y, channel) + (x * 37 + y * 101 + channel * 59) % 41 - 20, 0, 255);
}
int zero(int, int, int) { return 0; }

Image build(const ImageSpec& spec, int (*value)(int, int, int), double scale = 1) {
  Image image(spec);
  std::vector<double> row(static_cast<std::size_t>(spec.width));
  for (int y = 0; y < spec.height; ++y) {
    for (int c = 0; c < spec.channels; ++c) {
      for (int x = 0; x < spec.width; ++x) row[static_cast<std::size_t>(x)] = value(x, y, c);
      store_row(image.view(), y, c, row.data(), scale);
    }
  }
  return image;
}

Image constant(const ImageSpec& spec, double level) {
  return build(
      spec, [](int, int, int) { return 1; }, level);
}

void expect_same_bits(const Metrics& a, const Metrics& b) {
  EXPECT_EQ(a.mse, b.mse);
  EXPECT_EQ(a.psnr, b.psnr);
  EXPECT_EQ(a.max_abs, b.max_abs);
  EXPECT_EQ(a.ssim, b.ssim);
  EXPECT_EQ(a.fsim, b.fsim);
  EXPECT_EQ(a.fsimc, b.fsimc);
}

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

// ---- held against scikit-image

struct Expected {
  PixelType type;
  int width;
  int height;
  int channels;
  double range;
  double scale;
  double mse;
  double psnr;
  double ssim;
};

// scikit-image 0.26 on the images above in double: structural_similarity(gaussian_weights=True, sigma=1.5,
// use_sample_covariance=False, data_range=white, channel_axis=2) and peak_signal_noise_ratio.
const std::vector<Expected> scikit_image = {
    {PixelType::u8, 64, 48, 1, 0, 1, 131.28483072916666, 26.948658123199625, 0.820519318263445},
    {PixelType::u8, 53, 37, 3, 0, 1, 134.09178990311065, 26.856781729412106, 0.7952543103028594},
    {PixelType::u8, 11, 11, 1, 0, 1, 78.3801652892562, 29.188741858782098, 0.38061962338000105},
    {PixelType::u16, 40, 61, 1, 0, 257, 8666332.600819672, 26.951112549428288, 0.8172926946959451},
    {PixelType::u16, 33, 29, 3, 4095, 16, 34719.877394636016, 26.839296292980702, 0.7077324481507823},
    {PixelType::f32, 47, 50, 1, 0, 1.0 / 256, 0.0019729224671708777, 27.04889981519971, 0.7994027157985444},
    {PixelType::f32, 31, 45, 3, 0, 1.0 / 256, 0.0020519844520049285, 26.878259342200877, 0.7543294506669951},
};

TEST(Metrics, AgreeWithScikitImage) {
  for (const Expected& want : scikit_image) {
    const ImageSpec spec = spec_of(want.type, want.width, want.height, want.channels, want.range);
    const Image truth = build(spec, truth_value, want.scale);
    const Image image = build(spec, image_value, want.scale);
    const Metrics metrics = compare(truth.view(), image.view());
    EXPECT_NEAR(metrics.mse, want.mse, 1e-13 * want.mse);
    EXPECT_NEAR(metrics.psnr, want.psnr, 1e-12);
    ASSERT_TRUE(metrics.ssim.has_value());
    EXPECT_NEAR(*metrics.ssim, want.ssim, 1e-12);
    EXPECT_EQ(metrics.max_abs, 20 * want.scale);
  }
}

TEST(Metrics, SingleFunctionsEqualTheComparison) {
  for (const Expected& want : scikit_image) {
    const ImageSpec spec = spec_of(want.type, want.width, want.height, want.channels, want.range);
    const Image truth = build(spec, truth_value, want.scale);
    const Image image = build(spec, image_value, want.scale);
    const Metrics metrics = compare(truth.view(), image.view());
    EXPECT_EQ(mse(truth.view(), image.view()), metrics.mse);
    EXPECT_EQ(psnr(truth.view(), image.view()), metrics.psnr);
    EXPECT_EQ(max_abs(truth.view(), image.view()), metrics.max_abs);
    EXPECT_EQ(ssim(truth.view(), image.view()), *metrics.ssim);
  }
}

// ---- closed forms

TEST(Metrics, IdenticalImages) {
  for (const Expected& want : scikit_image) {
    const Image truth = build(spec_of(want.type, want.width, want.height, want.channels, want.range),
                              truth_value, want.scale);
    const Metrics metrics = compare(truth.view(), truth.view());
    EXPECT_EQ(metrics.mse, 0);
    EXPECT_EQ(metrics.psnr, infinity);
    EXPECT_EQ(metrics.max_abs, 0);
    EXPECT_EQ(metrics.ssim, 1.0);  // exactly
  }
}

TEST(Metrics, ConstantImages) {
  const ImageSpec spec = spec_of(PixelType::u8, 20, 15, 3);
  const Metrics metrics = compare(constant(spec, 100).view(), constant(spec, 130).view());
  EXPECT_EQ(metrics.mse, 900);
  EXPECT_NEAR(metrics.psnr, 20 * std::log10(255 / 30.0), 1e-12);
  EXPECT_EQ(metrics.max_abs, 30);
  const double c1 = 2.55 * 2.55;  // without variance only the luminance term is left
  EXPECT_NEAR(*metrics.ssim, (2 * 100 * 130 + c1) / (100 * 100 + 130 * 130 + c1), 1e-12);
}

TEST(Metrics, OneWrongSample) {
  const ImageSpec spec = spec_of(PixelType::u16, 10, 10, 1);
  const Image truth = constant(spec, 1000);
  Image image = truth.copy();
  image.samples<std::uint16_t>()[57] = 1500;
  const Metrics metrics = compare(truth.view(), image.view());
  EXPECT_EQ(metrics.mse, 500.0 * 500 / 100);
  EXPECT_EQ(metrics.max_abs, 500);
  EXPECT_FALSE(metrics.ssim.has_value());
}

TEST(Metrics, BlackAgainstWhite) {
  const ImageSpec spec = spec_of(PixelType::f32, 16, 16, 1);
  const Metrics metrics = compare(constant(spec, 0).view(), constant(spec, 1).view());
  EXPECT_EQ(metrics.mse, 1);
  EXPECT_EQ(metrics.psnr, 0);
  EXPECT_NEAR(*metrics.ssim, 1e-4 / (1 + 1e-4), 1e-15);
}

// One window: the weighted sums written out as their definition, in two dimensions.
TEST(Metrics, SsimOfOneWindowIsItsDefinition) {
  const ImageSpec spec = spec_of(PixelType::u8, 11, 11, 1);
  double total = 0;
  double mean_a = 0;
  double mean_b = 0;
  const auto each = [](const std::function<void(double, double, double)>& use) {
    for (int y = 0; y < 11; ++y) {
      for (int x = 0; x < 11; ++x) {
        const double squared_distance = (x - 5) * (x - 5) + (y - 5) * (y - 5);
        use(std::exp(-squared_distance / (2 * 1.5 * 1.5)), truth_value(x, y, 0), image_value(x, y, 0));
      }
    }
  };
  each([&](double weight, double a, double b) {
    total += weight;
    mean_a += weight * a;
    mean_b += weight * b;
  });
  mean_a /= total;
  mean_b /= total;
  double variance_a = 0;
  double variance_b = 0;
  double covariance = 0;
  each([&](double weight, double a, double b) {
    variance_a += weight / total * (a - mean_a) * (a - mean_a);
    variance_b += weight / total * (b - mean_b) * (b - mean_b);
    covariance += weight / total * (a - mean_a) * (b - mean_b);
  });
  const double c1 = 2.55 * 2.55;
  const double c2 = 7.65 * 7.65;
  const double want = (2 * mean_a * mean_b + c1) * (2 * covariance + c2) /
                      ((mean_a * mean_a + mean_b * mean_b + c1) * (variance_a + variance_b + c2));
  EXPECT_NEAR(ssim(build(spec, truth_value).view(), build(spec, image_value).view()), want, 1e-13);
}

// ---- what must not matter

TEST(Metrics, ExchangingTheImagesChangesNoBit) {
  const ImageSpec spec = spec_of(PixelType::f32, 61, 43, 3, 255);
  const Image a = build(spec, truth_value);
  const Image b = build(spec, image_value, 1.1);
  expect_same_bits(compare(a.view(), b.view()), compare(b.view(), a.view()));
}

TEST(Metrics, TypesMayDifferWhereTheWhiteLevelIsTheSame) {
  const ImageSpec bytes = spec_of(PixelType::u8, 40, 30, 3);
  const Image truth = build(bytes, truth_value);
  const Metrics want = compare(truth.view(), build(bytes, image_value).view());
  for (const PixelType type : {PixelType::u16, PixelType::f16, PixelType::f32}) {
    const Image image = build(spec_of(type, 40, 30, 3, 255), image_value);
    expect_same_bits(compare(truth.view(), image.view()), want);
  }
}

TEST(Metrics, LayoutDoesNotMatter) {
  const ImageSpec spec = spec_of(PixelType::u16, 25, 31, 3);
  const Image truth = build(spec, truth_value, 200);
  const Image image = build(spec, image_value, 200);
  std::vector<std::uint16_t> planes(25 * 31 * 3);
  const ImageView planar(planes.data(), spec, planar_strides(spec));
  for (int y = 0; y < 31; ++y) {
    for (int c = 0; c < 3; ++c) copy_row(image.view(), y, planar, y, c);
  }
  expect_same_bits(compare(truth.view(), planar), compare(truth.view(), image.view()));
}

TEST(Metrics, AlphaDoesNotCount) {
  ImageSpec with_alpha = spec_of(PixelType::u8, 23, 19, 3);
  const Image truth = build(with_alpha, truth_value);
  const Image image = build(with_alpha, image_value);
  with_alpha.channels = 4;
  with_alpha.alpha = true;
  const Image opaque = build(with_alpha, truth_value);
  Image transparent(with_alpha);
  for (int y = 0; y < 19; ++y) {
    for (int c = 0; c < 3; ++c) copy_row(image.view(), y, transparent.view(), y, c);
  }
  expect_same_bits(compare(opaque.view(), transparent.view()), compare(truth.view(), image.view()));
}

TEST(Metrics, CutsBetweenRowsChangeNoBit) {
  for (const int channels : {1, 3}) {
    const ImageSpec spec = spec_of(PixelType::f32, 37, 53, channels, 255);
    const Image truth = build(spec, truth_value, 0.97);
    const Image image = build(spec, image_value, 1.03);
    const Metrics whole = compare(truth.view(), image.view());
    for (const int step : {1, 2, 7, 10, 11, 12, 52}) {
      Comparison comparison(spec);
      for (int y = 0; y < spec.height; y += step) {
        const int count = std::min(step, spec.height - y);
        comparison.add_rows(truth.view().rows(y, count), image.view().rows(y, count));
      }
      expect_same_bits(comparison.finish(), whole);
    }
  }
}

TEST(Metrics, ComparisonMovesAndFinishesTwice) {
  const ImageSpec spec = spec_of(PixelType::u8, 20, 20, 1);
  const Image truth = build(spec, truth_value);
  const Image image = build(spec, image_value);
  Comparison first(spec);
  first.add_rows(truth.view().rows(0, 13), image.view().rows(0, 13));
  Comparison second = std::move(first);
  second.add_rows(truth.view().rows(13, 7), image.view().rows(13, 7));
  expect_same_bits(second.finish(), compare(truth.view(), image.view()));
  expect_same_bits(second.finish(), compare(truth.view(), image.view()));
}

// A first row of huge errors must not swallow the many small ones after it.
TEST(Metrics, SumsLoseNothing) {
  const ImageSpec spec = spec_of(PixelType::f32, 1, 100'001, 1);
  const Image truth = build(spec, zero);
  Image image = constant(spec, 1);
  image.samples<float>()[0] = 0x1p27F;  // its square is 2^54: adding 1 to that changes nothing
  EXPECT_EQ(mse(truth.view(), image.view()), (0x1p54 + 100'000) / 100'001);
}

// ---- small, odd and wrong input

TEST(Metrics, SsimIsAbsentBelowElevenPixels) {
  for (const auto& [width, height] : {std::pair{10, 40}, {40, 10}, {1, 1}}) {
    const ImageSpec spec = spec_of(PixelType::u8, width, height, 1);
    const Image truth = build(spec, truth_value);
    const Image image = build(spec, image_value);
    const Metrics metrics = compare(truth.view(), image.view());
    EXPECT_FALSE(metrics.ssim.has_value());
    EXPECT_EQ(metrics.mse, mse(truth.view(), image.view()));
    EXPECT_EQ(thrown_by([&] { ssim(truth.view(), image.view()); }).code, invalid);
  }
}

TEST(Metrics, NanAndInfinityShow) {
  const ImageSpec spec = spec_of(PixelType::f32, 30, 30, 1);
  const Image truth = build(spec, truth_value, 1.0 / 256);
  Image image = truth.copy();
  image.samples<float>()[40] = std::numeric_limits<float>::quiet_NaN();
  const Metrics with_nan = compare(truth.view(), image.view());
  EXPECT_TRUE(std::isnan(with_nan.mse));
  EXPECT_TRUE(std::isnan(with_nan.psnr));
  EXPECT_TRUE(std::isnan(with_nan.max_abs));
  EXPECT_TRUE(std::isnan(*with_nan.ssim));
  image.samples<float>()[40] = std::numeric_limits<float>::infinity();
  const Metrics with_infinity = compare(truth.view(), image.view());
  EXPECT_EQ(with_infinity.mse, infinity);
  EXPECT_EQ(with_infinity.psnr, -infinity);
  EXPECT_EQ(with_infinity.max_abs, infinity);
  EXPECT_TRUE(std::isnan(*with_infinity.ssim));
}

TEST(MetricsErrors, ImagesThatDoNotFit) {
  const Image truth = build(spec_of(PixelType::u8, 20, 20, 1), truth_value);
  const auto message_for = [&](const ConstImageView& view) {
    const Thrown thrown = thrown_by([&] { compare(truth.view(), view); });
    EXPECT_EQ(thrown.code, invalid);
    EXPECT_EQ(thrown.message.find('\n'), std::string::npos);
    for (const auto& function : {mse, psnr, max_abs, ssim}) {
      EXPECT_EQ(thrown_by([&] { function(truth.view(), view); }).message, thrown.message);
    }
    return thrown.message;
  };
  const auto image_of = [](const ImageSpec& spec) { return build(spec, truth_value); };
  EXPECT_EQ(message_for(image_of(spec_of(PixelType::u8, 21, 20, 1)).view()),
            "images of 20 x 20 and 21 x 20 pixels cannot be compared");
  EXPECT_EQ(message_for(image_of(spec_of(PixelType::u8, 20, 19, 1)).view()),
            "images of 20 x 20 and 20 x 19 pixels cannot be compared");
  EXPECT_EQ(message_for(image_of(spec_of(PixelType::u8, 20, 20, 3)).view()),
            "images that are gray and rgb cannot be compared");
  EXPECT_EQ(message_for(image_of(spec_of(PixelType::u16, 20, 20, 1)).view()),
            "images whose white levels are 255 and 65535 cannot be compared");
  ConstImageView nothing = truth.view();
  nothing.data = nullptr;
  EXPECT_EQ(message_for(nothing), "an image without pixels cannot be compared");
  ConstImageView on_device = truth.view();
  on_device.space.memory = Space::Memory::cuda;
  EXPECT_EQ(thrown_by([&] { compare(truth.view(), on_device); }).code,
            static_cast<int>(ErrorCode::unsupported));
}

TEST(MetricsErrors, RowsThatDoNotFit) {
  const ImageSpec spec = spec_of(PixelType::u8, 20, 20, 1);
  const Image truth = build(spec, truth_value);
  Comparison comparison(spec);
  comparison.add_rows(truth.view().rows(0, 15), truth.view().rows(0, 15));
  EXPECT_EQ(thrown_by([&] { comparison.finish(); }).message, "the comparison has seen 15 of its 20 rows");
  EXPECT_EQ(thrown_by([&] { comparison.add_rows(truth.view().rows(0, 6), truth.view().rows(0, 6)); }).message,
            "6 more rows after 15 are too many for a comparison of 20");
  EXPECT_EQ(thrown_by([&] { comparison.add_rows(truth.view().rows(0, 3), truth.view().rows(0, 4)); }).code,
            invalid);
  const Image narrow = build(spec_of(PixelType::u8, 19, 5, 1), truth_value);
  EXPECT_EQ(thrown_by([&] { comparison.add_rows(narrow.view(), narrow.view()); }).code, invalid);
  comparison.add_rows(truth.view().rows(15, 5), truth.view().rows(15, 5));  // the failures left it as it was
  EXPECT_EQ(comparison.finish().ssim, 1.0);
  EXPECT_EQ(thrown_by([] { Comparison({.width = 0, .height = 5}); }).code, invalid);
}

}  // namespace
}  // namespace ungrain
