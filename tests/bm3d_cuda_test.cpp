// bm3d's filtering on a GPU. That it agrees with the reference pixel by pixel, and bands with the whole, is
// tested with the other methods in conformance_test.cpp and contract_test.cpp.
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "bm3d_scenes.h"
#include "test_devices.h"
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
constexpr Device gpu{Device::Kind::cuda};

// Transforms of halves may keep other coefficients where these are about at the threshold, and both search
// among rounded pixels: at the ends of the range of sigma that is worth some hundredths, either way. The GPU
// takes patches that are nearly as near, which by chance may be better ones.
TEST(Bm3dCuda, IsAsGoodAsTheCpu) {
  UNGRAIN_NEEDS_GPU();
  for (const int channels : {1, 3}) {
    const Image clean = scene_of(330, 250, channels);
    for (const double sigma : {1.0, 3.0, 10.0, 25.0, 50.0, 75.0}) {
      const Image noisy = noisy_of(clean, sigma);
      for (const Bm3dProfile profile : {Bm3dProfile::fast, Bm3dProfile::normal}) {
        const Bm3dParams params{.profile = profile, .sigma = {sigma}};
        const double here = psnr(clean.view(), filtered(params, noisy.view(), {.device = cpu}).view());
        const double there = psnr(clean.view(), filtered(params, noisy.view(), {.device = gpu}).view());
        const bool ends = sigma < 2 || sigma > 60;
        EXPECT_GT(there, here - (ends ? 0.03 : 0.01)) << sigma << ' ' << channels;
        EXPECT_LT(there, here + 0.03) << sigma << ' ' << channels;
      }
    }
  }
}

TEST(Bm3dCuda, EveryRunAndBandGivesTheSameBits) {
  UNGRAIN_NEEDS_GPU();
  const Image noisy = noisy_of(scene_of(301, 203, 3), 25);
  for (const Bm3dProfile profile : {Bm3dProfile::fast, Bm3dProfile::normal, Bm3dProfile::high}) {
    const Bm3dParams params{.profile = profile, .sigma = {25}};
    const std::uint64_t once = hash_of(filtered(params, noisy.view(), {.device = gpu}).view());
    for (int run = 0; run < 3; ++run)
      EXPECT_EQ(hash_of(filtered(params, noisy.view(), {.device = gpu}).view()), once);
    EXPECT_EQ(hash_of(filtered(params, noisy.view(), {.device = gpu, .band_rows = 37}).view()), once);
  }
}

TEST(Bm3dCuda, PixelsFarOutsideTheRange) {
  UNGRAIN_NEEDS_GPU();
  // Hot pixels: groups that the fast kernels leave to the general one.
  for (const double sigma : {3.0, 25.0}) {
    Image noisy = noisy_of(scene_of(80, 60), sigma);
    auto* const pixels = static_cast<float*>(noisy.view().data);
    pixels[30 * 80 + 40] = 40 * 255;
    pixels[12 * 80 + 7] = -20 * 255;
    for (const int steps : {1, 2}) {
      const Bm3dParams params{.sigma = {sigma}, .steps = steps, .search = 11};
      const Image slow = filtered(params, noisy.view(), {.device = reference});
      const Image fast = filtered(params, noisy.view(), {.device = gpu});
      EXPECT_LT(max_abs(slow.view(), fast.view()), sigma) << sigma << ' ' << steps;
      EXPECT_GT(psnr(slow.view(), fast.view()), sigma < 10 ? 60.0 : 45.0) << sigma << ' ' << steps;
    }
  }
}

