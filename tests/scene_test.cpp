// The demo scene: the same picture on every platform, at any size and in any cut, with something in it.
#include "scene/scene.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/convert.h"
#include "ungrain/error.h"

namespace ungrain {
namespace {

ImageSpec spec_of(int width, int height, Colour colour, PixelType type) {
  return {.width = width,
          .height = height,
          .channels = colour == Colour::rgb ? 3 : 1,
          .type = type,
          .colour = colour};
}

std::uint64_t fnv1a(const void* data, std::size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(data);
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (std::size_t i = 0; i < bytes; ++i) hash = (hash ^ at[i]) * 0x100000001B3U;
  return hash;
}

// All samples as numbers in pixel units, row by row, channels interleaved.
std::vector<double> samples_of(const Image& image) {
  const ImageSpec& spec = image.spec();
  std::vector<double> all(static_cast<std::size_t>(spec.width) * spec.height * spec.channels);
  std::vector<double> row(static_cast<std::size_t>(spec.width));
  for (int y = 0; y < spec.height; ++y) {
    for (int channel = 0; channel < spec.channels; ++channel) {
      load_row(image.view(), y, channel, row.data());
      for (int x = 0; x < spec.width; ++x) {
        all[(static_cast<std::size_t>(y) * spec.width + x) * spec.channels + channel] =
            row[static_cast<std::size_t>(x)];
      }
    }
  }
  return all;
}

// One number for the picture. It changes only when the picture is meant to change.
TEST(Scene, IsTheSameOnEveryPlatform) {
  const Image image = render_scene(spec_of(160, 120, Colour::rgb, PixelType::u8));
  EXPECT_EQ(fnv1a(image.samples<std::uint8_t>(), image.bytes()), 0x44A0584635619038ULL);
}

TEST(Scene, RowsInBandsEqualTheWhole) {
  const ImageSpec spec = spec_of(149, 97, Colour::rgb, PixelType::f32);
  const Image whole = render_scene(spec);
  const Scene scene(spec.width, spec.height);
  for (const int band : {1, 7, 40}) {
    Image pieces(spec);
    for (int first = 0; first < spec.height; first += band) {
      scene.render_rows(first, pieces.view().rows(first, std::min(band, spec.height - first)));
    }
    EXPECT_EQ(std::memcmp(pieces.samples<float>(), whole.samples<float>(), whole.bytes()), 0)
        << "bands of " << band;
  }
}

TEST(Scene, AnySizeIsFiniteAndInsideTheRange) {
  struct Size {
    int width, height;
  };
  for (const Size size :
       {Size{1, 1}, Size{3, 200}, Size{200, 3}, Size{1, 40}, Size{64, 128}, Size{192, 64}}) {
    for (const PixelType type : {PixelType::u8, PixelType::u16, PixelType::f16, PixelType::f32}) {
      const ImageSpec spec = spec_of(size.width, size.height, Colour::rgb, type);
      const std::vector<double> samples = samples_of(render_scene(spec));
      const bool inside = std::all_of(samples.begin(), samples.end(), [&](double sample) {
        return std::isfinite(sample) && sample >= 0 && sample <= spec.white();
      });
      EXPECT_TRUE(inside) << size.width << " x " << size.height << " " << name(type);
    }
  }
}

TEST(Scene, TheWhiteLevelScalesIt) {
  ImageSpec spec = spec_of(40, 30, Colour::gray, PixelType::f32);
  const std::vector<double> unit = samples_of(render_scene(spec));
  spec.range = 1000;
  const std::vector<double> scaled = samples_of(render_scene(spec));
  for (std::size_t i = 0; i < unit.size(); ++i)
    ASSERT_NEAR(scaled[i], 1000 * unit[i], 1e-3) << "sample " << i;
}

TEST(Scene, GrayIsTheLumaOfTheColours) {
  const std::vector<double> gray = samples_of(render_scene(spec_of(120, 80, Colour::gray, PixelType::f32)));
  const std::vector<double> rgb = samples_of(render_scene(spec_of(120, 80, Colour::rgb, PixelType::f32)));
  for (std::size_t i = 0; i < gray.size(); ++i) {
    const double luma = 0.299 * rgb[3 * i] + 0.587 * rgb[3 * i + 1] + 0.114 * rgb[3 * i + 2];
    ASSERT_NEAR(gray[i], luma, 2e-7) << "pixel " << i;
  }
}

TEST(Scene, AlphaIsWhiteAndIndependentChannelsAreTheColours) {
  const std::vector<double> rgb = samples_of(render_scene(spec_of(50, 40, Colour::rgb, PixelType::u8)));
  ImageSpec with_alpha = spec_of(50, 40, Colour::rgb, PixelType::u8);
  with_alpha.channels = 4;
  with_alpha.alpha = true;
  const std::vector<double> rgba = samples_of(render_scene(with_alpha));
  ImageSpec independent = with_alpha;
  independent.alpha = false;
  independent.colour = Colour::multi;
  const std::vector<double> multi = samples_of(render_scene(independent));
  for (std::size_t pixel = 0; pixel < rgb.size() / 3; ++pixel) {
    for (std::size_t channel = 0; channel < 3; ++channel) {
      ASSERT_EQ(rgba[4 * pixel + channel], rgb[3 * pixel + channel]);
      ASSERT_EQ(multi[4 * pixel + channel], rgb[3 * pixel + channel]);
    }
    ASSERT_EQ(rgba[4 * pixel + 3], 255);
    ASSERT_EQ(multi[4 * pixel + 3], rgb[3 * pixel]);
  }
}

// Contrast, smooth areas and edges all at once: a gray sheet, pure noise or a blur would fail.
TEST(Scene, HasGradientsAndEdges) {
  constexpr int size = 256;
  const std::vector<double> gray =
      samples_of(render_scene(spec_of(size, size, Colour::gray, PixelType::f32)));
  double sum = 0;
  double sum_of_squares = 0;
  for (const double value : gray) {
    sum += value;
    sum_of_squares += value * value;
  }
  const auto count = static_cast<double>(gray.size());
  const double deviation = std::sqrt(sum_of_squares / count - (sum / count) * (sum / count));
  EXPECT_GT(deviation, 0.12);
  EXPECT_NEAR(sum / count, 0.5, 0.15);
  EXPECT_LT(*std::min_element(gray.begin(), gray.end()), 0.12);
  EXPECT_GT(*std::max_element(gray.begin(), gray.end()), 0.88);

  int smooth = 0;
  int edges = 0;
  int steps = 0;
  for (int y = 0; y < size; ++y) {
    for (int x = 0; x + 1 < size; ++x) {
      const auto at = static_cast<std::size_t>(y) * size + static_cast<std::size_t>(x);
      const double step = std::abs(gray[at + 1] - gray[at]);
      smooth += step < 0.01 ? 1 : 0;
      edges += step > 0.10 ? 1 : 0;
      ++steps;
    }
  }
  EXPECT_GT(smooth, steps / 4);
  EXPECT_GT(edges, steps / 20);
}

TEST(Scene, RefusesRowsThatAreNotItsOwn) {
  const Scene scene(20, 10);
  Image wrong_width(spec_of(21, 2, Colour::gray, PixelType::u8));
  EXPECT_THROW(scene.render_rows(0, wrong_width.view()), Error);
  Image rows(spec_of(20, 2, Colour::gray, PixelType::u8));
  EXPECT_THROW(scene.render_rows(9, rows.view()), Error);
  EXPECT_THROW(scene.render_rows(-1, rows.view()), Error);
  EXPECT_THROW(Scene(0, 10), Error);
}

}  // namespace
}  // namespace ungrain
