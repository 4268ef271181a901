// bm3d with noise of which it is known what neighbouring pixels have in common.
#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "bm3d_scenes.h"
#include "groups/match_simd.h"
#include "methods/bm3d/bm3d.h"
#include "methods/bm3d/fast.h"
#include "methods/bm3d/scales.h"
#include "noise/correlation.h"
#include "test_images.h"
#include "ungrain/denoiser.h"
#include "ungrain/methods/bm3d.h"
#include "ungrain/metrics.h"
#include "ungrain/noise.h"
#include "ungrain/noise_model.h"

namespace ungrain::testing {
namespace {

constexpr Device reference{Device::Kind::reference};
constexpr Device cpu{Device::Kind::cpu};

// Kernels of one channel.
Image kernel_of(int width, int height, const std::function<double(int, int)>& tap) {
  Image kernel({.width = width, .height = height, .type = PixelType::f32});
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) kernel.samples<float>()[y * width + x] = static_cast<float>(tap(x, y));
  }
  return kernel;
}
Image box(int width, int height) {
  return kernel_of(width, height, [](int, int) { return 1; });
}
// Falls off along a diagonal, and below 0 on the other one.
Image slanted() {
  return kernel_of(4, 4, [](int x, int y) { return x == y ? 1.0 - 0.2 * x : x + y == 3 ? -0.3 : 0.1; });
}

// The image and white noise of this deviation, convolved with the kernel.
Image noisy_of(const Image& clean, const Image& kernel, double sigma) {
  const int reach_x = kernel.spec().width;
  const int reach_y = kernel.spec().height;
  ImageSpec larger = clean.spec();
  larger.width += reach_x;
  larger.height += reach_y;
  Image white(larger);
  Image none(larger);
  for (int i = 0; i < larger.width * larger.height * larger.channels; ++i) none.samples<float>()[i] = 0;
  add_noise(none.view(), white.view(), {NoiseKind::gaussian, sigma, 7});
  Image result = clean.copy();
  const ImageSpec& spec = clean.spec();
  for (int y = 0; y < spec.height; ++y) {
    for (int x = 0; x < spec.width; ++x) {
      for (int c = 0; c < spec.channels; ++c) {
        double sum = 0;
        for (int ky = 0; ky < reach_y; ++ky) {
          for (int kx = 0; kx < reach_x; ++kx) {
            sum += kernel.samples<float>()[ky * reach_x + kx] *
                   white.samples<float>()[((y + ky) * larger.width + x + kx) * spec.channels + c];
          }
        }
        result.samples<float>()[(y * spec.width + x) * spec.channels + c] += static_cast<float>(sum);
      }
    }
  }
  return result;
}

NoiseModel without_correlation(NoiseModel model) {
  for (NoiseModel::Channel& channel : model.channels) channel.correlation.clear();
  return model;
}

double deviation_of(const Image& image, double mean) {
  double squares = 0;
  const int count = image.spec().width * image.spec().height;
  for (int i = 0; i < count; ++i) squares += std::pow(image.samples<float>()[i] - mean, 2);
  return std::sqrt(squares / count);
}

TEST(Bm3dCorrelation, TheGeneralVersionIsTheReference) {
  for (const int channels : {1, 3}) {
    const Image clean = scene_of(46, 38, channels);
    for (const Image& kernel : {box(3, 3), slanted()}) {
      const Image noisy = noisy_of(clean, kernel, 6);
      const Bm3dParams params{.noise_model = shared(noise_model_of_kernel(clean.spec(), kernel.view(), 6)),
                              .search = 13};
      EXPECT_LT(
          max_abs(filtered(params, noisy, reference).view(), filtered_generally(params, noisy.view()).view()),
          2e-5 * 255)
          << channels;
    }
  }
}

TEST(Bm3dCorrelation, AnyTransformAlongTheGroup) {
  const Image clean = scene_of(40, 36, 1);
  const Image noisy = noisy_of(clean, box(2, 3), 8);
  const auto model = shared(noise_model_of_kernel(clean.spec(), box(2, 3).view(), 8));
  for (const GroupTransform along :
       {GroupTransform::haar, GroupTransform::hadamard, GroupTransform::dct, GroupTransform::dft}) {
    for (const double limit : {1e6, 900.0}) {
      const Bm3dParams params{.noise_model = model,
                              .group_transform = along,
                              .search = 9,
                              .group = 11,
                              .max_distance = limit,
                              .lambda = 2.5};
      EXPECT_LT(
          max_abs(filtered(params, noisy, reference).view(), filtered_generally(params, noisy.view()).view()),
          2e-5 * 255)
          << static_cast<int>(along) << ' ' << limit;
    }
  }
}

