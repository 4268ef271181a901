// bm3d at two scales: noise that is coarser than a patch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "bm3d_scenes.h"
#include "methods/bm3d/scales.h"
#include "test_devices.h"
#include "test_images.h"
#include "ungrain/denoiser.h"
#include "ungrain/error.h"
#include "ungrain/methods/bm3d.h"
#include "ungrain/metrics.h"
#include "ungrain/noise.h"
#include "ungrain/noise_calibration.h"

namespace ungrain::testing {
namespace {

constexpr Device reference{Device::Kind::reference};
constexpr Device cpu{Device::Kind::cpu};

// White noise, averaged over a square of pixels and made as strong again.
Image coarse_noise(const ImageSpec& spec, double sigma, int square, std::uint64_t seed) {
  Image gray(spec);
  for (int i = 0; i < spec.width * spec.height * spec.channels; ++i) gray.samples<float>()[i] = 128;
  Image white(spec);
  add_noise(gray.view(), white.view(), {NoiseKind::gaussian, sigma, seed});
  Image noise(spec);
  for (int y = 0; y < spec.height; ++y) {
    for (int x = 0; x < spec.width; ++x) {
      for (int c = 0; c < spec.channels; ++c) {
        double sum = 0;
        for (int dy = 0; dy < square; ++dy) {
          for (int dx = 0; dx < square; ++dx) {
            const int at = ((y + dy) % spec.height * spec.width + (x + dx) % spec.width) * spec.channels + c;
            sum += white.samples<float>()[at] - 128;
          }
        }
        noise.samples<float>()[(y * spec.width + x) * spec.channels + c] = static_cast<float>(sum / square);
      }
    }
  }
  return noise;
}

Image sum_of(const Image& a, const Image& b) {
  Image sum = a.copy();
  const ImageSpec& spec = a.spec();
  for (int i = 0; i < spec.width * spec.height * spec.channels; ++i)
    sum.samples<float>()[i] += b.samples<float>()[i];
  return sum;
}

std::shared_ptr<const NoiseModel> model_of(const ImageSpec& spec, double sigma, int square) {
  const Image first = coarse_noise(spec, sigma, square, 11);
  const Image second = coarse_noise(spec, sigma, square, 12);
  const std::vector<ConstImageView> frames{first.view(), second.view()};
  return shared(noise_of_still_frames(frames));
}

double largest_difference(const Image& a, const Image& b) {
  double most = 0;
  for (int i = 0; i < a.spec().width * a.spec().height * a.spec().channels; ++i) {
    most = std::max(most, std::fabs(double{a.samples<float>()[i]} - b.samples<float>()[i]));
  }
  return most;
}

Bm3dParams small_search(std::shared_ptr<const NoiseModel> model) {
  return {.profile = Bm3dProfile::fast, .noise_model = std::move(model), .search = 13};
}

TEST(Bm3dScales, TheModelDecides) {
  const ImageSpec spec = scene_of(96, 80, 3).spec();
  EXPECT_EQ(bm3d_scales(white_noise_model(spec, {10}), spec), 1);
  EXPECT_EQ(bm3d_scales(*model_of(spec, 10, 4), spec), 2);
  ImageSpec small = spec;
  small.height = 40;
  EXPECT_EQ(bm3d_scales(*model_of(spec, 10, 4), small), 1);
}

TEST(Bm3dScales, TheProcessorAgreesWithTheReference) {
  for (const int channels : {1, 3}) {
    const Image clean = scene_of(97, 75, channels);  // odd sizes: the last half pixel is a whole one
    const Image noisy = sum_of(clean, coarse_noise(clean.spec(), 15, 3, 5));
    const Bm3dParams params = small_search(model_of(clean.spec(), 15, 3));
    const Image expected = filtered(params, noisy.view(), {.device = reference});
    const Image actual = filtered(params, noisy.view(), {.device = cpu});
    // The fast search rounds pixels, so some groups differ; what comes of them is as near to the truth.
    EXPECT_GT(compare(expected.view(), actual.view()).psnr, 42) << channels;
    EXPECT_NEAR(compare(clean.view(), expected.view()).psnr, compare(clean.view(), actual.view()).psnr, 0.05)
        << channels;
  }
}

TEST(Bm3dScales, BandsAndThreadsChangeNothing) {
  const Image clean = scene_of(130, 151, 3);
  const Image noisy = sum_of(clean, coarse_noise(clean.spec(), 15, 3, 5));
  const Bm3dParams params = small_search(model_of(clean.spec(), 15, 3));
  const Image whole = filtered(params, noisy.view(), {.device = cpu, .threads = 1});
  for (const int rows : {1, 7, 64}) {
    const Image bands = filtered(params, noisy.view(), {.device = cpu, .threads = 3, .band_rows = rows});
    EXPECT_EQ(largest_difference(whole, bands), 0) << rows;
  }
}

TEST(Bm3dScales, APartOfTheImageIsThatPartOfTheResult) {
  const Image clean = scene_of(301, 290, 1);
  const Image noisy = sum_of(clean, coarse_noise(clean.spec(), 15, 3, 5));
  const Bm3dParams params = small_search(model_of(clean.spec(), 15, 3));
  Denoiser denoiser = Denoiser::create(params, noisy.spec(), {.device = cpu});
  Image whole(noisy.spec());
  denoiser.run(noisy.view(), whole.view());

  const Region place{147, 141, noisy.spec().width, noisy.spec().height};
  ImageSpec spec = noisy.spec();
  spec.width = 21;
  spec.height = 18;
  Image part(spec);
  ImageView out = part.view();
  out.region = place;
  denoiser.run(noisy.view(), out);
  for (int y = 0; y < spec.height; ++y) {
    for (int x = 0; x < spec.width; ++x) {
      ASSERT_EQ(part.samples<float>()[y * spec.width + x],
                whole.samples<float>()[(place.y + y) * noisy.spec().width + place.x + x])
          << x << ' ' << y;
    }
  }
}

TEST(Bm3dScales, TheGpuAgreesWithTheReference) {
  UNGRAIN_NEEDS_GPU();
  constexpr Device gpu{Device::Kind::cuda};
  for (const int channels : {1, 3}) {
    const Image clean = scene_of(197, 175, channels);
    const Image noisy = sum_of(clean, coarse_noise(clean.spec(), 15, 3, 5));
    const Bm3dParams params = small_search(model_of(clean.spec(), 15, 3));
    const Image expected = filtered(params, noisy.view(), {.device = cpu});
    const Image actual = filtered(params, noisy.view(), {.device = gpu});
    EXPECT_GT(compare(expected.view(), actual.view()).psnr, 42) << channels;
    EXPECT_NEAR(compare(clean.view(), expected.view()).psnr, compare(clean.view(), actual.view()).psnr, 0.05)
        << channels;
    const Image bands = filtered(params, noisy.view(), {.device = gpu, .band_rows = 48});
    EXPECT_GT(compare(actual.view(), bands.view()).psnr, 60) << channels;
  }
}

TEST(Bm3dScales, CoarseNoiseGoes) {
  Image clean = scene_of(200, 160, 3);
  for (int i = 0; i < 200 * 160 * 3; ++i) clean.samples<float>()[i] = static_cast<float>(40 + i % 600 / 4);
  const Image noisy = sum_of(clean, coarse_noise(clean.spec(), 20, 4, 5));
  Bm3dParams params = small_search(model_of(clean.spec(), 20, 4));
  const double two = compare(clean.view(), filtered(params, noisy.view(), {.device = cpu}).view()).psnr;
  params.scales = 1;
  const double one = compare(clean.view(), filtered(params, noisy.view(), {.device = cpu}).view()).psnr;
  EXPECT_GT(two, one + 1);
}

TEST(Bm3dScales, TwoNeedAModel) {
  const Image noisy = scene_of(96, 80, 1);
  try {
    Denoiser::create(Bm3dParams{.sigma = {10}, .scales = 2}, noisy.spec());
    FAIL() << "nothing thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "bm3d: scales of 2 need a noise model, sigma alone is for one scale");
  }
}

}  // namespace
}  // namespace ungrain::testing
