// The search for similar patches on the CPU, at the edges of its layout: tiles, blocks of rows, vectors,
// sides of patches that are compiled for themselves and those that are not, windows searched both ways and
// one way.
#include <cmath>

#include <gtest/gtest.h>

#include "cpu/simd.h"
#include "test_images.h"
#include "ungrain/denoiser.h"
#include "ungrain/methods.h"

namespace ungrain::testing {
namespace {

constexpr double tolerance = 2e-5;

class PatchSearch : public ::testing::Test {
 protected:
  void TearDown() override { use_simd_target(""); }

  // On every set of vector instructions against the reference.
  static void expect_reference(const MethodParams& at_white_1, TestImage& in) {
    const ImageSpec& spec = in.view().spec;
    MethodParams params = at_white_1;
    params.scale_strengths(spec.white());
    TestImage expected(spec, Layout::interleaved);
    Denoiser::create(params, spec, {.device = {Device::Kind::reference}}).run(in.view(), expected.view());
    for (const std::string& target : simd_targets()) {
      SCOPED_TRACE(target);
      use_simd_target(target);
      TestImage out(spec, Layout::interleaved);
      Denoiser::create(params, spec, {.device = {Device::Kind::cpu}}).run(in.view(), out.view());
      const Difference d = difference(out, expected);
      EXPECT_TRUE(d.finite);
      EXPECT_LE(d.largest, tolerance * spec.white()) << d.where;
    }
  }

