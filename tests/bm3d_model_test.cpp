// bm3d with the noise given by level and frequency.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "bm3d_scenes.h"
#include "groups/match_simd.h"
#include "methods/bm3d/bm3d.h"
#include "methods/bm3d/fast.h"
#include "test_images.h"
#include "ungrain/denoiser.h"
#include "ungrain/error.h"
#include "ungrain/methods/bm3d.h"
#include "ungrain/metrics.h"
#include "ungrain/noise.h"
#include "ungrain/noise_model.h"

namespace ungrain::testing {
namespace {

constexpr Device reference{Device::Kind::reference};
constexpr Device cpu{Device::Kind::cpu};

// Noise that is the mean of 2 x 2 pixels of white noise.
Image smoothly_noisy_of(const Image& clean, double sigma) {
  Image noisy = noisy_of(clean, sigma);
  const ImageSpec& spec = clean.spec();
  const auto noise = [&](int x, int y, int c) {
    const int i =
        (std::min(y, spec.height - 1) * spec.width + std::min(x, spec.width - 1)) * spec.channels + c;
    return noisy.samples<float>()[i] - clean.samples<float>()[i];
  };
  Image result = clean.copy();
  for (int y = 0; y < spec.height; ++y) {
    for (int x = 0; x < spec.width; ++x) {
      for (int c = 0; c < spec.channels; ++c) {
        result.samples<float>()[(y * spec.width + x) * spec.channels + c] +=
            (noise(x, y, c) + noise(x + 1, y, c) + noise(x, y + 1, c) + noise(x + 1, y + 1, c)) / 4;
      }
    }
  }
  return result;
}

TEST(Bm3dModel, WhiteNoiseIsThatOfSigma) {
  const Image noisy = noisy_of(scene_of(60, 52, 1), 20);
  const Bm3dParams plain{.sigma = {20}, .transform = PatchTransform::dct, .search = 9};
  const Bm3dParams modelled{.noise_model = shared(white_noise_model(noisy.spec(), {20})), .search = 9};
  EXPECT_LT(max_abs(filtered(plain, noisy, reference).view(), filtered(modelled, noisy, reference).view()),
            0.01);
}

TEST(Bm3dModel, TheGeneralVersionIsTheReference) {
  for (const int channels : {1, 3}) {
    const Image noisy = noisy_of(scene_of(52, 44, channels), 20);
    const Bm3dParams params{.noise_model = shared(falling_model(noisy.spec(), 20)), .search = 15};
    EXPECT_LT(
        max_abs(filtered(params, noisy, reference).view(), filtered_generally(params, noisy.view()).view()),
        2e-5 * 255)
        << channels;
  }
}

// As the fast version is held against the reference without a model: single patches may be others, more of
// them on processors that search among pixels of 7 bits.
TEST(Bm3dModel, TheFastVersionIsTheReferenceButForSomePatches) {
  for (const int channels : {1, 3}) {
    const Image noisy = noisy_of(scene_of(52, 44, channels), 20);
    for (const NoiseModel& model : {falling_model(noisy.spec(), 20), rising_model(noisy.spec(), 20)}) {
      for (const int steps : {1, 2}) {
        const Bm3dParams params{.noise_model = shared(model), .steps = steps, .search = 9};
        const Image fast = filtered(params, noisy, cpu);
        const Image slow = filtered(params, noisy, reference);
        EXPECT_LT(max_abs(slow.view(), fast.view()), 0.06 * 255) << channels << ' ' << steps;
        EXPECT_GT(psnr(slow.view(), fast.view()), searches_7_bits() ? 48 : 50) << channels << ' ' << steps;
      }
    }
  }
}

TEST(Bm3dModel, TheFastVersionTakesWhiteNoiseAsSigma) {
  for (const int channels : {1, 3}) {
    const Image noisy = noisy_of(scene_of(130, 90, channels), 20);
    for (const int steps : {1, 2}) {
      const Bm3dParams plain{.sigma = {20}, .steps = steps, .transform = PatchTransform::dct};
      const Bm3dParams modelled{.noise_model = shared(white_noise_model(noisy.spec(), {20})), .steps = steps};
      EXPECT_GT(psnr(filtered(plain, noisy, cpu).view(), filtered(modelled, noisy, cpu).view()), 60)
          << channels << ' ' << steps;
    }
  }
}

// Its search rounds pixels by the noise's mean deviation, which is coarse for levels with much less.
TEST(Bm3dModel, FastAndGeneralAreEquallyGood) {
  for (const int channels : {1, 3}) {
    const Image clean = scene_of(250, 170, channels);
    for (const double sigma : {3.0, 20.0}) {
      const Image noisy = smoothly_noisy_of(clean, 2 * sigma);
      for (const NoiseModel& model :
           {falling_model(clean.spec(), sigma), rising_model(clean.spec(), sigma)}) {
        const Bm3dParams params{.profile = Bm3dProfile::fast, .noise_model = shared(model)};
        const double fast = psnr(clean.view(), filtered(params, noisy, cpu).view());
        EXPECT_NEAR(fast, psnr(clean.view(), filtered_generally(params, noisy.view()).view()), 0.02)
            << sigma << ' ' << channels;
      }
    }
  }
}

TEST(Bm3dModel, ThreadsAndBandsGiveTheSameBits) {
  const Image noisy = noisy_of(scene_of(171, 143, 3), 20);
  const Bm3dParams params{.profile = Bm3dProfile::fast,
                          .noise_model = shared(falling_model(noisy.spec(), 20))};
  const auto hash = [&](const Options& options) {
    Image out(noisy.spec());
    Denoiser::create(params, noisy.spec(), options).run(noisy.view(), out.view());
    return hash_of(out.view());
  };
  const std::uint64_t once = hash({.device = cpu, .threads = 1});
  EXPECT_EQ(hash({.device = cpu, .threads = 3}), once);
  EXPECT_EQ(hash({.device = cpu, .band_rows = 37}), once);
}

TEST(Bm3dModel, TheFastVersionTakesWhatHasNoise) {
  if (!has_match_vectors()) GTEST_SKIP() << "no vector instructions";
  const ImageSpec spec{.width = 64, .height = 64, .channels = 3, .colour = Colour::rgb};
  const auto takes = [&](const NoiseModel& model) {
    const MethodParams resolved = Denoiser::create(Bm3dParams{.noise_model = shared(model)}, spec).params();
    return bm3d_fast_takes(bm3d_settings(resolved.as<Bm3dParams>(), spec), spec);
  };
  EXPECT_TRUE(takes(falling_model(spec, 20)));
  EXPECT_TRUE(takes(rising_model(spec, 0.01)));
  EXPECT_FALSE(takes(rising_model(spec, 0)));
}

// Levels without noise: the fast version divides by it.
TEST(Bm3dModel, NoNoiseAtSomeLevelsOrFrequencies) {
  const Image noisy = noisy_of(scene_of(52, 44, 1), 20);
  NoiseModel still_levels = rising_model(noisy.spec(), 20);
  still_levels.channels[0].deviations[0] = 0;
  NoiseModel still_frequencies = falling_model(noisy.spec(), 20);
  still_frequencies.channels[0].spectrum[63] = 0;
  for (const NoiseModel& model : {still_levels, still_frequencies}) {
    const Bm3dParams params{.noise_model = shared(model), .search = 9};
    EXPECT_LT(max_abs(filtered(params, noisy, reference).view(), filtered(params, noisy, cpu).view()), 0.01);
  }
}

TEST(Bm3dModel, NoiseWithoutHighFrequenciesIsRemovedBlindly) {
  const Image clean = scene_of(480, 320, 3);
  const Image noisy = smoothly_noisy_of(clean, 30);
  const NoiseModelEstimate estimate = estimate_noise_model(noisy.view());
  ASSERT_EQ(estimate.finding, NoiseFinding::spectrum);
  const Bm3dParams modelled{.profile = Bm3dProfile::fast, .noise_model = shared(estimate.model)};
  double best = 0;
  for (const double sigma : {15.0, 20.0, 25.0, 30.0}) {
    best = std::max(
        best,
        psnr(clean.view(), filtered({.profile = Bm3dProfile::fast, .sigma = {sigma}}, noisy, cpu).view()));
  }
  EXPECT_GT(psnr(clean.view(), filtered(modelled, noisy, cpu).view()), best);
}

TEST(Bm3dModel, WhatItIsNotFor) {
  const ImageSpec gray{.width = 64, .height = 64};
  const auto message = [&](const Bm3dParams& params) {
    try {
      Denoiser::create(params, gray);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto model = shared(white_noise_model(gray, {5}));
  EXPECT_EQ(message({.noise_model = model}), "");
  EXPECT_EQ(message({.noise_model = model, .patch = 7}),
            "bm3d: noise_model is for patches of 8 with transform dct");
  EXPECT_EQ(message({.noise_model = model, .transform = PatchTransform::bior15}),
            "bm3d: noise_model is for patches of 8 with transform dct");
  ImageSpec rgb = gray;
  rgb.channels = 3;
  rgb.colour = Colour::rgb;
  EXPECT_EQ(message({.noise_model = shared(white_noise_model(rgb, {5}))}),
            "bm3d: noise_model has 3 channels, the image 1 colours");
}

}  // namespace
}  // namespace ungrain::testing
