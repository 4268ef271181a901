#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <functional>
#include <limits>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "core/convert.h"
#include "metrics/fft.h"
#include "metrics/fsim.h"
#include "metrics/phase_congruency.h"
#include "ungrain/error.h"
#include "ungrain/metrics.h"

namespace ungrain {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// ---- the transform

std::complex<double> root(std::int64_t part, std::int64_t whole) {
  return std::polar(1.0,
                    -2 * std::numbers::pi * static_cast<double>(part % whole) / static_cast<double>(whole));
}

std::vector<std::complex<double>> naive_transform(const std::vector<std::complex<double>>& values) {
  const auto length = static_cast<std::int64_t>(values.size());
  std::vector<std::complex<double>> roots;
  for (std::int64_t k = 0; k < length; ++k) roots.push_back(root(k, length));
  std::vector<std::complex<double>> result(values.size());
  for (std::int64_t k = 0; k < length; ++k) {
    for (std::int64_t j = 0; j < length; ++j) result[k] += values[j] * roots[j * k % length];
  }
  return result;
}

void expect_transform_of_length(int length) {
  std::mt19937 random(static_cast<unsigned>(length));
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<ComplexLanes> sequences(length);
  std::vector<std::vector<std::complex<double>>> expected(fft_lanes);
  for (int lane = 0; lane < fft_lanes; ++lane) {
    for (ComplexLanes& element : sequences) {
      element.real.of[lane] = uniform(random);
      element.imaginary.of[lane] = uniform(random);
      expected[lane].emplace_back(element.real.of[lane], element.imaginary.of[lane]);
    }
    expected[lane] = naive_transform(expected[lane]);
  }
  Fft fft(length);
  fft.forward(sequences);
  for (int lane = 0; lane < fft_lanes; ++lane) {
    for (int k = 0; k < length; ++k) {
      ASSERT_NEAR(sequences[k].real.of[lane], expected[lane][k].real(), 1e-11) << length << " at " << k;
      ASSERT_NEAR(sequences[k].imaginary.of[lane], expected[lane][k].imag(), 1e-11) << length << " at " << k;
    }
  }
}

TEST(Fft, IsTheSumOfItsDefinition) {
  for (int length = 1; length <= 130; ++length) expect_transform_of_length(length);
}

// Powers, products of odd primes, primes and products of primes that go over a convolution.
TEST(Fft, IsTheSumOfItsDefinitionInLongSequences) {
  for (const int length : {243, 256, 343, 360, 383, 509, 625, 767}) {
    expect_transform_of_length(length);
  }
}

TEST(Fft, OfPlanesIsThatOfRowsAndColumns) {
  constexpr int width = 15;
  constexpr int height = 22;
  Plane plane(width, height);
  std::mt19937 random(1);
  for (double& value : plane.values) value = std::uniform_real_distribution<double>(-1, 1)(random);
  PlaneFft fft(width, height);
  const ComplexPlane spectrum = fft.forward(plane);
  for (int v = 0; v < height; ++v) {
    for (int u = 0; u < width; ++u) {
      std::complex<double> expected = 0;
      for (int y = 0; y < height; ++y) {
        for (int x = 0; x < width; ++x) {
          expected += plane.values[y * width + x] * root(x * u, width) * root(y * v, height);
        }
      }
      ASSERT_NEAR(spectrum.real.values[v * width + u], expected.real(), 1e-12);
      ASSERT_NEAR(spectrum.imaginary.values[v * width + u], expected.imag(), 1e-12);
    }
  }
}

TEST(Fft, InverseOfPlanesLeadsBack) {
  for (const auto& [width, height] : {std::pair{1, 1}, {7, 1}, {16, 9}, {59, 61}, {100, 53}}) {
    Plane plane(width, height);
    for (std::size_t i = 0; i < plane.values.size(); ++i) plane.values[i] = static_cast<double>(i * 37 % 101);
    PlaneFft fft(width, height);
    ComplexPlane back = fft.forward(plane);
    fft.inverse(back);
    for (std::size_t i = 0; i < plane.values.size(); ++i) {
      ASSERT_NEAR(back.real.values[i], plane.values[i], 1e-11);
      ASSERT_NEAR(back.imaginary.values[i], 0, 1e-11);
    }
  }
}

// ---- phase congruency

Plane congruency_of_step(double contrast) {
  Plane plane(64, 48);
  for (std::size_t i = 0; i < plane.values.size(); ++i) plane.values[i] = i % 64 < 32 ? 0 : contrast;
  return PhaseCongruency(64, 48).of(plane);
}

TEST(PhaseCongruency, IsLargestAtAnEdgeWhateverItsContrast) {
  const Plane strong = congruency_of_step(200);
  const Plane weak = congruency_of_step(2);
  for (std::size_t i = 0; i < strong.values.size(); ++i) {
    const double at_edge = strong.values[i / 64 * 64 + 32];
    ASSERT_GT(at_edge, 0.75);
    ASSERT_GE(strong.values[i], 0);
    ASSERT_LE(strong.values[i], at_edge + 1e-9);
    ASSERT_NEAR(strong.values[i], weak.values[i], 2e-3);
  }
}

TEST(PhaseCongruency, OfAConstantIsZero) {
  for (const double level : {0.0, 1.0, 93.7, 255.0}) {
    Plane plane(31, 40);
    for (double& value : plane.values) value = level;
    for (const double value : PhaseCongruency(31, 40).of(plane).values) ASSERT_EQ(value, 0) << level;
  }
}

// ---- downsampling

// By the definition: a mean over factor x factor pixels that are 0 outside, then every factor-th of them.
double downsampled_at(const std::vector<std::vector<double>>& image, int x, int y, int factor) {
  double sum = 0;
  const int from = -((factor - 1) / 2);
  for (int dy = from; dy < from + factor; ++dy) {
    for (int dx = from; dx < from + factor; ++dx) {
      const int row = y * factor + dy;
      const int column = x * factor + dx;
      if (row < 0 || row >= static_cast<int>(image.size())) continue;
      if (column < 0 || column >= static_cast<int>(image[0].size())) continue;
      sum += image[row][column];
    }
  }
  return sum / (factor * factor);
}

TEST(Downsampling, IsItsDefinitionWithAndWithoutRest) {
  for (int factor = 1; factor <= 5; ++factor) {
    for (const auto& [width, height] : {std::pair{20, 17}, {23, 20}, {5, 31}}) {
      std::vector<std::vector<double>> image(height, std::vector<double>(width));
      Downsampling downsampling(width, height, factor);
      for (int y = 0; y < height; ++y) {
        for (int x = 0; x < width; ++x) image[y][x] = (x * 31 + y * 57) % 256;
        downsampling.add_row(image[y].data(), 255);
      }
      const Plane& plane = downsampling.plane();
      ASSERT_EQ(plane.width, (width + factor - 1) / factor);
      ASSERT_EQ(plane.height, (height + factor - 1) / factor);
      for (int y = 0; y < plane.height; ++y) {
        for (int x = 0; x < plane.width; ++x) {
          ASSERT_NEAR(plane.values[y * plane.width + x], downsampled_at(image, x, y, factor), 1e-12);
        }
      }
    }
  }
}

// ---- images

ImageSpec spec_of(PixelType type, int width, int height, int channels, double range = 0) {
  return {.width = width,
          .height = height,
          .channels = channels,
          .type = type,
          .colour = channels == 3 ? Colour::rgb : Colour::gray,
          .range = range};
}

using Value = std::function<double(int x, int y, int channel)>;

// Whole numbers from 0 to 255: hyperbolas, a chessboard, and each channel a little brighter.
double truth_value(int x, int y, int channel) {
  return (x * y / 7 + (x / 16 + y / 16) % 2 * 90 + 40 * channel) % 256;
}
// The same with an error up to `strength`, clipped.
Value with_error(int strength) {
  return [strength](int x, int y, int channel) {
    const int error = (x * 37 + y * 101 + channel * 59 + x * y) % (2 * strength + 1) - strength;
    return std::clamp(truth_value(x, y, channel) + error, 0.0, 255.0);
  };
}
Value without_channel(const Value& value) {
  return [value](int x, int y, int) { return value(x, y, 0); };
}

Image build(const ImageSpec& spec, const Value& value, double scale = 1) {
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

struct Pair {
  Image truth;
  Image image;
};
Pair build_pair(const ImageSpec& spec, double scale = 1) {
  return {build(spec, truth_value, scale), build(spec, with_error(20), scale)};
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "nothing was thrown";
}

// ---- the index

// What piq 0.8.0 gives in float64; tests/oracles/test_fsim.py tells more.
TEST(Fsim, IsThatOfAnIndependentProgram) {
  const Pair gray = build_pair(spec_of(PixelType::u8, 83, 101, 1));
  EXPECT_NEAR(fsim(gray.truth.view(), gray.image.view()), 0.9330295080, 1e-7);
  const Pair colour = build_pair(spec_of(PixelType::u8, 83, 101, 3));
  EXPECT_NEAR(fsim(colour.truth.view(), colour.image.view()), 0.9734670410, 1e-7);
  EXPECT_NEAR(fsimc(colour.truth.view(), colour.image.view()), 0.9651880568, 5e-6);
}

TEST(Fsim, OfIdenticalImagesIsOne) {
  for (const int channels : {1, 3}) {
    for (const auto& [width, height] : {std::pair{16, 16}, {61, 53}, {384, 391}}) {
      const Image image = build(spec_of(PixelType::u8, width, height, channels), with_error(30));
      const Metrics metrics = compare(image.view(), image.view());
      EXPECT_EQ(metrics.fsim, 1.0) << width;
      EXPECT_EQ(metrics.fsimc, channels == 3 ? std::optional(1.0) : std::nullopt) << width;
    }
  }
}

TEST(Fsim, OfConstantImagesIsOneWhereTheyAreEqual) {
  const ImageSpec spec = spec_of(PixelType::u8, 40, 30, 3);
  const auto level = [&](double value) { return build(spec, [value](int, int, int) { return value; }); };
  for (const double value : {0.0, 77.0, 255.0}) {
    EXPECT_EQ(fsim(level(value).view(), level(value).view()), 1.0);
    EXPECT_EQ(fsimc(level(value).view(), level(value).view()), 1.0);
  }
  const double different = fsim(level(0).view(), level(255).view());
  EXPECT_GT(different, 0);
  EXPECT_LT(different, 1);
}

TEST(Fsim, IsSymmetric) {
  const Pair pair = build_pair(spec_of(PixelType::u8, 61, 44, 3));
  EXPECT_EQ(fsim(pair.truth.view(), pair.image.view()), fsim(pair.image.view(), pair.truth.view()));
  EXPECT_EQ(fsimc(pair.truth.view(), pair.image.view()), fsimc(pair.image.view(), pair.truth.view()));
}

TEST(Fsim, DecreasesWithNoise) {
  const ImageSpec spec = spec_of(PixelType::u8, 128, 96, 3);
  const Image truth = build(spec, truth_value);
  double last = 1;
  double last_colour = 1;
  for (const int strength : {2, 5, 10, 20, 40, 80}) {
    const Image image = build(spec, with_error(strength));
    const Metrics metrics = compare(truth.view(), image.view(), {.ssim = false});
    EXPECT_LT(*metrics.fsim, last) << strength;
    EXPECT_LT(*metrics.fsimc, last_colour) << strength;
    EXPECT_LT(*metrics.fsimc, *metrics.fsim) << strength;
    last = *metrics.fsim;
    last_colour = *metrics.fsimc;
  }
  EXPECT_GT(last, 0);
}

TEST(Fsim, DoesNotDependOnHowRowsAreCut) {
  for (const auto& [width, height] : {std::pair{50, 70}, {645, 647}}) {
    const Pair pair = build_pair(spec_of(PixelType::u8, width, height, 3));
    const Metrics whole = compare(pair.truth.view(), pair.image.view(), {.ssim = false});
    for (const int band : {1, 64}) {
      Comparison comparison(pair.truth.spec(), {.ssim = false});
      for (int y = 0; y < height; y += band) {
        const int rows = std::min(band, height - y);
        comparison.add_rows(pair.truth.view().rows(y, rows), pair.image.view().rows(y, rows));
      }
      const Metrics banded = comparison.finish();
      EXPECT_EQ(banded.fsim, whole.fsim) << band;
      EXPECT_EQ(banded.fsimc, whole.fsimc) << band;
    }
  }
}

// An image of 2 x 2 squares looks the same at half the size, and from 384 on it is halved.
TEST(Fsim, HalvesFrom384PixelsOn) {
  const auto doubled = [](const Value& value) {
    return [value](int x, int y, int channel) { return value(x / 2, y / 2, channel); };
  };
  const auto score = [](int side, const Value& truth, const Value& image) {
    const ImageSpec spec = spec_of(PixelType::u8, side, side, 1);
    return fsim(build(spec, truth).view(), build(spec, image).view());
  };
  const double small = score(192, truth_value, with_error(20));
  EXPECT_EQ(score(384, doubled(truth_value), doubled(with_error(20))), small);
  EXPECT_GT(std::fabs(score(383, doubled(truth_value), doubled(with_error(20))) - small), 1e-4);
}

TEST(Fsim, OfGrayStoredAsRgbIsThatOfGray) {
  const Image truth = build(spec_of(PixelType::u8, 90, 71, 1), truth_value);
  const Image image = build(spec_of(PixelType::u8, 90, 71, 1), with_error(20));
  const ImageSpec rgb = spec_of(PixelType::u8, 90, 71, 3);
  const Image rgb_truth = build(rgb, without_channel(truth_value));
  const Image rgb_image = build(rgb, without_channel(with_error(20)));
  const double gray = fsim(truth.view(), image.view());
  EXPECT_NEAR(fsim(rgb_truth.view(), rgb_image.view()), gray, 1e-12);
  EXPECT_NEAR(fsimc(rgb_truth.view(), rgb_image.view()), gray, 1e-12);
}

TEST(Fsim, OfIndependentChannelsIsTheirMean) {
  ImageSpec spec = spec_of(PixelType::u8, 60, 50, 4);
  spec.colour = Colour::multi;
  const Pair pair = build_pair(spec);
  double sum = 0;
  for (int c = 0; c < 4; ++c) {
    const auto channel = [c](const Value& value) {
      return build(spec_of(PixelType::u8, 60, 50, 1), [&](int x, int y, int) { return value(x, y, c); });
    };
    sum += fsim(channel(truth_value).view(), channel(with_error(20)).view());
  }
  const Metrics metrics = compare(pair.truth.view(), pair.image.view());
  EXPECT_EQ(metrics.fsim, sum / 4);
  EXPECT_FALSE(metrics.fsimc);
}

TEST(Fsim, IsTheSameInEveryPixelType) {
  const Pair u8 = build_pair(spec_of(PixelType::u8, 70, 64, 3));
  const Metrics expected = compare(u8.truth.view(), u8.image.view());
  const auto score = [](const Pair& pair) { return compare(pair.truth.view(), pair.image.view()); };
  const Metrics u16 = score(build_pair(spec_of(PixelType::u16, 70, 64, 3), 257));
  EXPECT_EQ(u16.fsim, expected.fsim);
  EXPECT_EQ(u16.fsimc, expected.fsimc);
  const Metrics f16 = score(build_pair(spec_of(PixelType::f16, 70, 64, 3, 255)));
  EXPECT_EQ(f16.fsim, expected.fsim);
  const Metrics f32 = score(build_pair(spec_of(PixelType::f32, 70, 64, 3), 1.0 / 255));
  EXPECT_NEAR(*f32.fsim, *expected.fsim, 1e-6);
  EXPECT_NEAR(*f32.fsimc, *expected.fsimc, 1e-6);
}

TEST(Fsim, IgnoresAlpha) {
  const Pair opaque = build_pair(spec_of(PixelType::u8, 40, 50, 3));
  ImageSpec spec = spec_of(PixelType::u8, 40, 50, 4);
  spec.alpha = true;
  spec.colour = Colour::rgb;
  const Pair pair = build_pair(spec);
  const Metrics expected = compare(opaque.truth.view(), opaque.image.view());
  const Metrics metrics = compare(pair.truth.view(), pair.image.view());
  EXPECT_EQ(metrics.fsim, expected.fsim);
  EXPECT_EQ(metrics.fsimc, expected.fsimc);
}

// ---- where it cannot be computed

TEST(Fsim, IsAbsentWhereItIsNotWanted) {
  const Pair pair = build_pair(spec_of(PixelType::u8, 40, 50, 3));
  const Metrics metrics = compare(pair.truth.view(), pair.image.view(), {.ssim = true, .fsim = false});
  EXPECT_TRUE(metrics.ssim);
  EXPECT_FALSE(metrics.fsim);
  EXPECT_FALSE(metrics.fsimc);
  EXPECT_FALSE(compare(pair.truth.view(), pair.image.view(), {.ssim = false, .fsim = true}).ssim);
}

TEST(Fsim, NeedsSixteenPixelsASide) {
  const Pair pair = build_pair(spec_of(PixelType::u8, 40, 15, 3));
  const Metrics metrics = compare(pair.truth.view(), pair.image.view());
  EXPECT_FALSE(metrics.fsim);
  EXPECT_FALSE(metrics.fsimc);
  EXPECT_EQ(message_of([&] { fsim(pair.truth.view(), pair.image.view()); }),
            "FSIM needs images of at least 16 x 16 pixels, got 40 x 15");
  EXPECT_EQ(message_of([&] { fsimc(pair.truth.view(), pair.image.view()); }),
            "FSIMc needs images of at least 16 x 16 pixels, got 40 x 15");
}

// Small where it can be halved, but a ribbon cannot.
TEST(Fsim, IsAbsentOfRibbons) {
  ImageSpec spec = spec_of(PixelType::u8, 16, 1 << 18, 1);
  EXPECT_EQ(obstacle_to_fsim(spec), "");
  EXPECT_EQ(obstacle_to_fsim(spec_of(PixelType::u8, 40000, 30000, 3)), "");
  spec.height += 1;
  const Image image(spec);
  EXPECT_FALSE(compare(image.view(), image.view(), {.ssim = false}).fsim);
  EXPECT_EQ(message_of([&] { fsim(image.view(), image.view()); }),
            "FSIM takes too much memory of an image as long as 16 x 262145 pixels");
}

TEST(Fsim, InColourNeedsColour) {
  const Pair pair = build_pair(spec_of(PixelType::u8, 40, 40, 1));
  EXPECT_FALSE(compare(pair.truth.view(), pair.image.view()).fsimc);
  EXPECT_EQ(message_of([&] { fsimc(pair.truth.view(), pair.image.view()); }),
            "FSIMc needs rgb images, got gray");
}

// The last pixel too, which belongs to no square of 3 x 3 in the larger of these images.
TEST(Fsim, IsNotANumberWhereASampleIsNone) {
  for (const int side : {32, 642}) {
    const ImageSpec spec = spec_of(PixelType::f32, side, side, 3);
    const Pair pair = build_pair(spec, 1.0 / 255);
    for (const double bad : {nan, infinity, -infinity}) {
      const auto spoiled = [&](int x, int y, int channel) {
        return x == side - 1 && y == side - 1 && channel == 1 ? bad : truth_value(x, y, channel);
      };
      const Image image = build(spec, spoiled, 1.0 / 255);
      const Metrics metrics = compare(pair.truth.view(), image.view(), {.ssim = false});
      EXPECT_TRUE(std::isnan(metrics.fsim.value())) << side << " " << bad;
      EXPECT_TRUE(std::isnan(metrics.fsimc.value())) << side << " " << bad;
    }
  }
}

// Numbers whose squares leave the range of double: nothing to say, but no crash either.
TEST(Fsim, EndsWithAnyWhiteLevel) {
  for (const double white : {1e-300, 1e-150, 1e-30, 1e30, 1e300}) {
    const Pair pair = build_pair(spec_of(PixelType::f32, 32, 33, 3, white));
    const Metrics metrics = compare(pair.truth.view(), pair.image.view());
    EXPECT_TRUE(metrics.fsim && metrics.fsimc);
  }
}

}  // namespace
}  // namespace ungrain
