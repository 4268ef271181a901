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
#include "scene/clip.h"
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

double mean_difference(const Image& a, const Image& b) {
  const std::vector<double> from = samples_of(a);
  const std::vector<double> to = samples_of(b);
  double sum = 0;
  for (std::size_t i = 0; i < from.size(); ++i) sum += std::abs(from[i] - to[i]);
  return sum / static_cast<double>(from.size());
}

TEST(SceneClip, BeginsWithTheStillPicture) {
  for (const Colour colour : {Colour::gray, Colour::rgb}) {
    const ImageSpec spec = spec_of(97, 71, colour, PixelType::u8);
    Image frame(spec);
    SceneClip(spec.width, spec.height, 12).render(0, frame.view());
    EXPECT_EQ(
        std::memcmp(frame.samples<std::uint8_t>(), render_scene(spec).samples<std::uint8_t>(), frame.bytes()),
        0);
  }
}

// One number for some frames. It changes only when the clip is meant to change.
TEST(SceneClip, IsTheSameOnEveryPlatform) {
  const ImageSpec spec = spec_of(80, 60, Colour::rgb, PixelType::u8);
  const SceneClip clip(spec.width, spec.height, 100);
  std::uint64_t sum = 0;
  for (const int frame : {0, 1, 37, 49, 50, 99}) {
    Image image(spec);
    clip.render(frame, image.view());
    sum = sum * 31 + fnv1a(image.samples<std::uint8_t>(), image.bytes());
  }
  EXPECT_EQ(sum, 0xF6828DBB17545A26ULL);
}

TEST(SceneClip, MovesALittleAndCutsOnce) {
  const ImageSpec spec = spec_of(96, 64, Colour::gray, PixelType::f32);
  constexpr int frames = 24;
  const SceneClip clip(spec.width, spec.height, frames);
  ASSERT_EQ(clip.cut(), 12);
  Image before(spec);
  clip.render(0, before.view());
  for (int frame = 1; frame < frames; ++frame) {
    Image now(spec);
    clip.render(frame, now.view());
    const double difference = mean_difference(before, now);
    if (frame == clip.cut()) {
      EXPECT_GT(difference, 0.1) << frame;
    } else {
      EXPECT_GT(difference, 0.0002) << frame;
      EXPECT_LT(difference, 0.05) << frame;
    }
    before = std::move(now);
  }
}

TEST(SceneClip, LumaAndChromaAreThoseOfRgb) {
  ImageSpec spec = spec_of(37, 23, Colour::rgb, PixelType::u16);
  spec.colour = Colour::ycbcr;
  spec.range = 1023;
  spec.chroma = {2, 2};
  Image frame(spec);
  const SceneClip clip(spec.width, spec.height, 4);
  clip.render(3, frame.view());
  Image rgb(spec_of(37, 23, Colour::rgb, PixelType::f32));
  clip.render(3, rgb.view());
  const float* pixel = rgb.samples<float>() + 3 * (22 * 37 + 36);  // alone in the last sample of chroma
  const double luma = 0.2126 * pixel[0] + 0.7152 * pixel[1] + 0.0722 * pixel[2];
  const std::uint16_t* samples = frame.samples<std::uint16_t>();
  EXPECT_NEAR(samples[22 * 37 + 36], 4 * (16 + 219 * luma), 0.51);
  EXPECT_NEAR(samples[37 * 23 + 22 * 37 + 18], 4 * (128 + 224 * (pixel[2] - luma) / 1.8556), 0.51);
  EXPECT_NEAR(samples[2 * 37 * 23 + 22 * 37 + 18], 4 * (128 + 224 * (pixel[0] - luma) / 1.5748), 0.51);
}

TEST(SceneClip, RefusesWhatIsNotInIt) {
  EXPECT_THROW(SceneClip(10, 10, 0), Error);
  const SceneClip clip(10, 10, 3);
  Image frame(spec_of(10, 10, Colour::gray, PixelType::u8));
  EXPECT_THROW(clip.render(3, frame.view()), Error);
  EXPECT_THROW(clip.render(-1, frame.view()), Error);
  Image other(spec_of(10, 9, Colour::gray, PixelType::u8));
  EXPECT_THROW(clip.render(0, other.view()), Error);
}

}  // namespace
}  // namespace ungrain
