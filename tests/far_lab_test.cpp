// Filters in Lab where values lie far above white: the CPU holds what it holds within the range.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "test_images.h"
#include "ungrain/denoiser.h"
#include "ungrain/methods.h"

namespace ungrain::testing {
namespace {

constexpr int width = 61;
constexpr int height = 47;
const ImageSpec spec{.width = width,
                     .height = height,
                     .channels = 3,
                     .type = PixelType::f32,
                     .colour = Colour::rgb,
                     .range = 1};

// A picture with bright red spots and a bright flat area, in which green and blue are those of the picture.
TestImage picture(double brightest) {
  TestImage image(spec, Layout::interleaved);
  fill_with_picture(image);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const bool spot = (x + 7 * y) % 83 == 0;
      const bool flat = x > 40 && y > 12 && y < 30;
      if (spot || flat) image.set(x, y, 0, brightest);
    }
  }
  return image;
}

std::vector<std::pair<std::string, MethodParams>> filters_in_lab() {
  constexpr ColourMode lab = ColourMode::lab;
  return {{"bilateral", BilateralParams{.radius = 2, .sigma_range = 12, .colour = lab}},
          {"separable",
           BilateralParams{
               .radius = 2, .sigma_range = 12, .quality = BilateralQuality::separable, .colour = lab}},
          {"adaptive", AdaptiveBilateralParams{.radius = 2, .sigma_range = 12, .colour = lab}},
          {"nlm", NlmParams{.search = 5, .patch = 3, .h = 8, .colour = lab}},
          {"nlm-bilateral",
           NlmBilateralParams{.search = 5, .patch = 3, .sigma_h = 8, .sigma_range = 20, .colour = lab}}};
}

TEST(FarLab, TheCpuAgreesWithTheReference) {
  for (auto& [name, params] : filters_in_lab()) {
    for (const char* border : {"symmetric", "clamp", "constant", "wrap", "shrink"}) {
      params.set_text("border", border);
      for (const double brightest : {2.9, 3.1, 50.0, 1e3, 1e6}) {
        SCOPED_TRACE(fmt::format("{}, {}, {} times white", name, border, brightest));
        const TestImage in = picture(brightest);
        TestImage expected(spec, Layout::interleaved);
        TestImage out(spec, Layout::interleaved);
        Denoiser::create(params, spec, {.device = {Device::Kind::reference}}).run(in.view(), expected.view());
        Denoiser::create(params, spec, {.device = {Device::Kind::cpu}}).run(in.view(), out.view());
        const Difference d = difference(out, expected);
        EXPECT_TRUE(d.finite);
        // What a window without such values may differ by, the largest of them being 3 times white.
        EXPECT_LE(d.largest, 3 * 2e-5) << d.where;
      }
    }
  }
}

TEST(FarLab, BandsGiveTheSameBits) {
  const ImageSpec tall{
      .width = 40, .height = 3000, .channels = 3, .type = PixelType::f32, .colour = Colour::rgb, .range = 1};
  TestImage in(tall, Layout::interleaved);
  fill_with_picture(in);
  for (int y = 0; y < tall.height; y += 97) in.set(y % tall.width, y, 1, 1000);
  for (auto& [name, params] : filters_in_lab()) {
    for (const char* border : {"symmetric", "wrap"}) {
      SCOPED_TRACE(name + ", " + border);
      params.set_text("border", border);
      Denoiser whole = Denoiser::create(params, tall, {.device = {Device::Kind::cpu}});
      Denoiser bands = Denoiser::create(params, tall, {.device = {Device::Kind::cpu}, .band_rows = 100});
      TestImage expected(tall, Layout::interleaved);
      TestImage out(tall, Layout::interleaved);
      whole.run(in.view(), expected.view());
      const Report report = bands.run(in.view(), out.view());
      EXPECT_GT(report.bands, 1);
      EXPECT_EQ(hash_of(out.view()), hash_of(expected.view()));
    }
  }
}

}  // namespace
}  // namespace ungrain::testing