// Weak noise is filtered with coefficients of floats, strong noise with halves.
TEST(Bm3dCuda, GroupsOfEverySizeByFloatsAndHalves) {
  UNGRAIN_NEEDS_GPU();
  for (const double sigma : {5.0, 25.0}) {
    const Image noisy = noisy_of(scene_of(90, 70), sigma);
    for (const PatchTransform transform : {PatchTransform::dct, PatchTransform::bior15}) {
      for (const int group : {1, 2, 8, 16, 32}) {
        for (const int steps : {1, 2}) {
          const Bm3dParams params{.sigma = {sigma},
                                  .steps = steps,
                                  .transform = transform,
                                  .search = 15,
                                  .group = group,
                                  .wiener_group = group};
          const Image slow = filtered(params, noisy.view(), {.device = reference});
          const Image fast = filtered(params, noisy.view(), {.device = gpu});
          EXPECT_GT(psnr(slow.view(), fast.view()), sigma < 10 ? 55.0 : 43.0)
              << sigma << ' ' << group << ' ' << steps;
        }
      }
    }
  }
}

TEST(Bm3dCuda, ImagesSmallerThanAPatch) {
  UNGRAIN_NEEDS_GPU();
  for (const auto& [width, height] : {std::pair{1, 1}, {3, 5}, {7, 40}, {40, 2}, {8, 8}, {9, 8}}) {
    for (const int channels : {1, 3}) {
      const Image noisy = noisy_of(scene_of(width, height, channels), 20);
      const Bm3dParams params{.sigma = {20}};
      EXPECT_LT(max_abs(filtered(params, noisy.view(), {.device = reference}).view(),
                        filtered(params, noisy.view(), {.device = gpu}).view()),
                3.0)
          << width << " x " << height;
    }
  }
}

TEST(Bm3dCuda, MapsAndManyPatches) {
  UNGRAIN_NEEDS_GPU();
  const Image noisy = noisy_of(scene_of(48, 40, 3), 20);
  Image map({.width = 48, .height = 40, .type = PixelType::f32});
  for (int i = 0; i < 48 * 40; ++i)
    static_cast<float*>(map.view().data)[i] = 10 + 20 * static_cast<float>(i % 48) / 48;
  const auto expect_within = [&](double limit, const Bm3dParams& params) {
    EXPECT_LT(max_abs(filtered(params, noisy.view(), {.device = reference}).view(),
                      filtered(params, noisy.view(), {.device = gpu}).view()),
              limit);
  };
  // Halves may find other patches that are about as near; the other search is of floats.
  expect_within(1.5, {.sigma_map = map.view(), .search = 9});
  expect_within(0.03, {.sigma = {20}, .group_transform = GroupTransform::dct, .search = 13, .group = 100});
}

TEST(Bm3dCuda, NoiseModelsGiveWhatTheReferenceGives) {
  UNGRAIN_NEEDS_GPU();
  for (const int channels : {1, 3}) {
    const Image noisy = noisy_of(scene_of(52, 44, channels), 20);
    const ImageSpec& spec = noisy.spec();
    for (const NoiseModel& model : {falling_model(spec, 20), rising_model(spec, 20)}) {
      for (const int steps : {1, 2}) {
        for (const int group : {16, 32}) {
          const Bm3dParams params{.noise_model = shared(model), .steps = steps, .search = 9, .group = group};
          const Image slow = filtered(params, noisy.view(), {.device = reference});
          const Image fast = filtered(params, noisy.view(), {.device = gpu});
          EXPECT_LT(max_abs(slow.view(), fast.view()), 0.06 * 255)
              << channels << ' ' << steps << ' ' << group;
          EXPECT_GT(psnr(slow.view(), fast.view()), 45) << channels << ' ' << steps << ' ' << group;
        }
      }
    }
  }
}

