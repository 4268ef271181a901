// How far the bilateral filter's approximations are from the filter itself: bounds on what the README tables.
#include <gtest/gtest.h>

#include "scene/scene.h"
#include "ungrain/denoiser.h"
#include "ungrain/methods.h"
#include "ungrain/metrics.h"
#include "ungrain/noise.h"

namespace ungrain {
namespace {

Image noisy_scene(double sigma) {
  const ImageSpec spec{.width = 240, .height = 160, .type = PixelType::f32, .range = 255};
  Image scene = render_scene(spec);
  add_noise(scene.view(), scene.view(), {NoiseKind::gaussian, sigma, 7});
  return scene;
}

double distance_from_exact(const Image& noisy, BilateralParams params, BilateralQuality quality) {
  Image exact(noisy.spec());
  Image approximation(noisy.spec());
  params.quality = BilateralQuality::exact;
  Denoiser::create(params, noisy.spec()).run(noisy.view(), exact.view());
  params.quality = quality;
  Denoiser::create(params, noisy.spec()).run(noisy.view(), approximation.view());
  return psnr(exact.view(), approximation.view());
}

TEST(BilateralApproximation, StaysNearTheFilter) {
  for (const double sigma : {5.0, 25.0}) {
    const Image noisy = noisy_scene(sigma);
    for (const int radius : {1, 3, 5, 9, 15, 24}) {
      for (const double strength : {1.0, 2.0, 4.0}) {
        const BilateralParams params{
            .radius = radius, .sigma_space = 0.55 * radius, .sigma_range = strength * sigma};
        const auto says = [&] {
          return ::testing::Message()
                 << "noise " << sigma << " radius " << radius << " sigma_range " << strength * sigma;
        };
        EXPECT_GT(distance_from_exact(noisy, params, BilateralQuality::grid), 45) << says();
        EXPECT_GT(distance_from_exact(noisy, params, BilateralQuality::separable), 26) << says();
      }
    }
  }
}

TEST(BilateralApproximation, IsExactWhereNothingIsApproximated) {
  const Image noisy = noisy_scene(25);
  // Without a range weight the window is a product of rows and columns.
  const BilateralParams blur{.radius = 4, .sigma_space = 2, .sigma_range = 1e9};
  EXPECT_GT(distance_from_exact(noisy, blur, BilateralQuality::separable), 120);
  // Cells of one pixel leave the range axis alone to be approximated.
  const BilateralParams fine{.radius = 6, .sigma_space = 1, .sigma_range = 50};
  EXPECT_GT(distance_from_exact(noisy, fine, BilateralQuality::grid), 50);
  // Small windows are not.
  const BilateralParams small{.radius = 5, .sigma_space = 2, .sigma_range = 50};
  EXPECT_GT(distance_from_exact(noisy, small, BilateralQuality::grid), 120);
}

TEST(BilateralApproximation, GridLeavesValuesFarOutsideTheRangeAlone) {
  const ImageSpec spec{.width = 40, .height = 30, .type = PixelType::f32};
  Image image = render_scene(spec);
  image.samples<float>()[15 * 40 + 20] = 50;
  image.samples<float>()[15 * 40 + 22] = -7;
  Image out(spec);
  Denoiser::create(BilateralParams{.radius = 7, .sigma_range = 0.1, .quality = BilateralQuality::grid}, spec)
      .run(image.view(), out.view());
  EXPECT_EQ(out.samples<float>()[15 * 40 + 20], 50);
  EXPECT_EQ(out.samples<float>()[15 * 40 + 22], -7);
  EXPECT_LT(out.samples<float>()[15 * 40 + 21], 1.1F) << "its neighbours do not know of it";
}

TEST(BilateralApproximation, GridFollowsWeakNoiseAsFarAsItCan) {
  const ImageSpec spec{.width = 8, .height = 8};
  const auto range_for = [&](double sigma) {
    const MethodParams params = BilateralParams{.sigma = sigma, .quality = BilateralQuality::grid};
    return Denoiser::create(params, spec).params().as<BilateralParams>().sigma_range.value();
  };
  EXPECT_DOUBLE_EQ(range_for(25), 75);
  EXPECT_DOUBLE_EQ(range_for(0.5), 2.55);
  EXPECT_EQ(range_for(0), 0);
}

TEST(BilateralApproximation, RefusesWhatItCannotDo) {
  const ImageSpec rgb{.width = 8, .height = 8, .channels = 3, .type = PixelType::f32, .colour = Colour::rgb};
  const auto message = [&](const BilateralParams& params) -> std::string {
    try {
      Denoiser::create(params, rgb);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "(no error)";
  };
  EXPECT_EQ(message({.sigma_range = 0.1, .quality = BilateralQuality::grid}),
            "bilateral: quality grid filters colour per-channel only; exact and separable take any");
  EXPECT_EQ(message({.sigma_range = 0.1, .quality = BilateralQuality::separable, .window = Window::disc}),
            "bilateral: only quality exact takes a disc window");
  EXPECT_EQ(message({.radius = 7,
                     .sigma_range = 0.001,
                     .quality = BilateralQuality::grid,
                     .colour = ColourMode::per_channel}),
            "bilateral: quality grid takes a sigma_range of at least 0.01 (a hundredth of the range), got "
            "0.001; exact takes any");
}

}  // namespace
}  // namespace ungrain
