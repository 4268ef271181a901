#include "ungrain/noise_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "core/convert.h"
#include "core/opponent.h"
#include "scene/scene.h"
#include "ungrain/error.h"
#include "ungrain/noise.h"

namespace ungrain {
namespace {

ImageSpec spec_of(PixelType type, int width, int height, int channels = 3, double range = 0) {
  return {.width = width,
          .height = height,
          .channels = channels,
          .type = type,
          .colour = channels == 3 ? Colour::rgb : Colour::gray,
          .range = range};
}

using Picture = std::function<double(int x, int y, int channel)>;

Image build(const ImageSpec& spec, const Picture& value) {
  Image image(spec);
  std::vector<double> row(static_cast<std::size_t>(spec.width));
  for (int y = 0; y < spec.height; ++y) {
    for (int c = 0; c < spec.channels; ++c) {
      for (int x = 0; x < spec.width; ++x) row[static_cast<std::size_t>(x)] = value(x, y, c);
      store_row(image.view(), y, c, row.data());
    }
  }
  return image;
}

Picture picture_of(const Image& image) {
  return [&image](int x, int y, int c) {
    return double{image.samples<float>()[(y * image.spec().width + x) * image.spec().channels + c]};
  };
}

Image as_type(const Image& image, PixelType type) {
  ImageSpec spec = image.spec();
  spec.type = type;
  return build(spec, picture_of(image));
}

// Float, not clipped, white is 255.
Image with_noise(const Image& clean, double sigma, std::uint64_t seed = 1) {
  Image noisy(clean.spec());
  add_noise(clean.view(), noisy.view(), {NoiseKind::gaussian, sigma, seed});
  return noisy;
}

// Every level on a slope without texture: gray at all levels from 30 to 230.
double slope(int x, int /*y*/, int /*channel*/) {
  const int stripe = x / 16;
  return 30 + 200.0 * (16 * stripe) / 512;
}
double gray_128(int, int, int) { return 128; }

constexpr int side = 512;
ImageSpec float_rgb() { return spec_of(PixelType::f32, side, side, 3, 255); }

// White noise on a Bayer mosaic, its gaps filled bilinearly: what is left has no high frequencies.
Image demosaiced(const Picture& clean, const std::function<double(double)>& sigma, int width = side) {
  const ImageSpec spec = spec_of(PixelType::f32, width, side, 3, 255);
  const Image unit =
      with_noise(build(spec_of(PixelType::f32, width, side, 1, 255), [](int, int, int) { return 0; }), 1);
  const auto colour_at = [](int x, int y) {
    return y % 2 == 0 ? (x % 2 == 0 ? 0 : 1) : (x % 2 == 0 ? 1 : 2);
  };
  const auto sensor = [&, width](int x, int y) {
    x = std::clamp(x, 0, width - 1);
    y = std::clamp(y, 0, side - 1);
    const double level = clean(x, y, colour_at(x, y));
    return level + sigma(level) * unit.samples<float>()[y * width + x];
  };
  return build(spec, [&](int x, int y, int c) {
    double sum = 0;
    int count = 0;
    for (const int reach : {0, 1, 2}) {  // itself, the four beside it, the four at its corners
      for (int dy = -1; dy <= 1; ++dy) {
        for (int dx = -1; dx <= 1; ++dx) {
          if (std::abs(dx) + std::abs(dy) != reach || colour_at(x + 2 + dx, y + 2 + dy) != c) continue;
          sum += sensor(x + dx, y + dy);
          ++count;
        }
      }
      if (count > 0) break;
    }
    return sum / count;
  });
}

// The true deviation of a difference of images in a DCT coefficient of an opponent channel.
double true_deviation(const Image& noisy, const Picture& clean, int channel, int i, int j) {
  const ImageSpec& spec = noisy.spec();
  const double pi = std::acos(-1.0);
  const auto cosine = [&](int k, int x) {
    return std::sqrt((k == 0 ? 1.0 : 2.0) / 8) * std::cos(pi * (2 * x + 1) * k / 16);
  };
  double squares = 0;
  int count = 0;
  for (int y = 4; y + 12 <= spec.height; y += 5) {
    for (int x = 4; x + 12 <= spec.width; x += 5, ++count) {
      double sum = 0;
      for (int dy = 0; dy < 8; ++dy) {
        for (int dx = 0; dx < 8; ++dx) {
          double value = 0;
          for (int c = 0; c < 3; ++c) {
            value += opponent_matrix[channel][c] *
                     (picture_of(noisy)(x + dx, y + dy, c) - clean(x + dx, y + dy, c));
          }
          sum += cosine(i, dx) * cosine(j, dy) * value;
        }
      }
      squares += sum * sum;
    }
  }
  return std::sqrt(squares / count);
}

double total_deviation(const NoiseModel& model, int channel, double level) {
  double squares = 0;
  for (int i = 0; i < 64; ++i) squares += std::pow(model.deviation(channel, level, i % 8, i / 8), 2);
  return std::sqrt(squares / 64);
}

// ---- the model itself

TEST(NoiseModel, WhiteNoiseIsTheSameEverywhere) {
  const NoiseModel model = white_noise_model(spec_of(PixelType::u8, 8, 8), {15});
  ASSERT_EQ(model.channels.size(), 3U);
  for (int c = 0; c < 3; ++c) EXPECT_NEAR(model.deviation(c, 77, 3, 5), 15, 1e-12);
  const NoiseModel same = white_noise_model(spec_of(PixelType::u8, 8, 8), {10, 10, 10}, 1);
  EXPECT_NEAR(same.deviation(0, 0), 10 * std::sqrt(3.0), 1e-9);
  EXPECT_NEAR(same.deviation(1, 0), 0, 1e-6);
}

TEST(NoiseModel, PoissonGaussianVarianceIsLinear) {
  const NoiseModel model = poisson_gaussian_model(spec_of(PixelType::u16, 8, 8, 1), 2, 50);
  for (const double level : {0.0, 100.0, 30000.0, 65535.0}) {
    EXPECT_NEAR(std::pow(model.deviation(0, level), 2), 2 * level + 50, 1e-6 * level + 1e-9);
  }
}

TEST(NoiseModel, VarianceIsInterpolatedAndConstantOutside) {
  NoiseModel model = white_noise_model(spec_of(PixelType::u8, 8, 8, 1), {1});
  model.channels[0].levels = {10, 20};
  model.channels[0].deviations = {3, 5};
  EXPECT_EQ(model.deviation(0, 0), 3);
  EXPECT_EQ(model.deviation(0, 30), 5);
  EXPECT_DOUBLE_EQ(model.deviation(0, 15), std::sqrt(17.0));
  EXPECT_DOUBLE_EQ(scaled(model, 2).deviation(0, 30), 10);
}

TEST(NoiseModel, WrongModelsAreErrors) {
  const ImageSpec spec = spec_of(PixelType::u8, 8, 8);
  const NoiseModel good = white_noise_model(spec, {1});
  EXPECT_THROW(validate(NoiseModel{}), Error);
  NoiseModel bad = good;
  bad.channels[1].levels = {2, 1};
  EXPECT_THROW(validate(bad), Error) << "as many deviations as levels";
  bad.channels[1].deviations = {1, 1};
  EXPECT_THROW(validate(bad), Error) << "levels descend";
  bad = good;
  bad.channels[0].spectrum[5] = -1;
  EXPECT_THROW(validate(bad), Error);
  EXPECT_THROW(white_noise_model(spec, {1, 2}), Error);
  EXPECT_THROW(white_noise_model(spec, {-1}), Error);
  EXPECT_THROW(poisson_gaussian_model(spec, -1, 0), Error);
  EXPECT_THROW(scaled(good, std::numeric_limits<double>::quiet_NaN()), Error);
  EXPECT_THROW(NoiseModelEstimator(spec, {.iso = 0}), Error);
}

TEST(NoiseModel, IsDescribedOnTheScaleOf255) {
  const ImageSpec spec = spec_of(PixelType::u16, 8, 8, 1);
  EXPECT_EQ(to_text(white_noise_model(spec, {2570}), spec),
            "channel 0, deviation in low / middle / high frequencies: 10.0 / 10.0 / 10.0\n");
}

// ---- estimates

// A camera's noise: independent on the mosaic, 15 there. In the image it is 11.2 in red and blue, 11.9 in
// green, 11.4 over all.
TEST(NoiseModelEstimate, DemosaicedNoiseIsMeasuredInEveryBand) {
  const Image noisy = demosaiced(gray_128, [](double) { return 15; });
  const NoiseModelEstimate estimate = estimate_noise_model(noisy.view());
  EXPECT_EQ(estimate.finding, NoiseFinding::spectrum);
  EXPECT_LT(estimate.white.sigma, 11.4 * 1.1);
  double squares = 0;
  for (int c = 0; c < 3; ++c) {
    for (const auto& [i, j] : {std::pair{0, 1}, {1, 1}, {2, 2}, {3, 3}, {4, 4}, {7, 0}, {7, 7}}) {
      const double truth = true_deviation(noisy, gray_128, c, i, j);
      EXPECT_NEAR(std::log2(estimate.model.deviation(c, 128, i, j) / truth), 0, 0.35)
          << "channel " << c << " coefficient " << i << ", " << j << ": " << truth;
    }
    squares += std::pow(total_deviation(estimate.model, c, 128), 2);
  }
  EXPECT_NEAR(std::sqrt(squares / 3), 11.4, 0.8);
  // Back to red, green and blue: the opponent channels' noise is nearly independent.
  const double true_deviations[] = {11.2, 11.9, 11.2};
  for (int c = 0; c < 3; ++c) {
    double variance = 0;
    for (int k = 0; k < 3; ++k) {
      variance += std::pow(opponent_matrix[k][c] * total_deviation(estimate.model, k, 128), 2);
    }
    EXPECT_NEAR(std::sqrt(variance) / true_deviations[c], 1, 0.08) << "channel " << c;
  }
}

TEST(NoiseModelEstimate, NoiseThatGrowsWithTheLevel) {
  const Image noisy = demosaiced(
      slope, [](double level) { return 1.2 * std::sqrt(level); }, 1024);
  const NoiseModelEstimate estimate = estimate_noise_model(noisy.view());
  EXPECT_EQ(estimate.finding, NoiseFinding::spectrum);
  const double dark = noise_bands(estimate.model, 0, 50).middle;
  const double bright = noise_bands(estimate.model, 0, 200).middle;
  EXPECT_NEAR(bright / dark, 2, 0.3);
}

// Rounding of JPEG's coefficients leaves more noise beside edges than in the flat areas that were measured.
TEST(NoiseModelEstimate, RoundingOfJpegAddsToLuminance) {
  const Image noisy = demosaiced(gray_128, [](double) { return 15; });
  const NoiseModelEstimate plain = estimate_noise_model(noisy.view());
  const NoiseModelEstimate rounded =
      estimate_noise_model(noisy.view(), {.jpeg_steps = std::vector<int>(64, 24)});
  const auto variance = [](const NoiseModelEstimate& of, int c) {
    return std::pow(of.model.deviation(c, 128, 6, 6), 2);
  };
  EXPECT_NEAR(variance(rounded, 0) - variance(plain, 0), 0.1 * 3 * 24 * 24 / 12, 1.5);
  EXPECT_EQ(variance(rounded, 1), variance(plain, 1));
  EXPECT_THROW(estimate_noise_model(noisy.view(), {.jpeg_steps = {1, 2}}), Error);

  const Image weak = demosaiced(gray_128, [](double) { return 0.3; });
  EXPECT_EQ(estimate_noise_model(weak.view(), {.jpeg_steps = std::vector<int>(64, 24)}).model,
            estimate_noise_model(weak.view()).model);
}

// Sensors of 12 bits in files of 16: the unused part of the range changes nothing.
TEST(NoiseModelEstimate, UnusedRangeDoesNotMatter) {
  const Image scene = build(spec_of(PixelType::f32, side, side, 1, 255), slope);
  Image noisy(scene.spec());
  add_noise(scene.view(), noisy.view(), {NoiseKind::poisson, 100, 1});
  const auto deviation_of = [&](double factor) {
    const Image stored = build(spec_of(PixelType::u16, side, side, 1),
                               [&](int x, int y, int c) { return factor * picture_of(noisy)(x, y, c); });
    const NoiseModelEstimate found = estimate_noise_model(stored.view());
    EXPECT_EQ(found.finding, NoiseFinding::by_level);
    EXPECT_LT(found.brightest, factor * 255);
    return found.deviations.front() / factor;
  };
  const double true_deviation = std::sqrt(130 * 255 / 100.0);  // at the mean level
  EXPECT_NEAR(deviation_of(200) / true_deviation, 1, 0.05);
  EXPECT_NEAR(deviation_of(16) / true_deviation, 1, 0.05);
}

// Walls, roofs and water: as even as noise, but with a direction that the noise beside them has not.
TEST(NoiseModelEstimate, TextureWithADirectionIsNoNoise) {
  const Image unit = with_noise(build(float_rgb(), [](int, int, int) { return 0; }), 1);
  const Image picture = build(float_rgb(), [&](int x, int y, int c) {
    const int part = 8 * x / side;
    double texture = 0;  // along x only, the same in all colours
    for (int k = 0; k < 6; ++k) texture += picture_of(unit)(std::min(x + k, side - 1), y / 2, 0);
    const double level = 60 + 20 * part;
    return level + (part < 3 ? 0 : 4 * texture) + 0.7 * picture_of(unit)(x, side - 1 - y, c);
  });
  const NoiseModelEstimate found = estimate_noise_model(picture.view());
  for (const double level : {80.0, 160.0, 200.0}) {
    EXPECT_LT(noise_bands(found.model, 0, level).middle, 3) << level;
  }
}

TEST(NoiseModelEstimate, PhotonNoiseIsWhiteButGrowsWithTheLevel) {
  const Image clean = build(spec_of(PixelType::u8, 1024, side), slope);
  Image noisy(clean.spec());
  add_noise(clean.view(), noisy.view(), {NoiseKind::poisson, 100, 1});
  const NoiseModelEstimate estimate = estimate_noise_model(noisy.view());
  EXPECT_EQ(estimate.finding, NoiseFinding::by_level);
  for (int c = 0; c < 3; ++c) {
    for (const double level : {60.0, 120.0, 200.0}) {
      EXPECT_NEAR(estimate.model.deviation(c, level, 2, 6) / std::sqrt(level * 255 / 100), 1, 0.12) << level;
    }
  }
}

// Few photons leave many samples black, which is no cut, and no level has much flat area.
TEST(NoiseModelEstimate, PhotonNoiseFollowsALine) {
  const Image clean = render_scene(spec_of(PixelType::f32, 480, 320, 1, 255));
  for (const double peak : {5.0, 20.0, 100.0}) {
    Image noisy(clean.spec());
    add_noise(clean.view(), noisy.view(), {NoiseKind::poisson, peak, 1});
    const NoiseModelEstimate estimate = estimate_noise_model(noisy.view());
    ASSERT_EQ(estimate.finding, NoiseFinding::by_level) << peak;
    ASSERT_EQ(estimate.lines.size(), 1U) << peak;
    EXPECT_NEAR(estimate.lines[0].a / (255 / peak), 1, 0.12) << peak;
    for (const double level : {40.0, 120.0, 220.0}) {
      EXPECT_NEAR(estimate.model.deviation(0, level, 2, 6) / std::sqrt(level * 255 / peak), 1, 0.08)
          << peak << " photons, level " << level;
    }
  }
}

// Fluorescence: a dark ground with little noise fills the picture, few bright cells have much.
TEST(NoiseModelEstimate, BrightCellsOnADarkGroundHaveTheirOwnNoise) {
  constexpr double gain = 6;
  const auto cells = [](int x, int y, int) {
    double light = 14;
    for (int n = 0; n < 12; ++n) {
      const double dx = x - (40 + n * 157 % 440);
      const double dy = y - (50 + n * 211 % 420);
      const double radius = 9 + n * 5 % 11;
      light += (60 + n * 37 % 130) / (1 + std::exp((dx * dx + dy * dy) / (radius * radius / 3) - 3));
    }
    return light;
  };
  const Image clean = build(spec_of(PixelType::f32, side, side, 1, 255), cells);
  const Image counts = [&] {
    Image noisy(clean.spec());
    add_noise(clean.view(), noisy.view(), {NoiseKind::poisson, 255 / gain, 1});
    return with_noise(noisy, 2, 7);
  }();
  const NoiseModelEstimate estimate = estimate_noise_model(as_type(counts, PixelType::u8).view());
  ASSERT_EQ(estimate.finding, NoiseFinding::by_level);
  for (const double level : {14.0, 60.0, 120.0, 170.0}) {
    EXPECT_NEAR(estimate.model.deviation(0, level, 2, 6) / std::sqrt(gain * level + 4), 1, 0.1) << level;
  }
}

TEST(NoiseModelEstimate, WhiteNoiseIsTheWhiteEstimatesAffair) {
  const Image scene = render_scene(spec_of(PixelType::f32, 480, 320, 3, 255));
  const Image gray_scene = render_scene(spec_of(PixelType::f32, 480, 320, 1, 255));
  for (const double sigma : {2.0, 5.0, 15.0, 50.0}) {
    for (const Image* clean : {&scene, &gray_scene}) {
      for (const PixelType type : {PixelType::f32, PixelType::u8}) {
        const Image noisy = as_type(with_noise(*clean, sigma), type);
        const NoiseModelEstimate estimate = estimate_noise_model(noisy.view());
        EXPECT_EQ(estimate.finding, NoiseFinding::white) << sigma;
        const NoiseEstimate white = estimate_noise(noisy.view());
        // The colour differences may tell that a part of it is texture.
        EXPECT_LE(estimate.white.sigma, white.sigma);
        EXPECT_NEAR(estimate.white.sigma / sigma, 1, 0.1) << sigma;
        EXPECT_EQ(estimate.model,
                  white_noise_model(noisy.spec(), estimate.white.channels, estimate.white.correlation));
      }
    }
  }
}

TEST(NoiseModelEstimate, CleanPicturesHaveNearlyNone) {
  const std::vector<Picture> pictures{
      slope,
      [](int x, int y, int) { return 128 + 60 * std::sin(x * 0.9 + y * 0.4) * std::sin(y * 0.011); },
      [](int x, int y, int c) {
        return (x + y / 16 % 2 * 16) % 32 < 3 || y % 16 < 2 ? 40.0 + 20 * c : 150.0;
      },
      [](int x, int y, int) { return (x * 7 + y * 3) % 41 < 9 && (x / 5 + y / 11) % 3 == 0 ? 20.0 : 250.0; },
      [](int x, int y, int) { return x % 37 == 0 && y % 23 == 0 ? 255.0 : 8.0; },
  };
  for (std::size_t n = 0; n < pictures.size(); ++n) {
    const Image clean = build(spec_of(PixelType::u8, 400, 300), pictures[n]);
    const NoiseModelEstimate estimate = estimate_noise_model(clean.view());
    for (const double level : {10.0, 128.0, 240.0}) {
      EXPECT_LT(noise_bands(estimate.model, 0, level).middle, 3.5) << "picture " << n << " level " << level;
      EXPECT_LT(noise_bands(estimate.model, 1, level).middle, 3) << "picture " << n << " level " << level;
    }
  }
  const Image scene = render_scene(spec_of(PixelType::u8, 480, 320));
  EXPECT_LT(noise_bands(estimate_noise_model(scene.view()).model, 0, 128).middle, 3);
}

// Fine texture in luminance, none in colour, and no flat place: colour limits what luminance may have.
TEST(NoiseModelEstimate, TextureWithoutAFlatPlaceIsLimitedByColour) {
  const Image grass = with_noise(build(spec_of(PixelType::f32, side, side, 1, 255), gray_128), 30);
  const Image clean = build(float_rgb(), [&](int x, int y, int) {  // smooth, and stronger in some places
    double sum = 0;
    for (int dy = 0; dy < 3; ++dy) {
      for (int dx = 0; dx < 3; ++dx) {
        sum += grass.samples<float>()[(y + dy) % side * side + (x + dx) % side] / 9;
      }
    }
    return 128 + (sum - 128) * (1.2 + std::sin(x * 0.3) * std::sin(y * 0.2));
  });
  const Image noisy = with_noise(clean, 1);
  const NoiseModelEstimate estimate = estimate_noise_model(as_type(noisy, PixelType::u8).view());
  EXPECT_LT(noise_bands(estimate.model, 0, 128).middle, 7);
}

// What JPEG does to it: 8 x 8 cosine transform, coefficients rounded to multiples. Most become 0.
TEST(NoiseModelEstimate, QuantisedCoefficientsAreMeasuredNonetheless) {
  const Image noisy = demosaiced(gray_128, [](double) { return 12; });
  const double pi = std::acos(-1.0);
  std::vector<double> cosine(64);
  for (int k = 0; k < 8; ++k) {
    for (int x = 0; x < 8; ++x) {
      cosine[k * 8 + x] = std::sqrt((k == 0 ? 1.0 : 2.0) / 8) * std::cos(pi * (2 * x + 1) * k / 16);
    }
  }
  Image quantised(noisy.spec());
  auto* to = quantised.samples<float>();
  const auto from = picture_of(noisy);
  for (int y = 0; y < side; y += 8) {
    for (int x = 0; x < side; x += 8) {
      for (int c = 0; c < 3; ++c) {
        std::vector<double> values(64);
        for (int j = 0; j < 8; ++j) {
          for (int i = 0; i < 8; ++i) {
            double sum = 0;
            for (int p = 0; p < 64; ++p)
              sum += cosine[i * 8 + p % 8] * cosine[j * 8 + p / 8] * from(x + p % 8, y + p / 8, c);
            const double multiple = 8 + 4 * (i + j);
            values[j * 8 + i] = multiple * std::round(sum / multiple);
          }
        }
        for (int p = 0; p < 64; ++p) {
          double sum = 0;
          for (int k = 0; k < 64; ++k)
            sum += cosine[k % 8 * 8 + p % 8] * cosine[k / 8 * 8 + p / 8] * values[k];
          to[((y + p / 8) * side + x + p % 8) * 3 + c] = static_cast<float>(std::round(sum));
        }
      }
    }
  }
  const NoiseModelEstimate estimate = estimate_noise_model(as_type(quantised, PixelType::u8).view());
  EXPECT_EQ(estimate.finding, NoiseFinding::spectrum);
  for (int c = 0; c < 3; ++c) {
    for (const auto& [i, j] : {std::pair{0, 1}, {1, 1}, {2, 2}, {3, 2}}) {
      EXPECT_NEAR(
          std::log2(estimate.model.deviation(c, 128, i, j) / true_deviation(quantised, gray_128, c, i, j)), 0,
          0.4)
          << "channel " << c << " coefficient " << i << ", " << j;
    }
  }
}

TEST(NoiseModelEstimate, IsoLimitsLuminance) {
  const Image noisy = demosaiced(gray_128, [](double) { return 15; });
  const NoiseModelEstimate free = estimate_noise_model(noisy.view(), {.iso = 12800});
  EXPECT_FALSE(free.limited_by_iso);
  const NoiseModelEstimate limited = estimate_noise_model(noisy.view(), {.iso = 100});
  EXPECT_TRUE(limited.limited_by_iso);
  EXPECT_NEAR(noise_bands(limited.model, 0, 128).low, 3, 1e-6);
  EXPECT_EQ(limited.model.channels[1], free.model.channels[1]);
}

// Noise that was cut off at black leaves less there; the other levels keep what they have.
TEST(NoiseModelEstimate, ClippingAtBlackDoesNotSpoilTheOtherLevels) {
  const Image noisy =
      demosaiced([](int x, int y, int) { return x < 400 ? 0 : slope(x, y, 0); }, [](double) { return 15; });
  const NoiseModelEstimate cut = estimate_noise_model(as_type(noisy, PixelType::u8).view());
  const NoiseModelEstimate flat =
      estimate_noise_model(demosaiced(gray_128, [](double) { return 15; }).view());
  EXPECT_EQ(cut.finding, NoiseFinding::spectrum);
  const double expected = noise_bands(flat.model, 0, 128).middle;
  EXPECT_NEAR(noise_bands(cut.model, 0, 200).middle / expected, 1, 0.12);
}

TEST(NoiseModelEstimate, BlackAndWhitePhotographsStoredAsColour) {
  const Image colour = demosaiced(slope, [](double) { return 15; });
  const auto mean = [&](int x, int y, int) {
    const auto from = picture_of(colour);
    return std::round((from(x, y, 0) + from(x, y, 1) + from(x, y, 2)) / 3);
  };
  const NoiseModelEstimate gray =
      estimate_noise_model(build(spec_of(PixelType::u8, side, side, 1), mean).view());
  const NoiseModelEstimate rgb =
      estimate_noise_model(build(spec_of(PixelType::u8, side, side, 3), mean).view());
  ASSERT_EQ(gray.finding, NoiseFinding::spectrum);
  ASSERT_EQ(rgb.finding, NoiseFinding::spectrum);
  EXPECT_NEAR(rgb.model.deviation(0, 128, 1, 2) / gray.model.deviation(0, 128, 1, 2), std::sqrt(3.0), 0.05);
  EXPECT_EQ(rgb.model.deviation(1, 128, 1, 2), 0);
}

TEST(NoiseModelEstimate, ScalesWithTheRange) {
  const Image noisy = demosaiced(slope, [](double level) { return 5 + level / 20; });
  const NoiseModel expected = estimate_noise_model(noisy.view()).model;
  const auto scaled_picture = [&](double factor) {
    return [&, factor](int x, int y, int c) { return picture_of(noisy)(x, y, c) * factor; };
  };
  const Image deep = build(spec_of(PixelType::u16, side, side), scaled_picture(257));
  const Image unit = build(spec_of(PixelType::f32, side, side), scaled_picture(1 / 255.0));
  const Image wide = build(spec_of(PixelType::f32, side, side, 3, 1e5), scaled_picture(1e5 / 255));
  for (const Image* image : {&deep, &unit, &wide}) {
    const NoiseModel found = estimate_noise_model(image->view()).model;
    const double white = image->spec().white();
    for (int c = 0; c < 3; ++c) {
      EXPECT_NEAR(found.deviation(c, 0.5 * white, 1, 2) * 255 / white / expected.deviation(c, 127.5, 1, 2), 1,
                  0.02);
    }
  }
}

TEST(NoiseModelEstimate, RowsThreadsAndLayoutsGiveTheSameBits) {
  const Image noisy = as_type(demosaiced(slope, [](double level) { return level / 10; }), PixelType::u8);
  const NoiseModelEstimate expected = estimate_noise_model(noisy.view(), {.threads = 1});
  ASSERT_EQ(expected.finding, NoiseFinding::spectrum);
  for (const int threads : {2, 3, 7}) {
    EXPECT_EQ(estimate_noise_model(noisy.view(), {.threads = threads}).model, expected.model);
  }
  for (const int rows : {1, 7, 100}) {
    NoiseModelEstimator estimator(noisy.spec());
    for (int y = 0; y < side; y += rows) estimator.add_rows(noisy.view().rows(y, std::min(rows, side - y)));
    EXPECT_EQ(estimator.finish().model, expected.model);
  }
  ImageSpec with_alpha = noisy.spec();
  with_alpha.channels = 4;
  with_alpha.alpha = true;
  const Image opaque = build(with_alpha, [&](int x, int y, int c) {
    return c == 3 ? (x * 37 + y * 11) % 256 : noisy.samples<std::uint8_t>()[(y * side + x) * 3 + c];
  });
  EXPECT_EQ(estimate_noise_model(opaque.view()).model, expected.model);
}

TEST(NoiseModelEstimate, IndependentChannelsEachHaveTheirOwn) {
  ImageSpec spec = spec_of(PixelType::f32, side, side, 2, 255);
  spec.colour = Colour::multi;
  const Image camera = demosaiced(gray_128, [](double) { return 15; });
  const Image white = with_noise(build(float_rgb(), gray_128), 8);
  const Image both =
      build(spec, [&](int x, int y, int c) { return picture_of(c == 0 ? camera : white)(x, y, 0); });
  const NoiseModelEstimate estimate = estimate_noise_model(both.view());
  ASSERT_EQ(estimate.model.channels.size(), 2U);
  EXPECT_NEAR(total_deviation(estimate.model, 0, 128), 11.2, 1);
  EXPECT_LT(estimate.model.deviation(0, 128, 7, 7), 8);
  EXPECT_NEAR(estimate.model.deviation(1, 128, 7, 7), 8, 0.6);
}

TEST(NoiseModelEstimate, LittleOrNothingToMeasure) {
  for (const auto& [width, height] : {std::pair{1, 1}, {15, 40}, {16, 16}, {3000, 2}, {17, 33}}) {
    const Image noisy = with_noise(build(spec_of(PixelType::f32, width, height, 3, 255), gray_128), 10);
    const NoiseModelEstimate estimate = estimate_noise_model(noisy.view());
    for (int c = 0; c < 3; ++c) {
      EXPECT_TRUE(std::isfinite(estimate.model.deviation(c, 100, 3, 3))) << width << " x " << height;
    }
  }
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Image nothing = build(spec_of(PixelType::f32, 64, 64), [=](int, int, int) { return nan; });
  EXPECT_EQ(estimate_noise_model(nothing.view()).model.deviation(0, 0, 1, 1), 0);
  const Image constant = build(spec_of(PixelType::u8, 64, 64), gray_128);
  EXPECT_LT(estimate_noise_model(constant.view()).model.deviation(0, 0, 1, 1), 0.2);
}

TEST(NoiseModelEstimate, BlocksThatAreNotFiniteAreLeftOut) {
  const Image noisy = demosaiced(gray_128, [](double) { return 15; });
  const Image holed = build(noisy.spec(), [&](int x, int y, int c) {
    if (x % 100 == 50 && y % 100 == 30 && c == 1) return std::numeric_limits<double>::infinity();
    return picture_of(noisy)(x, y, c);
  });
  const NoiseModel expected = estimate_noise_model(noisy.view()).model;
  const NoiseModel found = estimate_noise_model(holed.view()).model;
  EXPECT_NEAR(found.deviation(0, 128, 1, 2) / expected.deviation(0, 128, 1, 2), 1, 0.1);
}

}  // namespace
}  // namespace ungrain
