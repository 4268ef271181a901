// bm3d: its transforms, what it does to groups whose result is known, and what its parameters mean. That the
// fast versions agree with the reference, and bands, tiles and threads with the whole, is tested with the
// other methods in conformance_test.cpp and contract_test.cpp.
#include <array>
#include <cmath>

#include <gtest/gtest.h>

#include "bm3d_scenes.h"
#include "core/convert.h"
#include "methods/bm3d/bm3d.h"
#include "methods/bm3d/transforms.h"
#include "test_images.h"
#include "ungrain/denoiser.h"
#include "ungrain/error.h"
#include "ungrain/methods/bm3d.h"
#include "ungrain/metrics.h"
#include "ungrain/noise.h"

namespace ungrain::testing {
namespace {

constexpr Device reference{Device::Kind::reference};
constexpr Device cpu{Device::Kind::cpu};

TransformMatrix product(const TransformMatrix& a, const TransformMatrix& b) {
  TransformMatrix result(a.side);
  for (int r = 0; r < a.side; ++r) {
    for (int c = 0; c < a.side; ++c) {
      for (int i = 0; i < a.side; ++i) result.at(r, c) += a.at(r, i) * b.at(i, c);
    }
  }
  return result;
}

void expect_identity(const TransformMatrix& m) {
  for (int r = 0; r < m.side; ++r) {
    for (int c = 0; c < m.side; ++c) ASSERT_NEAR(std::abs(m.at(r, c) - (r == c ? 1.0 : 0.0)), 0, 1e-12);
  }
}

TransformMatrix adjoint(const TransformMatrix& m) {
  TransformMatrix result(m.side);
  for (int r = 0; r < m.side; ++r) {
    for (int c = 0; c < m.side; ++c) result.at(r, c) = std::conj(m.at(c, r));
  }
  return result;
}

TEST(Bm3dTransforms, AlongGroupsAreOrthonormal) {
  for (const GroupTransform kind :
       {GroupTransform::haar, GroupTransform::hadamard, GroupTransform::dct, GroupTransform::dft}) {
    const bool any = kind == GroupTransform::dct || kind == GroupTransform::dft;
    for (int size = 1; size <= 32; size = any ? size + 1 : 2 * size) {
      const TransformPair pair = group_transform(kind, size);
      expect_identity(product(pair.forward, pair.inverse));
      expect_identity(product(pair.forward, adjoint(pair.forward)));
      // The first coefficient is the mean.
      for (int n = 0; n < size; ++n)
        ASSERT_NEAR(std::abs(pair.forward.at(0, n) - 1 / std::sqrt(size)), 0, 1e-12);
    }
  }
}

TEST(Bm3dTransforms, WithinPatchesInvert) {
  for (const PatchTransform kind :
       {PatchTransform::dct, PatchTransform::bior15, PatchTransform::hadamard, PatchTransform::dft}) {
    for (const int side : {1, 2, 4, 8, 16}) {
      for (const TransformPair& level : patch_transform(kind, side)) {
        expect_identity(product(level.forward, level.inverse));
        if (kind != PatchTransform::bior15) expect_identity(product(level.forward, adjoint(level.forward)));
      }
    }
  }
  for (const int side : {3, 7, 11, 12}) {
    expect_identity(product(patch_transform(PatchTransform::dct, side)[0].forward,
                            patch_transform(PatchTransform::dct, side)[0].inverse));
  }
}

TEST(Bm3dTransforms, DctIsTheTextbooks) {
  const TransformMatrix m = patch_transform(PatchTransform::dct, 8)[0].forward;
  EXPECT_NEAR(m.at(0, 5).real(), 0.35355339059327379, 1e-15);
  EXPECT_NEAR(m.at(1, 0).real(), 0.49039264020161522, 1e-15);
  EXPECT_NEAR(m.at(7, 7).real(), -0.09754516100806417, 1e-14);
}

TEST(Bm3dTransforms, BiorthogonalWaveletsAreTheTextbooks) {
  // The decomposition's low-pass filter of bior1.5 as other programs tabulate it, around a pair.
  constexpr std::array low{0.01657281518405971, -0.01657281518405971, -0.12153397801643787,
                           0.12153397801643787, 0.7071067811865476,   0.7071067811865476,
                           0.12153397801643787, -0.12153397801643787, -0.01657281518405971,
                           0.01657281518405971};
  const TransformPair level = patch_transform(PatchTransform::bior15, 16)[0];
  for (int tap = 0; tap < 10; ++tap) EXPECT_NEAR(level.forward.at(3, 2 + tap).real(), low[tap], 1e-15);
  // The inverse's high-pass filter has five vanishing moments: it is a column, away from the edge.
  for (int moment = 0; moment < 5; ++moment) {
    double sum = 0;
    for (int x = 0; x < 16; ++x) sum += std::pow(x, moment) * level.inverse.at(x, 8 + 4).real();
    EXPECT_NEAR(sum, 0, 1e-9) << moment;
  }
  // And the next level goes on with half.
  EXPECT_EQ(patch_transform(PatchTransform::bior15, 8).size(), 3U);
  EXPECT_EQ(patch_transform(PatchTransform::bior15, 8)[2].forward.side, 2);
}

TEST(Bm3dTransforms, KaiserWindow) {
  const std::vector<double> window = patch_window(8, true);
  // numpy.kaiser(8, 2)
  constexpr std::array expected{0.4386762798370488, 0.6813242630163212, 0.8768399053044081,
                                0.9858225062008237};
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(window[i], expected[i], 1e-12);
    EXPECT_NEAR(window[7 - i], expected[i], 1e-12);
  }
  for (const double weight : patch_window(5, false)) EXPECT_EQ(weight, 1);
}

float& pixel(Image& image, int x, int y, int channel = 0) {
  const ImageView view = image.view();
  return *reinterpret_cast<float*>(static_cast<std::byte*>(view.data) + y * view.strides.y +
                                   x * view.strides.x + channel * view.strides.channel);
}

TEST(Bm3d, PatchesThatAreAlikeBecomeTheirMean) {
  // Eight copies of one patch side by side with a little noise: every reference finds the same eight, and
  // what they do not have in common is below the threshold.
  const ImageSpec spec{.width = 64, .height = 8, .type = PixelType::f32};
  Image in(spec);
  const auto texture = [](int x, int y) {
    return static_cast<float>(0.5 + 0.4 * std::sin(1.3 * x * x + 2.1 * y + 0.7 * x * y));
  };
  const auto noise = [](int x, int y) { return 1e-5F * static_cast<float>(std::sin(12.9 * x + 78.2 * y)); };
  for (int y = 0; y < 8; ++y) {
    for (int x = 0; x < 64; ++x) pixel(in, x, y) = texture(x % 8, y) + noise(x, y);
  }
  for (const Device& device : {reference, cpu}) {
    for (const PatchTransform transform :
         {PatchTransform::dct, PatchTransform::bior15, PatchTransform::hadamard, PatchTransform::dft}) {
      const Bm3dParams params{.sigma = {5e-5},
                              .steps = 1,
                              .transform = transform,
                              .spacing = 8,
                              .search = 127,
                              .group = 8,
                              .lambda = 4};
      Image out = filtered(params, in.view(), {.device = device});
      for (int y = 0; y < 8; ++y) {
        for (int x = 0; x < 8; ++x) {
          double mean = 0;
          for (int n = 0; n < 8; ++n) mean += pixel(in, 8 * n + x, y) / 8;
          for (int n = 0; n < 8; ++n) ASSERT_NEAR(pixel(out, 8 * n + x, y), mean, 3e-6);
          ASSERT_NEAR(pixel(out, x, y), pixel(out, 56 + x, y), 1e-6);
        }
      }
    }
  }
}

TEST(Bm3d, WienerWithTheTruthAsPilotBeatsTheThreshold) {
  const Image clean = scene_of(96, 80);
  const Image noisy = noisy_of(clean, 25);
  const ImageSpec& spec = clean.view().spec;
  const MethodParams resolved = resolve(Bm3dParams{.sigma = {25}, .search = 15}, noisy.view());
  const Pipeline pipeline = bm3d_cpu(resolved.as<Bm3dParams>(), spec);
  ASSERT_GE(pipeline.stages.size(), 2U);
  const auto plane = [&](const Image& image) {
    return ConstPlanes{
        static_cast<const float*>(image.view().data), {0, 0, spec.width, spec.height}, spec.width, 0, 1};
  };
  const Image thresholded =
      filtered(Bm3dParams{.sigma = {25}, .steps = 1, .search = 15}, noisy.view(), {.device = cpu});
  const Image twice = filtered(Bm3dParams{.sigma = {25}, .search = 15}, noisy.view(), {.device = cpu});

  // The second stage alone, of the reference: it reads the noisy image and what it is given as the first's.
  const Pipeline by_definition = bm3d_reference(resolved.as<Bm3dParams>(), spec);
  Image told(spec);
  Workers workers(1);
  const std::array in{plane(noisy), plane(clean)};
  by_definition.stages[1].run(
      {{in,
        {static_cast<float*>(told.view().data), {0, 0, spec.width, spec.height}, spec.width, 0, 1},
        {spec.width, spec.height}},
       workers,
       {},
       {}});
  EXPECT_GT(psnr(clean.view(), twice.view()), psnr(clean.view(), thresholded.view()) + 0.1);
  EXPECT_GT(psnr(clean.view(), told.view()), psnr(clean.view(), twice.view()) + 1);
}

TEST(Bm3d, NoNoiseReturnsTheInput) {
  const Image clean = scene_of(40, 30, 3);
  for (const Device& device : {reference, cpu}) {
    const Image out = filtered(Bm3dParams{.sigma = {0}}, clean.view(), {.device = device});
    EXPECT_EQ(hash_of(out.view()), hash_of(clean.view()));
  }
  // A channel without noise stays as it is.
  const Image out =
      filtered(Bm3dParams{.sigma = {0, 20, 0}, .colour = Bm3dColour::per_channel, .search = 9}, clean.view());
  Image copy = scene_of(40, 30, 3);
  Image result =
      filtered(Bm3dParams{.sigma = {0, 20, 0}, .colour = Bm3dColour::per_channel, .search = 9}, clean.view());
  for (int y = 0; y < 30; ++y) {
    for (int x = 0; x < 40; ++x) {
      ASSERT_NEAR(pixel(result, x, y, 0), pixel(copy, x, y, 0), 1e-3);
      ASSERT_NEAR(pixel(result, x, y, 2), pixel(copy, x, y, 2), 1e-3);
    }
  }
}

TEST(Bm3d, ImagesSmallerThanAPatch) {
  for (const auto& [width, height] : {std::pair{1, 1}, {3, 5}, {7, 40}, {40, 2}, {8, 8}, {9, 8}}) {
    for (const int channels : {1, 3}) {
      const Image clean = scene_of(width, height, channels);
      const Image noisy = noisy_of(clean, 20);
      const Image slow = filtered(Bm3dParams{.sigma = {20}}, noisy.view(), {.device = reference});
      const Image fast = filtered(Bm3dParams{.sigma = {20}}, noisy.view(), {.device = cpu});
      EXPECT_LT(max_abs(slow.view(), fast.view()), 0.02) << width << " x " << height;
    }
  }
}

TEST(Bm3d, OneThreadAndEightGiveTheSameBits) {
  const Image noisy = noisy_of(scene_of(230, 170, 3), 25);
  for (const Bm3dProfile profile : {Bm3dProfile::fast, Bm3dProfile::normal}) {
    const Bm3dParams params{.profile = profile, .sigma = {25}};
    const std::uint64_t one = hash_of(filtered(params, noisy.view(), {.device = cpu, .threads = 1}).view());
    EXPECT_EQ(hash_of(filtered(params, noisy.view(), {.device = cpu, .threads = 8}).view()), one);
    EXPECT_EQ(hash_of(filtered(params, noisy.view(), {.device = cpu, .threads = 8, .band_rows = 57}).view()),
              one);
  }
}

TEST(Bm3d, TheGeneralVersionIsTheReference) {
  for (const int channels : {1, 3}) {
    const Image noisy = noisy_of(scene_of(52, 44, channels), 25);
    for (const Bm3dParams& params :
         {Bm3dParams{.sigma = {25}, .search = 15}, Bm3dParams{.profile = Bm3dProfile::fast, .sigma = {25}},
          Bm3dParams{.sigma = {25}, .colour = Bm3dColour::per_channel, .search = 9}}) {
      const Image slow = filtered(params, noisy.view(), {.device = reference});
      EXPECT_LT(max_abs(slow.view(), filtered_generally(params, noisy.view()).view()), 2e-5 * 255)
          << channels;
    }
  }
}

// The fast version searches among coarser pixels: it may choose other patches where they are about equally
// near. Then single pixels differ, the quality does not.
TEST(Bm3d, FastAndGeneralAreEquallyGood) {
  for (const int channels : {1, 3}) {
    const Image clean = scene_of(330, 250, channels);
    for (const double sigma : {1.0, 3.0, 10.0, 25.0, 60.0}) {
      for (const Bm3dProfile profile : {Bm3dProfile::fast, Bm3dProfile::normal}) {
        const Image noisy = noisy_of(clean, sigma);
        const Bm3dParams params{.profile = profile, .sigma = {sigma}, .search = 25};
        const double general = psnr(clean.view(), filtered_generally(params, noisy.view()).view());
        const double fast = psnr(clean.view(), filtered(params, noisy.view(), {.device = cpu}).view());
        EXPECT_NEAR(fast, general, searches_7_bits() ? 0.015 : 0.01) << sigma << ' ' << channels;
      }
    }
  }
}

TEST(Bm3d, FlatAndSaturatedAreasAreCovered) {
  // More patches of distance 0 than a group holds: the reference must stay in its own.
  Image in({.width = 90, .height = 70, .type = PixelType::f32, .range = 255});
  for (int y = 0; y < 70; ++y) {
    for (int x = 0; x < 90; ++x) pixel(in, x, y) = x < 45 ? 255.0F : 0.0F;
  }
  for (const Device& device : {reference, cpu}) {
    Image out = filtered(Bm3dParams{.sigma = {10}, .search = 25}, in.view(), {.device = device});
    for (int y = 0; y < 70; ++y) {
      for (int x = 0; x < 90; ++x) ASSERT_NEAR(pixel(out, x, y), pixel(in, x, y), 0.5) << x << ' ' << y;
    }
  }
}

TEST(Bm3d, AMapOfTheSameNoiseIsThatNoise) {
  const Image clean = scene_of(48, 40, 3);
  const Image noisy = noisy_of(clean, 20);
  Image map({.width = 48, .height = 40, .type = PixelType::f32});
  for (int y = 0; y < 40; ++y) {
    for (int x = 0; x < 48; ++x) pixel(map, x, y) = 20;
  }
  for (const Device& device : {reference, cpu}) {
    // Orthonormal transforms: the noise of all coefficients is that of the pixels.
    const Bm3dParams plain{.sigma = {20}, .transform = PatchTransform::dct, .search = 9};
    Bm3dParams mapped = plain;
    mapped.sigma = {};
    mapped.sigma_map = map.view();
    const Image expected = device == reference ? filtered(plain, noisy.view(), {.device = device})
                                               : filtered_generally(plain, noisy.view());
    EXPECT_LT(max_abs(expected.view(), filtered(mapped, noisy.view(), {.device = device}).view()), 0.01);
  }
}

TEST(Bm3d, AMapFollowsTheNoise) {
  const Image clean = scene_of(96, 80);
  Image noisy(clean.view().spec);
  const Image weak = noisy_of(clean, 5, 1);
  const Image strong = noisy_of(clean, 40, 2);
  Image map({.width = 96, .height = 80, .type = PixelType::f32});
  Image from_weak = noisy_of(clean, 5, 1);
  Image from_strong = noisy_of(clean, 40, 2);
  for (int y = 0; y < 80; ++y) {
    for (int x = 0; x < 96; ++x) {
      pixel(map, x, y) = x < 48 ? 5.0F : 40.0F;
      pixel(noisy, x, y) = x < 48 ? pixel(from_weak, x, y) : pixel(from_strong, x, y);
    }
  }
  double best = 0;
  for (const double sigma : {5.0, 15.0, 28.5, 40.0}) {
    best = std::max(
        best, psnr(clean.view(), filtered(Bm3dParams{.sigma = {sigma}, .search = 15}, noisy.view()).view()));
  }
  const Bm3dParams mapped{.sigma_map = map.view(), .search = 15};
  EXPECT_GT(psnr(clean.view(), filtered(mapped, noisy.view(), {.device = cpu}).view()), best + 0.5);
  EXPECT_LT(max_abs(filtered(mapped, noisy.view(), {.device = cpu}).view(),
                    filtered(mapped, noisy.view(), {.device = reference}).view()),
            1.0);
}

TEST(Bm3d, ChannelsHaveNoiseOfTheirOwn) {
  const Image clean = scene_of(96, 80, 3);
  Image noisy = noisy_of(clean, 10, 1);
  Image strong = noisy_of(clean, 40, 2);
  for (int y = 0; y < 80; ++y) {
    for (int x = 0; x < 96; ++x) pixel(noisy, x, y, 2) = pixel(strong, x, y, 2);
  }
  const auto quality = [&](std::vector<double> sigma) {
    return psnr(clean.view(),
                filtered(Bm3dParams{.sigma = std::move(sigma), .search = 15}, noisy.view()).view());
  };
  EXPECT_GT(quality({10, 10, 40}), quality({24.5}));
  EXPECT_GT(quality({10, 10, 40}), quality({10}));
}

// [002]'s Table 5.4: its prototype lies 0.2 to 1.8 dB below the first step of the authors' program.
// A black and white photograph is often stored as rgb, with the same noise in all channels.
TEST(Bm3d, GrayStoredAsRgbIsDenoisedLikeGray) {
  const Image clean = scene_of(160, 120);
  const Image noisy = noisy_of(clean, 25);
  ImageSpec rgb = clean.spec();
  rgb.channels = 3;
  rgb.colour = Colour::rgb;
  Image in_colour(rgb);
  Image clean_in_colour(rgb);
  std::vector<float> row(static_cast<std::size_t>(rgb.width));
  for (int y = 0; y < rgb.height; ++y) {
    for (int c = 0; c < 3; ++c) {
      load_row(noisy.view(), y, 0, row.data());
      store_row(in_colour.view(), y, c, row.data());
      load_row(clean.view(), y, 0, row.data());
      store_row(clean_in_colour.view(), y, c, row.data());
    }
  }
  const auto psnr_of = [](const Image& truth, const Image& image) {
    Image out(image.spec());
    Denoiser::create(resolve(Bm3dParams{}, image.view()), image.spec(), {.device = cpu})
        .run(image.view(), out.view());
    return psnr(truth.view(), out.view());
  };
  EXPECT_NEAR(psnr_of(clean_in_colour, in_colour), psnr_of(clean, noisy), 0.1);
}

TEST(Bm3d, ThePapersPrototypeLiesWhereThePaperHasIt) {
  const Image clean = scene_of(256, 192);
  const Image noisy = noisy_of(clean, 20);
  MethodParams prototype = Bm3dParams{.sigma = {20}};
  prototype.apply_preset("paper-002", 255);
  const double theirs = psnr(clean.view(), filtered(prototype, noisy.view()).view());
  const double first_step = psnr(
      clean.view(),
      filtered(Bm3dParams{.profile = Bm3dProfile::matlab, .sigma = {20}, .steps = 1}, noisy.view()).view());
  EXPECT_LT(theirs, first_step - 0.1);
  EXPECT_GT(theirs, first_step - 1.8);
}

std::string message_of(const MethodParams& params, const ImageSpec& spec) {
  try {
    Denoiser::create(params, spec);
  } catch (const Error& error) {
    return error.what();
  }
  return "(no error)";
}

TEST(Bm3d, NumbersFollowTheProfileAndEachOther) {
  const ImageSpec spec{.width = 64, .height = 64};
  const auto numbers = [&](const Bm3dParams& given) {
    return Denoiser::create(given, spec).params().as<Bm3dParams>();
  };
  EXPECT_EQ(numbers({.sigma = {25}, .patch = 4}).wiener_patch, 4);
  EXPECT_EQ(numbers({.sigma = {25}, .patch = 4, .wiener_patch = 8}).wiener_patch, 8);
  EXPECT_EQ(numbers({.profile = Bm3dProfile::matlab, .sigma = {25}}).wiener_patch, 8);
  EXPECT_EQ(numbers({.profile = Bm3dProfile::matlab, .sigma = {50}}).wiener_patch, 11);
  EXPECT_EQ(numbers({.profile = Bm3dProfile::dabov2007, .sigma = {50}}).transform, PatchTransform::dct);

  EXPECT_EQ(numbers({.sigma = {25}, .patch = 6}).transform, PatchTransform::dct);

  MethodParams params = Bm3dParams{.sigma = {25}};
  params.set_text("transform", "hadamard");
  EXPECT_EQ(params.get_text("transform"), "hadamard");
  params.set_text("transform", "auto");
  EXPECT_EQ(params.get_text("transform"), "auto");
  EXPECT_TRUE(MethodParams(Bm3dParams{}).needs_image());

  EXPECT_EQ(message_of(Bm3dParams{.sigma = {25}, .transform = PatchTransform::bior15, .patch = 6}, spec),
            "bm3d: bior1.5 and hadamard take a patch of 1, 2, 4, 8, 16 or 32, got 6");
  const float map = 3;
  EXPECT_EQ(
      message_of(Bm3dParams{.sigma_map = {&map, {.width = 1, .height = 1, .type = PixelType::f32}}}, spec),
      "bm3d: sigma_map is 1 x 1, the image 64 x 64");
  EXPECT_EQ(message_of(Bm3dParams{.sigma = {1, 2}}, spec),
            "bm3d: sigma has 2 values, the image 1 colour channels");
}

// Pixels between patches would have no estimate at all.
TEST(Bm3d, PatchesCoverEveryPixel) {
  const ImageSpec spec{.width = 12, .height = 12, .type = PixelType::f32};
  const auto create = [&](Bm3dParams params) {
    params.sigma = {0.1};
    return Denoiser::create(params, spec);
  };
  EXPECT_THROW(create({.patch = 2, .spacing = 3}), Error);
  EXPECT_THROW(create({.patch = 1}), Error);  // the profile's spacing is 3
  EXPECT_THROW(create({.wiener_patch = 4, .wiener_spacing = 5}), Error);
  EXPECT_NO_THROW(create({.patch = 2, .spacing = 2, .wiener_spacing = 2}));
}

}  // namespace
}  // namespace ungrain::testing
