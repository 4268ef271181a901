// The references themselves, against images small enough to compute by hand and against closed forms.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "core/colour.h"
#include "ungrain/denoiser.h"
#include "ungrain/methods.h"

namespace ungrain {
namespace {

std::vector<float> filtered(const MethodParams& params, const ImageSpec& spec, std::vector<float> pixels) {
  std::vector<float> out(pixels.size());
  Denoiser::create(params, spec, {.device = {Device::Kind::reference}})
      .run(ConstImageView(pixels.data(), spec), ImageView(out.data(), spec));
  return out;
}

ImageSpec gray(int width, int height) { return {.width = width, .height = height, .type = PixelType::f32}; }

TEST(BoxReference, ByHand) {
  const std::vector<float> image{1, 2, 3,  //
                                 4, 5, 6,  //
                                 7, 8, 9};
  const auto corner = [&](Border border) {
    return filtered(BoxParams{.radius = 1, .border = border}, gray(3, 3), image)[0];
  };
  EXPECT_FLOAT_EQ(filtered(BoxParams{.radius = 1}, gray(3, 3), image)[4], 5);
  EXPECT_FLOAT_EQ(corner(Border::symmetric), (4 * 1 + 2 * 2 + 2 * 4 + 5) / 9.0F);
  EXPECT_FLOAT_EQ(corner(Border::mirror), (4 * 5 + 2 * 4 + 2 * 2 + 1) / 9.0F);
  EXPECT_FLOAT_EQ(corner(Border::clamp), (4 * 1 + 2 * 2 + 2 * 4 + 5) / 9.0F);
  EXPECT_FLOAT_EQ(corner(Border::constant), (1 + 2 + 4 + 5) / 9.0F);
  EXPECT_FLOAT_EQ(corner(Border::wrap), 45 / 9.0F);
  EXPECT_FLOAT_EQ(corner(Border::shrink), (1 + 2 + 4 + 5) / 4.0F);
}

TEST(GaussianReference, ImpulseIsTheKernel) {
  std::vector<float> image(81, 0.0F);
  image[40] = 1;
  const std::vector<float> out = filtered(GaussianParams{.sigma = 1.2, .radius = 3}, gray(9, 9), image);
  double sum = 0;
  for (int k = -3; k <= 3; ++k) sum += std::exp(-k * k / (2 * 1.2 * 1.2));
  for (int y = 0; y < 9; ++y) {
    for (int x = 0; x < 9; ++x) {
      const int dx = x - 4;
      const int dy = y - 4;
      const bool inside = std::abs(dx) <= 3 && std::abs(dy) <= 3;
      const double expected = inside ? std::exp(-(dx * dx + dy * dy) / (2 * 1.2 * 1.2)) / (sum * sum) : 0;
      EXPECT_NEAR(out[static_cast<std::size_t>(y * 9 + x)], expected, 1e-7);
    }
  }
}

TEST(MedianReference, ByHand) {
  const std::vector<float> image{9, 2, 3,  //
                                 4, 5, 6,  //
                                 7, 8, 1};
  const auto corner = [&](Border border) {
    return filtered(MedianParams{.radius = 1, .border = border}, gray(3, 3), image)[0];
  };
  EXPECT_EQ(filtered(MedianParams{.radius = 1}, gray(3, 3), image)[4], 5.0F);
  EXPECT_EQ(corner(Border::symmetric), 5.0F);  // 9 9 2 / 9 9 2 / 4 4 5
  EXPECT_EQ(corner(Border::mirror), 5.0F);     // 5 4 5 / 2 9 2 / 5 4 5
  EXPECT_EQ(corner(Border::constant), 0.0F);   // five zeros, 9 2 4 5
  EXPECT_EQ(corner(Border::shrink), 4.5F);     // 2 4 5 9
}

TEST(AdaptiveBilateralReference, TwoPixelsByHand) {
  // A step of 0.5 between two pixels, radius 1, shrink. First pass: weights 1 and w; variance around the
  // pixel itself.
  const double w = std::exp(-1 / (2 * 2.0 * 2.0)) * std::exp(-0.25 / (2 * 0.3 * 0.3));
  const double variance = 0.25 * w / (1 + w);
  const double sigma = 0.5 * std::sqrt(variance + 0.001);
  const double w2 = std::exp(-1 / (2 * 2.0 * 2.0)) * std::exp(-0.25 / (2 * sigma * sigma));
  AdaptiveBilateralParams params{.radius = 1, .sigma_space = 2, .sigma_range = 0.3, .epsilon = 0.001};
  params.border = Border::shrink;
  const std::vector<float> out = filtered(params, gray(2, 1), {0, 0.5F});
  EXPECT_NEAR(out[0], 0.5 * w2 / (1 + w2), 1e-7);
  EXPECT_NEAR(out[1], 0.5 / (1 + w2), 1e-7);
}

TEST(BilateralReference, TwoPixelsByHand) {
  // A step of 0.5 between two pixels, radius 1, shrink: each is the weighted mean of both.
  const double w = std::exp(-1 / (2 * 2.0 * 2.0)) * std::exp(-0.25 / (2 * 0.3 * 0.3));
  const std::vector<float> out =
      filtered(BilateralParams{.radius = 1, .sigma_space = 2, .sigma_range = 0.3, .border = Border::shrink},
               gray(2, 1), {0, 0.5F});
  EXPECT_NEAR(out[0], 0.5 * w / (1 + w), 1e-7);
  EXPECT_NEAR(out[1], 0.5 / (1 + w), 1e-7);
}

TEST(BilateralReference, DiscLeavesTheCornersOut) {
  std::vector<float> image(9, 0.0F);
  image[0] = 1;  // a corner of the 3 x 3 window
  const auto centre = [&](Window window) {
    return filtered(BilateralParams{.radius = 1, .sigma_range = 100, .window = window}, gray(3, 3), image)[4];
  };
  EXPECT_GT(centre(Window::square), 0.01F);
  EXPECT_EQ(centre(Window::disc), 0.0F);
}

TEST(BilateralReference, WideRangeIsTheGaussian) {
  std::vector<float> image(63);
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>((i * 37) % 11) / 11;
  const std::vector<float> blur = filtered(GaussianParams{.sigma = 1.5, .radius = 4}, gray(9, 7), image);
  const std::vector<float> wide =
      filtered(BilateralParams{.radius = 4, .sigma_space = 1.5, .sigma_range = 1e9}, gray(9, 7), image);
  for (std::size_t i = 0; i < image.size(); ++i) EXPECT_NEAR(wide[i], blur[i], 1e-6);
}

TEST(BilateralReference, JointWeightByHand) {
  // Two rgb pixels that differ in red only: d² is the mean over the channels.
  const ImageSpec spec{.width = 2, .height = 1, .channels = 3, .type = PixelType::f32, .colour = Colour::rgb};
  const double w = std::exp(-1 / (2 * 3.0 * 3.0)) * std::exp(-0.36 / 3 / (2 * 0.2 * 0.2));
  const std::vector<float> out =
      filtered(BilateralParams{.radius = 1, .sigma_range = 0.2, .border = Border::shrink}, spec,
               {0.6F, 0.5F, 0.4F, 0, 0.5F, 0.4F});
  EXPECT_NEAR(out[0], 0.6 / (1 + w), 1e-7);
  EXPECT_NEAR(out[3], 0.6 * w / (1 + w), 1e-7);
  EXPECT_NEAR(out[1], 0.5, 1e-7);
}

TEST(BilateralReference, CityBlockWeightByHand) {
  // Two rgb pixels that differ by 0.3 in red, by -0.2 in green and not in blue: the distance is 0.5.
  const ImageSpec spec{.width = 2, .height = 1, .channels = 3, .type = PixelType::f32, .colour = Colour::rgb};
  const double w = std::exp(-1 / (2 * 3.0 * 3.0)) * std::exp(-0.25 / (2 * 0.4 * 0.4));
  const std::vector<float> out = filtered(BilateralParams{.radius = 1,
                                                          .sigma_range = 0.4,
                                                          .colour_distance = ColourDistance::city_block,
                                                          .border = Border::shrink},
                                          spec, {0.6F, 0.4F, 0.5F, 0.3F, 0.6F, 0.5F});
  EXPECT_NEAR(out[0], (0.6 + 0.3 * w) / (1 + w), 1e-7);
  EXPECT_NEAR(out[4], (0.6 + 0.4 * w) / (1 + w), 1e-7);
  EXPECT_NEAR(out[5], 0.5, 1e-7);
}

TEST(Lab, KnownColours) {
  // sRGB primaries in CIE-Lab under D65 (values as colour calculators give them).
  const auto expect = [](const Triple& rgb, const Triple& lab) {
    const Triple got = rgb_to_lab(rgb);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(got[i], lab[i], 0.02);
  };
  expect({0, 0, 0}, {0, 0, 0});
  expect({1, 1, 1}, {100, 0, 0});
  expect({1, 0, 0}, {53.24, 80.09, 67.20});
  expect({0, 1, 0}, {87.73, -86.18, 83.18});
  expect({0, 0, 1}, {32.30, 79.19, -107.86});
  expect({0.5, 0.5, 0.5}, {53.39, 0, 0});
}

TEST(Lab, ComesBackAlsoOutsideTheRange) {
  for (double r = -0.5; r <= 3; r += 0.35) {
    for (double g = -0.5; g <= 3; g += 0.35) {
      for (double b = -0.5; b <= 3; b += 0.35) {
        const Triple back = lab_to_rgb(rgb_to_lab({r, g, b}));
        ASSERT_NEAR(back[0], r, 1e-9);
        ASSERT_NEAR(back[1], g, 1e-9);
        ASSERT_NEAR(back[2], b, 1e-9);
      }
    }
  }
}

}  // namespace
}  // namespace ungrain