  static void expect_reference_on_picture(const MethodParams& params, int width, int height,
                                          int channels = 1) {
    SCOPED_TRACE(std::to_string(width) + " x " + std::to_string(height));
    TestImage in({width, height, channels, PixelType::f32, channels == 1 ? Colour::gray : Colour::multi},
                 Layout::interleaved);
    fill_with_picture(in);
    expect_reference(params, in);
  }
};

// A tile is 176 x 64, its blocks of rows are 16 high, vectors have up to 16 pixels.
constexpr std::pair<int, int> sizes[] = {{176, 64}, {177, 65}, {353, 16}, {17, 129}, {15, 33}};

TEST_F(PatchSearch, AgreesWhereTilesMeet) {
  for (const auto& [width, height] : sizes) {
    expect_reference_on_picture(NlmParams{.search = 7, .patch = 3, .h = 0.1}, width, height);
    expect_reference_on_picture(NlmParams{.search = 5, .patch = 3, .patch_sigma = 1.0, .h = 0.1}, width,
                                height);
    expect_reference_on_picture(NlmParams{.search = 5, .patch = 3, .h = 0.1, .border = Border::shrink}, width,
                                height);
  }
}

TEST_F(PatchSearch, AgreesForEverySideOfPatch) {
  for (const Border border : {Border::mirror, Border::shrink}) {
    for (const int patch : {1, 3, 5, 7, 9, 11, 13, 31}) {
      SCOPED_TRACE(patch);
      const double strength = 0.3 / patch;
      expect_reference_on_picture(NlmParams{.search = 5, .patch = patch, .h = strength, .border = border}, 19,
                                  21);
      expect_reference_on_picture(
          NlmParams{.search = 5, .patch = patch, .patch_sigma = 0.3 * patch, .h = strength, .border = border},
          19, 21, 3);
      expect_reference_on_picture(
          NlmBilateralParams{
              .search = 5, .patch = patch, .sigma_h = strength, .sigma_range = 0.4, .border = border},
          19, 21, 2);
    }
  }
}

// The widest windows that are searched both ways, and one way.
TEST_F(PatchSearch, AgreesInWideWindows) {
  for (const Border border : {Border::clamp, Border::shrink}) {
    for (const int search : {35, 97, 99, 131}) {
      SCOPED_TRACE(search);
      expect_reference_on_picture(NlmParams{.search = search, .patch = 3, .h = 0.1, .border = border}, 21,
                                  18);
    }
  }
}

TEST_F(PatchSearch, AgreesOverWholeImages) {
  for (const SelfWeight self : {SelfWeight::max, SelfWeight::one}) {
    expect_reference_on_picture(NlmParams{.search = whole_image, .patch = 3, .h = 0.1, .self = self}, 70, 67);
  }
  expect_reference_on_picture(NlmParams{.search = whole_image, .patch = 3, .h = 0.1}, 180, 9, 3);
  // Two tiles side by side and one below the other, and every way to compare.
  for (const auto& [width, height] : {std::pair{179, 5}, {5, 67}, {1, 1}, {17, 1}}) {
    for (const Border border : {Border::symmetric, Border::shrink, Border::wrap}) {
      expect_reference_on_picture(NlmParams{.search = whole_image,
                                            .patch = 5,
                                            .patch_sigma = 1.2,
                                            .sigma = 0.02,
                                            .h = 0.08,
                                            .border = border},
                                  width, height);
      expect_reference_on_picture(NlmBilateralParams{.search = whole_image,
                                                     .patch = 7,
                                                     .sigma_h = 0.05,
                                                     .sigma_range = 0.3,
                                                     .sigma_space = 9,
                                                     .border = border},
                                  width, height, 2);
    }
  }
}

// The only other weight passes the smallest that counts: the pixel is all but itself there, and whether the
// weight counts in float or in double makes no difference.
TEST_F(PatchSearch, VanishingWeightsLeaveThePixelContinuously) {
  constexpr double h = 0.05;
  const double at_cut_off = h * std::sqrt(126 * std::log(2.0));
  for (const int search : {3, whole_image}) {
    const MethodParams params = NlmParams{.search = search, .patch = 1, .h = h};
    auto other = static_cast<float>(at_cut_off * (1 - 1e-5));
    for (int step = 0; step < 400; ++step, other = std::nextafter(other, 1.0F)) {
      TestImage in({2, 1, 1, PixelType::f32, Colour::gray}, Layout::interleaved);
      in.set(1, 0, 0, other);
      TestImage out({2, 1, 1, PixelType::f32, Colour::gray}, Layout::interleaved);
      for (const Device::Kind kind : {Device::Kind::reference, Device::Kind::cpu}) {
        Denoiser::create(params, in.view().spec, {.device = {kind}}).run(in.view(), out.view());
        ASSERT_NEAR(out.at(0, 0, 0), 0, 2e-7) << "beside " << other << " on " << name(Device{kind});
        ASSERT_NEAR(out.at(1, 0, 0), other, 2e-7) << "on " << name(Device{kind});
      }
    }
    // Where the own weight begins to be the largest other.
    for (const double bits : {80.0, 99.9, 100.0, 100.1, 110.0}) {
      TestImage in({2, 1, 1, PixelType::f32, Colour::gray}, Layout::interleaved);
      in.set(1, 0, 0, h * std::sqrt(bits * std::log(2.0)));
      expect_reference(params, in);
    }
  }
}

// Weights of which each is lost beside the sum of the others.
TEST_F(PatchSearch, AddsManySmallWeights) {
  TestImage in({100, 60, 1, PixelType::f32, Colour::gray}, Layout::interleaved);
  for (int y = 0; y < 60; ++y) {
    for (int x = 0; x < 100; ++x) in.set(x, y, 0, x < 50 ? 0.2 : 0.7 + 0.01 * (y % 3));
  }
  expect_reference(NlmParams{.search = whole_image, .patch = 1, .h = 0.155}, in);
}

// Squares of values like these leave the range of float.
TEST_F(PatchSearch, TakesValuesOfAnySize) {
  for (const double white : {1e-25, 1e25}) {
    SCOPED_TRACE(white);
    TestImage in({23, 19, 1, PixelType::f32, Colour::gray, false, white}, Layout::interleaved);
    fill_with_picture(in);
    expect_reference(NlmParams{.search = 5, .patch = 3, .sigma = 0.02, .h = 0.1}, in);
  }
}

TEST_F(PatchSearch, KeepsPixelsFarAboveWhite) {
  TestImage in({23, 19, 1, PixelType::f32, Colour::gray}, Layout::interleaved);
  fill_with_picture(in);
  in.set(11, 9, 0, 1e30);
  for (const double h : {0.1, 1e-30}) {
    TestImage out(in.view().spec, Layout::interleaved);
    Denoiser::create(NlmParams{.search = 5, .patch = 3, .h = h}, in.view().spec).run(in.view(), out.view());
    EXPECT_EQ(out.at(11, 9, 0), static_cast<float>(1e30));
    for (int y = 0; y < 19; ++y) {
      for (int x = 0; x < 23; ++x) ASSERT_TRUE(std::isfinite(out.at(x, y, 0)));
    }
  }
}

// Where tiles begin says nothing about a pixel's sums: any part of the image has the same bits.
TEST_F(PatchSearch, TilesLeaveNoTrace) {
  const ImageSpec spec{200, 150, 1, PixelType::f32, Colour::gray};
  TestImage in(spec, Layout::interleaved);
  fill_with_picture(in);
  for (const MethodParams& params :
       {MethodParams(NlmParams{.search = 9, .patch = 7, .h = 0.1}),
        MethodParams(
            NlmParams{.search = 9, .patch = 5, .patch_sigma = 1.0, .h = 0.1, .border = Border::shrink})}) {
    TestImage whole(spec, Layout::interleaved);
    Denoiser::create(params, spec, {.threads = 1}).run(in.view(), whole.view());
    for (const int rows : {1, 13, 63, 64, 65}) {
      TestImage banded(spec, Layout::interleaved);
      Denoiser::create(params, spec, {.threads = 2, .band_rows = rows}).run(in.view(), banded.view());
      EXPECT_EQ(hash_of(banded.view()), hash_of(whole.view())) << "bands of " << rows << " rows";
    }
  }
}

TEST_F(PatchSearch, BandsAndThreadsLeaveNoTraceInWholeImages) {
  const ImageSpec spec{180, 70, 1, PixelType::f32, Colour::gray};
  TestImage in(spec, Layout::interleaved);
  fill_with_picture(in);
  for (const Border border : {Border::symmetric, Border::shrink}) {
    const NlmParams params{.search = whole_image, .patch = 7, .h = 0.1, .border = border};
    TestImage whole(spec, Layout::interleaved);
    Denoiser::create(params, spec, {.threads = 1}).run(in.view(), whole.view());
    for (const auto& [threads, rows] : {std::pair{3, 70}, {2, 64}, {2, 9}}) {
      TestImage banded(spec, Layout::interleaved);
      Denoiser::create(params, spec, {.threads = threads, .band_rows = rows}).run(in.view(), banded.view());
      EXPECT_EQ(hash_of(banded.view()), hash_of(whole.view())) << threads << " threads, bands of " << rows;
    }
  }
}

// Images of 8 bits, which have tiles of 256 x 64 and vectors of up to 32 pixels of their own. The result is
// written as float: half a step leaves room for the rounding to integers.
class PatchSearchOf8Bits : public PatchSearch {
 protected:
  static void expect_reference_of_8_bits(const MethodParams& params, TestImage& in) {
    ImageSpec written = in.view().spec;
    written.range = written.white();
    written.type = PixelType::f32;
    TestImage expected(written, Layout::interleaved);
    const ImageSpec& spec = in.view().spec;
    Denoiser::create(params, spec, {.device = {Device::Kind::reference}}).run(in.view(), expected.view());
    for (const std::string& target : simd_targets()) {
      SCOPED_TRACE(target);
      use_simd_target(target);
      TestImage out(written, Layout::interleaved);
      Denoiser::create(params, spec, {.device = {Device::Kind::cpu}}).run(in.view(), out.view());
      const Difference d = difference(out, expected);
      EXPECT_TRUE(d.finite);
      EXPECT_LE(d.largest, 0.5) << d.where;
    }
  }

