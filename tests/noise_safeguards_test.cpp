// Clean pictures that could be taken for noise: what bm3d with the estimated noise makes of them is nearly
// them.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>

#include <gtest/gtest.h>

#include "core/convert.h"
#include "io/image_file.h"
#include "ungrain/denoiser.h"
#include "ungrain/methods/bm3d.h"
#include "ungrain/metrics.h"
#include "ungrain/noise.h"
#include "ungrain/noise_model.h"

namespace ungrain {
namespace {

constexpr int side = 192;
constexpr double least_psnr = 45;

using Picture = std::function<double(int x, int y, int channel)>;

ImageSpec spec_of(PixelType type, int channels) {
  return {.width = side,
          .height = side,
          .channels = channels,
          .type = type,
          .colour = channels == 3 ? Colour::rgb : Colour::gray,
          .range = 255};
}

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

// As the finding says: with the model, or with the white estimate's sigma.
Image denoised(const Image& in) {
  const NoiseModelEstimate estimate = estimate_noise_model(in.view());
  Bm3dParams params{.profile = Bm3dProfile::fast};
  if (estimate.finding == NoiseFinding::white) {
    params.sigma = estimate.white.channels;
    params.correlation = estimate.white.correlation;
  } else {
    params.noise_model = std::make_shared<const NoiseModel>(estimate.model);
  }
  Image out(in.spec());
  Denoiser::create(resolve(params, in.view()), in.spec(), {.device = {Device::Kind::cpu}})
      .run(in.view(), out.view());
  return out;
}

void expect_kept(const Picture& picture, const char* what) {
  for (const int channels : {1, 3}) {
    const Image clean = build(spec_of(PixelType::u8, channels), picture);
    EXPECT_GT(psnr(clean.view(), denoised(clean).view()), least_psnr)
        << what << ", " << channels << " channels";
  }
}

// ---- pictures

unsigned scrambled(unsigned n) {
  n = (n ^ 61U ^ (n >> 16U)) * 9U;
  n = (n ^ (n >> 4U)) * 0x27d4eb2dU;
  return n ^ (n >> 15U);
}

// Independent from place to place, -1 to 1.
double random_at(int x, int y, unsigned seed) {
  const unsigned n = scrambled(static_cast<unsigned>(x) + 7919U * static_cast<unsigned>(y) + 104729U * seed);
  return 2 * (scrambled(n) % 65536U) / 65535.0 - 1;
}

double smooth_random(double x, double y, unsigned seed) {
  const int left = static_cast<int>(std::floor(x));
  const int top = static_cast<int>(std::floor(y));
  const double dx = x - left;
  const double dy = y - top;
  const auto between = [](double a, double b, double t) { return a + (b - a) * t * t * (3 - 2 * t); };
  return between(between(random_at(left, top, seed), random_at(left + 1, top, seed), dx),
                 between(random_at(left, top + 1, seed), random_at(left + 1, top + 1, seed), dx), dy);
}

// Letters of 4 x 6 strokes in lines, each of a few shapes.
bool ink(int x, int y, int letter_width, int line_height) {
  const int letter = x / letter_width;
  const int line = y / line_height;
  const int column = x % letter_width * 5 / letter_width;
  const int row = y % line_height * 8 / line_height;
  if (column > 3 || row > 5) return false;
  const unsigned shape = scrambled(scrambled(static_cast<unsigned>(letter + 131 * line)) % 26U);
  const bool upright = column == 0 || (column == 3 && (shape & 1U) != 0);
  const bool bar = (row == 0 && (shape & 2U) != 0) || (row == 2 && (shape & 4U) != 0) || row == 5;
  return upright || bar;
}

Picture text(int letter_width, int line_height, double dark, double bright) {
  return [=](int x, int y, int) { return ink(x, y, letter_width, line_height) ? dark : bright; };
}

// Each pixel the mean of 4 x 4 points.
Picture smooth(const std::function<double(double x, double y)>& value) {
  return [=](int x, int y, int) {
    double sum = 0;
    for (int k = 0; k < 16; ++k) sum += value(x + (k % 4) / 4.0, y + (k / 4) / 4.0) / 16;
    return sum;
  };
}

// Octaves of smooth noise down to two pixels (one would be noise), each with `falls` of the one before.
double fractal(int x, int y, double strength, double falls) {
  double sum = 0;
  for (int octave = 0; octave < 6; ++octave, strength *= falls) {
    const double scale = 64.0 / (1 << octave);
    sum += strength * smooth_random(x / scale + 0.37, y / scale + 0.37, static_cast<unsigned>(octave));
  }
  return sum;
}

TEST(NoiseSafeguards, Text) {
  expect_kept(text(5, 8, 0, 255), "dense black on white");
  expect_kept(text(6, 9, 30, 230), "gray");
  expect_kept(text(7, 10, 220, 25), "bright on dark");
  expect_kept(text(5, 8, 100, 150), "faint");
  expect_kept(smooth([](double x, double y) {
                return ink(static_cast<int>(x * 1.7), static_cast<int>(y * 1.7), 11, 17) ? 20.0 : 240.0;
              }),
              "with smooth edges");
}

TEST(NoiseSafeguards, LineArt) {
  const auto lines = [](double x, double y) {
    double value = 255;
    for (int n = 0; n < 40; ++n) {
      const double angle = random_at(n, 1, 1) * 3.14159;
      const double from_line = (x - 96 - 90 * random_at(n, 2, 1)) * std::sin(angle) +
                               (y - 96 - 90 * random_at(n, 3, 1)) * std::cos(angle);
      if (std::fabs(from_line) < 0.7 + 0.5 * random_at(n, 4, 1)) value = 0;
    }
    return value;
  };
  expect_kept(smooth(lines), "lines");
  expect_kept(
      [](int x, int y, int) {
        return std::sin(x * 0.8) + std::sin(y * 0.8) > 1.6 * (x / 192.0 - 0.5) ? 230.0 : 20.0;
      },
      "halftone");
}

TEST(NoiseSafeguards, Screenshot) {
  expect_kept(
      [](int x, int y, int c) {
        if (y < 16) return 60.0 + 40 * c;
        if (x < 40) return x > 8 && x < 30 && y % 30 < 20 ? 40.0 + 60 * ((y / 30 + c) % 3) : 232.0;
        return ink(x, y, 6, 10) ? 30.0 : 245.0;
      },
      "screenshot");
}

TEST(NoiseSafeguards, Gradients) {
  expect_kept([](int x, int y, int) { return 40 + x * 0.8 + y * 0.1; }, "gradient");
  expect_kept([](int x, int y, int c) { return 60 + 0.3 * (c == 0   ? x
                                                           : c == 1 ? 192 - x
                                                                    : y); },
              "of colours");
}

TEST(NoiseSafeguards, Stars) {
  expect_kept(
      [](int x, int y, int) {
        double light = 12 + 8 * smooth_random(x / 40.0, y / 40.0, 3);
        for (int dy = -3; dy <= 3; ++dy) {
          for (int dx = -3; dx <= 3; ++dx) {
            const double bright = random_at(x + dx, y + dy, 4);
            if (bright > 0.97) light += 6000 * (bright - 0.97) * std::exp(-(dx * dx + dy * dy) / 1.6);
          }
        }
        return light;
      },
      "stars");
}

TEST(NoiseSafeguards, Patterns) {
  for (const int size : {1, 2, 3, 5}) {
    expect_kept([=](int x, int y, int) { return (x / size + y / size) % 2 == 0 ? 60.0 : 190.0; },
                "chessboard");
  }
  expect_kept([](int x, int y,
                 int c) { return (x + y / 16 % 2 * 16) % 32 < 2 || y % 16 < 2 ? 170.0 : 110.0 - 10 * c; },
              "bricks");
  expect_kept([](int x, int y, int) { return 128 + 60 * std::sin(x * 0.9 + y * 0.4); }, "waves");
}

TEST(NoiseSafeguards, Fabric) {
  for (const double period : {4.0, 6.0}) {
    const auto woven = [=](int x, int y, int c) {
      const double bent = 2 * smooth_random(x / 30.0, y / 30.0, 5);
      const bool over = (static_cast<int>(x / period) + static_cast<int>(y / period)) % 2 == 0;
      return 128 - 20 * c + (45 - 8 * c) * std::sin(2 * 3.14159 * ((over ? x : y) + bent) / period);
    };
    expect_kept(woven, "woven");
  }
}

TEST(NoiseSafeguards, Foliage) {
  expect_kept([](int x, int y, int c) { return 118 + (1 - 0.2 * c) * fractal(x, y, 45, 0.7); }, "fractal");
  expect_kept([](int x, int y, int c) { return 118 + (1 - 0.2 * c) * fractal(x, y, 60, 0.55); }, "softer");
}

// Photographs of the folder that is named by UNGRAIN_CLEAN_IMAGES. They have noise of their own.
TEST(NoiseSafeguards, CleanPhotographs) {
  const char* folder = std::getenv("UNGRAIN_CLEAN_IMAGES");
  if (folder == nullptr) GTEST_SKIP() << "UNGRAIN_CLEAN_IMAGES is not set";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".png") continue;
    const Image clean = io::read_image(entry.path());
    EXPECT_GT(psnr(clean.view(), denoised(clean).view()), 45) << entry.path();
  }
}

// The safeguards must not take noise for a drawing.
TEST(NoiseSafeguards, NoiseOnPatternsIsStillFound) {
  for (const double sigma : {10.0, 25.0}) {
    const auto noisy_of = [&](const Picture& picture, PixelType type) {
      const Image clean = build(spec_of(PixelType::f32, 1), picture);
      Image noisy(clean.spec());
      add_noise(clean.view(), noisy.view(), {NoiseKind::gaussian, sigma, 1});
      return build(spec_of(type, 1), [&](int x, int y, int) { return noisy.samples<float>()[y * side + x]; });
    };
    for (const PixelType type : {PixelType::u8, PixelType::f32}) {
      const Image on_text = noisy_of(text(12, 30, 60, 190), type);
      EXPECT_NEAR(estimate_noise(on_text.view()).sigma / sigma, 1, 0.15) << sigma;
      const Image on_gradient = noisy_of([](int x, int, int) { return 40 + x * 0.8; }, type);
      EXPECT_NEAR(estimate_noise(on_gradient.view()).sigma / sigma, 1, 0.1) << sigma;
    }
  }
}

}  // namespace
}  // namespace ungrain