// As the fast version is held against the reference elsewhere: single patches may be others.
TEST(Bm3dCorrelation, TheFastVersionIsTheReferenceButForSomePatches) {
  for (const int channels : {1, 3}) {
    const Image clean = scene_of(52, 44, channels);
    for (const Image& kernel : {box(3, 3), slanted(), box(40, 1)}) {
      const double sigma = 20 / std::sqrt(kernel.spec().width * kernel.spec().height);
      const Image noisy = noisy_of(clean, kernel, sigma);
      const auto model = shared(noise_model_of_kernel(clean.spec(), kernel.view(), sigma));
      for (const int steps : {1, 2}) {
        const Bm3dParams params{.noise_model = model, .steps = steps, .search = 9};
        const Image fast = filtered(params, noisy, cpu);
        const Image slow = filtered(params, noisy, reference);
        EXPECT_LT(max_abs(slow.view(), fast.view()), 0.06 * 255) << channels << ' ' << steps;
        EXPECT_GT(psnr(slow.view(), fast.view()), 45) << channels << ' ' << steps;
      }
    }
  }
}

TEST(Bm3dCorrelation, FastAndGeneralAreEquallyGood) {
  for (const int channels : {1, 3}) {
    const Image clean = scene_of(250, 170, channels);
    for (const double sigma : {1.0, 7.0}) {
      const Image noisy = noisy_of(clean, box(3, 3), sigma);
      const Bm3dParams params{
          .profile = Bm3dProfile::fast,
          .noise_model = shared(noise_model_of_kernel(clean.spec(), box(3, 3).view(), sigma)),
          .scales = 1};
      EXPECT_NEAR(psnr(clean.view(), filtered(params, noisy, cpu).view()),
                  psnr(clean.view(), filtered_generally(params, noisy.view()).view()), 0.03)
          << sigma << ' ' << channels;
    }
  }
}

TEST(Bm3dCorrelation, TheFastVersionTakesIt) {
  if (!has_match_vectors()) GTEST_SKIP() << "no vector instructions";
  const ImageSpec spec{.width = 64, .height = 64, .channels = 3, .colour = Colour::rgb};
  for (const Image& kernel : {box(3, 3), box(60, 1)}) {
    const auto model = shared(noise_model_of_kernel(spec, kernel.view(), 5));
    const MethodParams resolved = Denoiser::create(Bm3dParams{.noise_model = model}, spec).params();
    EXPECT_TRUE(bm3d_fast_takes(bm3d_settings(resolved.as<Bm3dParams>(), spec), spec));
  }
}

// Coefficient by coefficient, the noise that patches have in common is taken for picture.
TEST(Bm3dCorrelation, LeavesLessOnFlatAreasThanASpectrumAlone) {
  Image flat({.width = 160, .height = 120, .type = PixelType::f32, .range = 255});
  for (int i = 0; i < 160 * 120; ++i) flat.samples<float>()[i] = 120;
  const Image noisy = noisy_of(flat, box(3, 3), 3.5);
  const NoiseModel model = noise_model_of_kernel(flat.spec(), box(3, 3).view(), 3.5);
  EXPECT_NEAR(deviation_of(noisy, 120), 10.5, 0.5);
  const auto left = [&](const NoiseModel& used, int scales) {
    const Bm3dParams params{.noise_model = shared(used), .scales = scales};
    return deviation_of(filtered(params, noisy, cpu), 120);
  };
  // One scale of a spectrum alone has a factor on all deviations that makes up for a part of it.
  EXPECT_LT(left(model, 1), 0.9 * left(without_correlation(model), 1));
  EXPECT_LT(left(model, 2), 0.9 * left(without_correlation(model), 2));
  EXPECT_LT(left(model, 2), 2.5);
}

TEST(Bm3dCorrelation, IsBetterThanASpectrumAlone) {
  const Image clean = scene_of(250, 170, 1);
  for (const Image& kernel : {box(3, 3), box(60, 1)}) {
    const double sigma = 20 / std::sqrt(kernel.spec().width * kernel.spec().height);
    const Image noisy = noisy_of(clean, kernel, sigma);
    const NoiseModel model = noise_model_of_kernel(clean.spec(), kernel.view(), sigma);
    const auto quality = [&](const NoiseModel& used) {
      return psnr(clean.view(), filtered({.noise_model = shared(used), .scales = 1}, noisy, cpu).view());
    };
    EXPECT_GT(quality(model), quality(without_correlation(model)) + 0.3);
  }
}