// The general kernel: other transforms along the group, and noise that is too different for the sums of the
// fast one or missing at some level.
TEST(Bm3dCuda, NoiseModelsThatTheFastKernelDoesNotTake) {
  UNGRAIN_NEEDS_GPU();
  for (const int channels : {1, 3}) {
    const Image noisy = noisy_of(scene_of(48, 40, channels), 20);
    const ImageSpec& spec = noisy.spec();
    const auto expect_within = [&](double limit, double least_psnr, const Bm3dParams& params) {
      const Image slow = filtered(params, noisy.view(), {.device = reference});
      const Image fast = filtered(params, noisy.view(), {.device = gpu});
      EXPECT_LT(max_abs(slow.view(), fast.view()), limit) << channels;
      EXPECT_GT(psnr(slow.view(), fast.view()), least_psnr) << channels;
    };
    const auto falling = shared(falling_model(spec, 20));
    expect_within(
        0.03, 90,
        {.noise_model = falling, .group_transform = GroupTransform::dct, .search = 13, .group = 100});
    // Halves may find other patches that are about as near.
    constexpr double other_groups = 0.07 * 255;
    expect_within(other_groups, 50,
                  {.noise_model = falling, .group_transform = GroupTransform::hadamard, .search = 9});
    for (const double in_the_dark : {0.01, 0.0}) {
      expect_within(other_groups, 50,
                    {.noise_model = shared(rising_model(spec, 20, in_the_dark)), .search = 9});
    }
  }
}

TEST(Bm3dCuda, WhiteNoiseModelsAreSigma) {
  UNGRAIN_NEEDS_GPU();
  for (const int channels : {1, 3}) {
    const Image noisy = noisy_of(scene_of(130, 90, channels), 20);
    for (const int steps : {1, 2}) {
      const Bm3dParams plain{.sigma = {20}, .steps = steps, .transform = PatchTransform::dct};
      const Bm3dParams modelled{.noise_model = shared(white_noise_model(noisy.spec(), {20})), .steps = steps};
      EXPECT_GT(psnr(filtered(plain, noisy.view(), {.device = gpu}).view(),
                     filtered(modelled, noisy.view(), {.device = gpu}).view()),
                50)
          << channels << ' ' << steps;
    }
  }
}

TEST(Bm3dCuda, NoiseModelsAreAsGoodAsOnTheCpu) {
  UNGRAIN_NEEDS_GPU();
  for (const int channels : {1, 3}) {
    const Image clean = scene_of(330, 250, channels);
    for (const double sigma : {3.0, 10.0, 25.0}) {
      const Image noisy = noisy_of(clean, sigma);
      for (const NoiseModel& model :
           {falling_model(clean.spec(), sigma), rising_model(clean.spec(), sigma)}) {
        for (const Bm3dProfile profile : {Bm3dProfile::fast, Bm3dProfile::normal}) {
          const Bm3dParams params{.profile = profile, .noise_model = shared(model)};
          const double here = psnr(clean.view(), filtered(params, noisy.view(), {.device = cpu}).view());
          const double there = psnr(clean.view(), filtered(params, noisy.view(), {.device = gpu}).view());
          EXPECT_NEAR(there, here, 0.03) << sigma << ' ' << channels;
        }
      }
    }
  }
}

TEST(Bm3dCuda, NoiseModelsGiveTheSameBitsInEveryRunAndBand) {
  UNGRAIN_NEEDS_GPU();
  const Image noisy = noisy_of(scene_of(301, 203, 3), 25);
  const Bm3dParams params{.noise_model = shared(falling_model(noisy.spec(), 25))};
  const std::uint64_t once = hash_of(filtered(params, noisy.view(), {.device = gpu}).view());
  for (int run = 0; run < 3; ++run)
    EXPECT_EQ(hash_of(filtered(params, noisy.view(), {.device = gpu}).view()), once);
  EXPECT_EQ(hash_of(filtered(params, noisy.view(), {.device = gpu, .band_rows = 37}).view()), once);
}

Image box_kernel(int width, int height) {
  Image kernel({.width = width, .height = height, .type = PixelType::f32});
  for (int i = 0; i < width * height; ++i) kernel.samples<float>()[i] = 1;
  return kernel;
}

