// Bilateral of 8-bit RGB in integers of 16 bits: near the reference with every set of vector instructions,
// also where weights are too small for 16 bits, and the same bits however it is run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "cpu/simd.h"
#include "scene/scene.h"
#include "ungrain/denoiser.h"
#include "ungrain/methods.h"
#include "ungrain/noise.h"

namespace ungrain {
namespace {

constexpr ImageSpec spec_of(int width, int height) {
  return {.width = width, .height = height, .channels = 3, .type = PixelType::u8, .colour = Colour::rgb};
}

class BilateralRgb8 : public ::testing::Test {
 protected:
  void TearDown() override { use_simd_target(""); }
};

std::vector<std::string> all_targets() {
  std::vector<std::string> list = simd_targets();
  for (const std::string& variant : simd_variants()) list.push_back(variant);
  return list;
}

std::vector<std::uint8_t> samples_of(const Image& image) {
  const auto* data = static_cast<const std::uint8_t*>(image.view().data);
  const ImageSpec& spec = image.spec();
  return {data, data + static_cast<std::ptrdiff_t>(spec.width) * spec.height * spec.channels};
}

std::vector<std::uint8_t> filtered(const Image& image, const BilateralParams& params,
                                   const Options& options) {
  Image out(image.spec());
  Denoiser::create(params, image.spec(), options).run(image.view(), out.view());
  return samples_of(out);
}

struct Differences {
  int largest = 0;
  double share = 0;
};

Differences differences(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b) {
  Differences found;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const int difference = std::abs(a[i] - b[i]);
    found.largest = std::max(found.largest, difference);
    found.share += difference != 0 ? 1.0 / static_cast<double>(a.size()) : 0;
  }
  return found;
}

void expect_near_reference(const Image& image, const BilateralParams& params, double share) {
  const Options reference{.device = {Device::Kind::reference}};
  const std::vector<std::uint8_t> expected = filtered(image, params, reference);
  for (const std::string& target : all_targets()) {
    use_simd_target(target);
    const Differences found = differences(filtered(image, params, {.device = {Device::Kind::cpu}}), expected);
    EXPECT_LE(found.largest, 1) << target << ", radius " << params.radius;
    EXPECT_LE(found.share, share) << target << ", radius " << params.radius << ", sigma_range "
                                  << *params.sigma_range;
  }
  use_simd_target("");
}

Image noisy_scene() {
  Image scene = render_scene(spec_of(283, 37));
  add_noise(scene.view(), scene.view(), {NoiseKind::gaussian, 25, 7});
  return scene;
}

TEST_F(BilateralRgb8, IsNearTheReference) {
  const Image noisy = noisy_scene();
  for (const ColourDistance distance : {ColourDistance::euclidean, ColourDistance::city_block}) {
    for (const double range : {6.0, 9.0, 12.0, 20.0, 50.0, 400.0}) {
      for (const int radius : {1, 3, 7}) {
        expect_near_reference(noisy,
                              {.radius = radius,
                               .sigma_space = radius / 2.0,
                               .sigma_range = distance == ColourDistance::city_block ? 2.4 * range : range,
                               .window = radius == 3 ? Window::square : Window::disc,
                               .colour_distance = distance},
                              0.01);
      }
    }
  }
}

TEST_F(BilateralRgb8, LargeWindowsAreNearTheReference) {
  const Image noisy = noisy_scene();
  for (const Window window : {Window::disc, Window::square}) {
    for (const int radius : {9, 16}) {
      expect_near_reference(
          noisy, {.radius = radius, .sigma_space = radius / 2.0, .sigma_range = 50, .window = window}, 0.01);
    }
  }
}

// Single pixels on a flat ground, with weights around the smallest that 16 bits hold: of many taps they add
// up.
TEST_F(BilateralRgb8, SmallWeightsAddUp) {
  Image image(spec_of(97, 41));
  auto* const samples = static_cast<std::uint8_t*>(image.view().data);
  for (int i = 0; i < 97 * 41; ++i) {
    const bool single = i % 97 % 24 == 12 && i / 97 % 20 == 10;
    for (int c = 0; c < 3; ++c) samples[3 * i + c] = static_cast<std::uint8_t>(single ? 30 + i / 97 : 230);
  }
  for (const int radius : {3, 7, 8, 12, 15}) {
    for (const double range : {35.0, 38.0, 41.0, 44.0, 48.0}) {
      expect_near_reference(
          image, {.radius = radius, .sigma_space = 1e6, .sigma_range = range, .window = Window::square},
          0.01);
    }
  }
}

TEST_F(BilateralRgb8, IsTheSameHoweverItIsRun) {
  const Image noisy = noisy_scene();
  const ImageSpec& spec = noisy.spec();
  for (const int radius : {3, 7, 12}) {
    const BilateralParams params{.radius = radius, .sigma_space = radius / 2.0, .sigma_range = 50};
    const std::vector<std::uint8_t> expected = filtered(noisy, params, {.threads = 1});
    EXPECT_EQ(filtered(noisy, params, {.threads = 3, .band_rows = 5}), expected) << "bands";

    Image in_place = noisy_scene();
    Denoiser::create(params, spec, {.band_rows = 11}).run(in_place.view(), in_place.view());
    EXPECT_EQ(samples_of(in_place), expected) << "in place";

    // Planes of floats take the samples' place.
    const std::ptrdiff_t pixels = static_cast<std::ptrdiff_t>(spec.width) * spec.height;
    std::vector<std::uint8_t> planes(expected.size());
    std::vector<std::uint8_t> filtered_planes(expected.size());
    const std::vector<std::uint8_t> samples = samples_of(noisy);
    for (std::ptrdiff_t i = 0; i < 3 * pixels; ++i) planes[i % 3 * pixels + i / 3] = samples[i];
    const Strides planar{.x = 1, .y = spec.width, .channel = pixels};
    Denoiser::create(params, spec)
        .run(ConstImageView(planes.data(), spec, planar), ImageView(filtered_planes.data(), spec, planar));
    for (std::ptrdiff_t i = 0; i < 3 * pixels; ++i) {
      ASSERT_EQ(filtered_planes[i % 3 * pixels + i / 3], expected[i]) << "planar, sample " << i;
    }
  }
}

}  // namespace
}  // namespace ungrain