  static TestImage picture(int width, int height, int channels = 1) {
    TestImage in({width, height, channels, PixelType::u8, channels == 1 ? Colour::gray : Colour::rgb},
                 Layout::interleaved);
    fill_with_picture(in);
    return in;
  }
};

TEST_F(PatchSearchOf8Bits, AgreesWhereTilesMeet) {
  for (const auto& [width, height] : {std::pair{256, 64}, {257, 65}, {289, 17}, {31, 81}, {1, 1}, {5, 3}}) {
    SCOPED_TRACE(std::to_string(width) + " x " + std::to_string(height));
    TestImage in = picture(width, height);
    expect_reference_of_8_bits(NlmParams{.search = 7, .patch = 7, .h = 10}, in);
    expect_reference_of_8_bits(NlmParams{.search = 5, .patch = 3, .sigma = 12, .border = Border::wrap}, in);
  }
}

TEST_F(PatchSearchOf8Bits, AgreesForEverySideAndWindow) {
  for (const int channels : {1, 3}) {
    TestImage in = picture(43, 37, channels);
    for (const int patch : {1, 3, 5, 7, 9, 11}) {
      SCOPED_TRACE(patch);
      expect_reference_of_8_bits(NlmParams{.search = 9, .patch = patch, .h = 30.0 / patch}, in);
    }
    for (const int search : {3, 13, 15, 17, 21, 33, 35}) {
      SCOPED_TRACE(search);
      expect_reference_of_8_bits(NlmParams{.search = search, .patch = 5, .h = 8, .self = SelfWeight::one},
                                 in);
    }
  }
}

// From strengths for which 16 bits are too coarse to those that make all weights 1.
TEST_F(PatchSearchOf8Bits, AgreesForEveryStrength) {
  TestImage in = picture(70, 67);
  for (const double h : {0.5, 2.0, 2.7, 3.5, 5.0, 10.0, 20.0, 27.0, 29.0, 50.0, 100.0, 300.0, 3000.0, 1e6}) {
    SCOPED_TRACE(h);
    expect_reference_of_8_bits(NlmParams{.search = 9, .patch = 7, .h = h}, in);
    expect_reference_of_8_bits(NlmParams{.search = 9, .patch = 3, .sigma = 2 * h, .h = h}, in);
    expect_reference_of_8_bits(NlmParams{.search = 9, .patch = 3, .sigma = 8 * h, .h = h}, in);
  }
}

// Single pixels that differ from all others, steps, and differences whose squares all round the same way.
TEST_F(PatchSearchOf8Bits, AgreesOnHardPictures) {
  TestImage dots({60, 50, 1, PixelType::u8, Colour::gray}, Layout::interleaved);
  TestImage stairs({60, 50, 1, PixelType::u8, Colour::gray}, Layout::interleaved);
  TestImage stripes({60, 50, 1, PixelType::u8, Colour::gray}, Layout::interleaved);
  for (int y = 0; y < 50; ++y) {
    for (int x = 0; x < 60; ++x) {
      dots.set(x, y, 0, x % 13 == 5 && y % 11 == 4 ? 255 : 0);
      stairs.set(x, y, 0, 4 * x);
      stripes.set(x, y, 0, x / 4 % 2 == 0 ? 100 : 107 + y % 5);
    }
  }
  for (TestImage* in : {&dots, &stairs, &stripes}) {
    for (const double h : {3.0, 6.0, 12.0, 25.0, 26.0, 40.0, 80.0}) {
      SCOPED_TRACE(h);
      expect_reference_of_8_bits(NlmParams{.search = 11, .patch = 7, .h = h}, *in);
      expect_reference_of_8_bits(NlmParams{.search = 11, .patch = 3, .h = h}, *in);
      expect_reference_of_8_bits(NlmParams{.search = 11, .patch = 5, .sigma = h}, *in);
    }
  }
}

TEST_F(PatchSearchOf8Bits, TilesLeaveNoTrace) {
  TestImage in = picture(300, 150);
  const ImageSpec& spec = in.view().spec;
  for (const MethodParams& params : {MethodParams(NlmParams{.search = 9, .patch = 7, .h = 10}),
                                     MethodParams(NlmParams{.search = 21, .patch = 5, .sigma = 9})}) {
    TestImage whole(spec, Layout::interleaved);
    Denoiser::create(params, spec, {.threads = 1}).run(in.view(), whole.view());
    for (const int rows : {1, 13, 63, 64, 65}) {
      TestImage banded(spec, Layout::interleaved);
      Denoiser::create(params, spec, {.threads = 2, .band_rows = rows}).run(in.view(), banded.view());
      EXPECT_EQ(hash_of(banded.view()), hash_of(whole.view())) << "bands of " << rows << " rows";
    }
  }
}

}  // namespace
}  // namespace ungrain::testing