TEST(Bm3dCorrelation, BandsAndThreadsGiveTheSameBits) {
  const Image noisy = noisy_of(scene_of(171, 143, 3), box(3, 3), 7);
  const Bm3dParams params{.profile = Bm3dProfile::fast,
                          .noise_model = shared(noise_model_of_kernel(noisy.spec(), box(3, 3).view(), 7))};
  const auto hash = [&](const Options& options) {
    Image out(noisy.spec());
    Denoiser::create(params, noisy.spec(), options).run(noisy.view(), out.view());
    return hash_of(out.view());
  };
  const std::uint64_t once = hash({.device = cpu, .threads = 1});
  EXPECT_EQ(hash({.device = cpu, .threads = 3}), once);
  EXPECT_EQ(hash({.device = cpu, .band_rows = 37}), once);
}

TEST(Bm3dCorrelation, WhiteNoiseGivesWhatAWhiteModelGives) {
  const Image clean = scene_of(200, 140, 1);
  const Image noisy = noisy_of(clean, box(1, 1), 20);
  const Bm3dParams white{.noise_model = shared(white_noise_model(clean.spec(), {20}))};
  const Bm3dParams delta{.noise_model = shared(noise_model_of_kernel(clean.spec(), box(1, 1).view(), 20))};
  const Image a = filtered(white, noisy, cpu);
  const Image b = filtered(delta, noisy, cpu);
  EXPECT_GT(psnr(a.view(), b.view()), 40);
  EXPECT_NEAR(psnr(clean.view(), a.view()), psnr(clean.view(), b.view()), 0.1);
}

// Filtered at half the size first, with what the halves' noise has in common.
TEST(Bm3dCorrelation, CoarseNoiseIsFilteredInTwoScales) {
  const Image clean = scene_of(200, 160, 1);
  const ImageSpec& spec = clean.spec();
  const NoiseModel model = noise_model_of_kernel(spec, box(6, 6).view(), 4);
  EXPECT_EQ(bm3d_scales(model, spec), 2);
  EXPECT_EQ(bm3d_scales(noise_model_of_kernel(spec, box(1, 1).view(), 20), spec), 1);
  const Image noisy = noisy_of(clean, box(6, 6), 4);
  const auto quality = [&](const NoiseModel& used, int scales) {
    return psnr(clean.view(), filtered({.noise_model = shared(used), .scales = scales}, noisy, cpu).view());
  };
  EXPECT_GT(quality(model, 2), quality(model, 1) + 0.3);
  EXPECT_GT(quality(model, 2), quality(without_correlation(model), 2) + 0.1);
}

// The noise of both sizes, measured in noise.
TEST(Bm3dCorrelation, TheNoiseOfHalfTheSizeIsKnown) {
  const ImageSpec spec{.width = 400, .height = 400, .type = PixelType::f32, .range = 255};
  Image none(spec);
  for (int i = 0; i < 400 * 400; ++i) none.samples<float>()[i] = 0;
  const Image noise = noisy_of(none, box(4, 2), 5);
  const auto model = shared(noise_model_of_kernel(spec, box(4, 2).view(), 5));
  const Bm3dParams params{.sigma = {1}, .noise_model = model};
  const auto half = [&](int x, int y) {
    double sum = 0;
    for (const int i : {0, 1, 400, 401}) sum += noise.samples<float>()[2 * y * 400 + 2 * x + i] / 4;
    return sum;
  };
  // Enlarged: between the halves' pixels.
  const auto enlarged = [&](int x, int y) {
    const int other_x = x % 2 == 0 ? x / 2 - 1 : x / 2 + 1;
    const int other_y = y % 2 == 0 ? y / 2 - 1 : y / 2 + 1;
    return 0.5625 * half(x / 2, y / 2) + 0.1875 * (half(other_x, y / 2) + half(x / 2, other_y)) +
           0.0625 * half(other_x, other_y);
  };
  const auto left = [&](int x, int y) { return noise.samples<float>()[y * 400 + x] - enlarged(x, y); };
  const auto expect = [&](const Bm3dParams& of, int size, const auto& value) {
    const NoiseModel::Channel& channel = of.noise_model->channels.at(0);
    const int reach = correlation_reach(channel.correlation);
    for (const auto& [dx, dy] : {std::pair{0, 0}, {1, 0}, {0, 1}, {1, -1}, {2, 1}}) {
      double sum = 0;
      int count = 0;
      for (int y = 8; y < size - 8; ++y) {
        for (int x = 8; x < size - 8; ++x, ++count) sum += value(x, y) * value(x + dx, y + dy);
      }
      const double variance = channel.deviations[0] * channel.deviations[0];
      EXPECT_NEAR(sum / count / variance, channel.correlation[(dy + reach) * (2 * reach + 1) + dx + reach],
                  0.04)
          << size << ": " << dx << ' ' << dy;
    }
  };
  expect(bm3d_coarse(params), 200, half);
  expect(bm3d_fine(params), 400, left);
}

}  // namespace
}  // namespace ungrain::testing