// What neighbouring pixels' noise has in common is known. Floats are compared: only near ties may be others.
TEST(Bm3dCuda, CorrelatedNoiseGivesWhatTheReferenceGives) {
  UNGRAIN_NEEDS_GPU();
  for (const int channels : {1, 3}) {
    const Image noisy = noisy_of(scene_of(52, 44, channels), 20);
    for (const Image& kernel : {box_kernel(3, 3), box_kernel(20, 1), box_kernel(2, 3)}) {
      const double sigma = 20 / std::sqrt(kernel.spec().width * kernel.spec().height);
      const auto model = shared(noise_model_of_kernel(noisy.spec(), kernel.view(), sigma));
      for (const GroupTransform along :
           {GroupTransform::haar, GroupTransform::hadamard, GroupTransform::dct, GroupTransform::dft}) {
        for (const double limit : {1e6, 1500.0}) {
          const Bm3dParams params{.noise_model = model,
                                  .scales = 1,
                                  .group_transform = along,
                                  .search = 11,
                                  .group = 13,
                                  .max_distance = limit};
          const Image slow = filtered(params, noisy.view(), {.device = reference});
          const Image fast = filtered(params, noisy.view(), {.device = gpu});
          EXPECT_LT(max_abs(slow.view(), fast.view()), 0.06 * 255) << channels << ' ' << limit;
          EXPECT_GT(psnr(slow.view(), fast.view()), 50) << channels << ' ' << limit;
        }
      }
    }
  }
}

TEST(Bm3dCuda, CorrelatedNoiseIsAsGoodAsOnTheCpuAndTheSameInEveryBand) {
  UNGRAIN_NEEDS_GPU();
  const Image clean = scene_of(301, 203, 3);
  const Image noisy = noisy_of(clean, 20);
  const auto model = shared(noise_model_of_kernel(noisy.spec(), box_kernel(3, 3).view(), 20.0 / 3));
  for (const int scales : {1, 2}) {
    const Bm3dParams params{.noise_model = model, .scales = scales};
    const Image there = filtered(params, noisy.view(), {.device = gpu});
    EXPECT_NEAR(psnr(clean.view(), there.view()),
                psnr(clean.view(), filtered(params, noisy.view(), {.device = cpu}).view()), 0.03);
    EXPECT_EQ(hash_of(filtered(params, noisy.view(), {.device = gpu, .band_rows = 37}).view()),
              hash_of(there.view()));
  }
}

// Groups that the fast kernel leaves to the general one, which adds to the same sums.
TEST(Bm3dCuda, NoiseModelsAndPixelsFarOutsideTheRange) {
  UNGRAIN_NEEDS_GPU();
  Image noisy = noisy_of(scene_of(80, 60), 3);
  auto* const pixels = static_cast<float*>(noisy.view().data);
  pixels[30 * 80 + 40] = 40 * 255;
  pixels[12 * 80 + 7] = -20 * 255;
  for (const int steps : {1, 2}) {
    const Bm3dParams params{
        .noise_model = shared(falling_model(noisy.spec(), 3)), .steps = steps, .search = 11};
    const Image slow = filtered(params, noisy.view(), {.device = reference});
    const Image fast = filtered(params, noisy.view(), {.device = gpu});
    EXPECT_LT(max_abs(slow.view(), fast.view()), 3.0);
    EXPECT_GT(psnr(slow.view(), fast.view()), 55.0);
  }
}

TEST(Bm3dCuda, FlatAndSaturatedAreasAreCovered) {
  UNGRAIN_NEEDS_GPU();
  Image in({.width = 90, .height = 70, .type = PixelType::f32, .range = 255});
  auto* const pixels = static_cast<float*>(in.view().data);
  for (int i = 0; i < 90 * 70; ++i) pixels[i] = i % 90 < 45 ? 255.0F : 0.0F;
  const Image out = filtered(Bm3dParams{.sigma = {10}}, in.view(), {.device = gpu});
  EXPECT_LT(max_abs(in.view(), out.view()), 0.5);
}

}  // namespace
}  // namespace ungrain::testing
