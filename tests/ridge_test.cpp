// ridge: the passes of each device against the definition with the same pilot, and what the definition
// promises. That bands, tiles and threads agree with the whole is tested with the other methods in
// conformance_test.cpp and contract_test.cpp.
#include <cmath>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/device.h"
#include "core/engine.h"
#include "core/registry.h"
#include "device/backends.h"
#include "methods/ridge/ridge.h"
#include "scene/scene.h"
#include "test_devices.h"
#include "test_images.h"
#include "ungrain/denoiser.h"
#include "ungrain/error.h"
#include "ungrain/methods.h"
#include "ungrain/metrics.h"
#include "ungrain/noise.h"
#include "ungrain/noise_model.h"

namespace ungrain::testing {
namespace {

// A group holds every patch of such a window: no choice depends on rounding.
constexpr int whole_search = 7;
constexpr int whole_group = 49;

RidgeParams resolved(const RidgeParams& params, const ImageSpec& spec) {
  return resolve_derived(params, spec).as<RidgeParams>();
}

// Something smoother than the image, the same for all.
Pipeline same_pilot(const ImageSpec& spec, Device device) {
  const MethodParams params = resolve_derived(GaussianParams{.sigma = 1.2}, spec);
  return build_for(find_method(GaussianParams::method), device)(&params.as<GaussianParams>(), spec);
}

RidgePasses passes_on(Device::Kind device, const RidgeSettings& settings) {
#if UNGRAIN_HAVE_CUDA
  if (device == Device::Kind::cuda) return ridge_passes_on_cuda(settings);
#endif
  return device == Device::Kind::reference ? ridge_passes_by_definition(settings)
                                           : ridge_passes_on_cpu(settings);
}

// The reference is the definition, on the CPU.
TestImage run(const RidgeParams& given, const TestImage& in, Device::Kind passes, int band_rows = 0) {
  const ImageSpec spec = in.view().spec;
  const RidgeSettings settings = ridge_settings(resolved(given, spec), spec);
  const Device device{passes == Device::Kind::reference ? Device::Kind::cpu : passes};
  Engine engine(ridge_pipeline(same_pilot(spec, device), settings, passes_on(passes, settings)), spec,
                {.threads = 2, .band_rows = band_rows}, make_backend(device, {.threads = 2}));
  TestImage out(spec, Layout::interleaved);
  engine.run(in.view(), out.view());
  return out;
}

TestImage picture(const ImageSpec& spec, double scale = 1, double offset = 0) {
  TestImage image(spec, Layout::interleaved);
  fill_with_picture(image);
  for (int y = 0; y < spec.height; ++y) {
    for (int x = 0; x < spec.width; ++x) {
      for (int c = 0; c < spec.channels; ++c) image.set(x, y, c, image.at(x, y, c) * scale + offset);
    }
  }
  return image;
}

ImageSpec floats(int width, int height, Colour colour = Colour::gray) {
  ImageSpec spec;
  spec.width = width;
  spec.height = height;
  spec.channels = colour == Colour::rgb ? 3 : 1;
  spec.type = PixelType::f32;
  spec.colour = colour;
  return spec;
}

struct Setting {
  const char* name;
  RidgeParams params;
  Colour colour = Colour::gray;
  double scale = 1;  // of the picture
};

RidgeParams whole(RidgeParams params) {
  params.search = whole_search;
  params.group = whole_group;
  return params;
}

constexpr Device::Kind devices[] = {Device::Kind::cpu, Device::Kind::cuda};

bool is_missing(Device::Kind device) { return device == Device::Kind::cuda && !gpu_missing().empty(); }

class RidgeAgainstDefinition : public ::testing::TestWithParam<std::tuple<Setting, Device::Kind>> {};

TEST_P(RidgeAgainstDefinition, WithTheSamePilot) {
  const auto& [setting, device] = GetParam();
  if (is_missing(device)) GTEST_SKIP() << gpu_missing();
  const TestImage in = picture(floats(43, 38, setting.colour), setting.scale);
  const Difference found =
      difference(run(setting.params, in, device), run(setting.params, in, Device::Kind::reference));
  EXPECT_TRUE(found.finite);
  // Tensor cores cut off the last bits of sums. Only noise far below what any image has shows it.
  const bool cut_off = device == Device::Kind::cuda && setting.name == std::string("very_weak");
  EXPECT_LE(found.largest, (cut_off ? 1e-3 : 2e-4) * std::max(1.0, setting.scale)) << found.where;
}

INSTANTIATE_TEST_SUITE_P(
    Settings, RidgeAgainstDefinition,
    ::testing::Combine(
        ::testing::Values(
            Setting{"normal", whole({.sigma = {0.1}})}, Setting{"weak", whole({.sigma = {0.004}})},
            Setting{"very_weak", whole({.sigma = {1e-5}})}, Setting{"strong", whole({.sigma = {0.3}})},
            Setting{"one_pass", whole({.sigma = {0.1}, .passes = 1})},
            Setting{"high", whole({.profile = RidgeProfile::high, .sigma = {0.1}})},
            Setting{"patch_4", whole({.sigma = {0.1}, .passes = 2, .patch = 4, .spacing = 3})},
            Setting{"patch_5", whole({.sigma = {0.1}, .passes = 2, .patch = 5, .spacing = 4})},
            Setting{"patch_7", whole({.sigma = {0.1}, .passes = 2, .patch = 7})},
            Setting{"patch_8", whole({.sigma = {0.1}, .passes = 2, .patch = 8})},
            Setting{"rgb", whole({.sigma = {0.1}, .passes = 2}), Colour::rgb},
            Setting{"rgb_sigmas", whole({.sigma = {0.05, 0.1, 0.2}, .passes = 2}), Colour::rgb},
            Setting{"small_groups", {.sigma = {0.1}, .passes = 3, .search = 9, .group = 3}},
            // Integers differ only where rounding moves a pixel across a step, which these avoid.
            Setting{"choice", {.sigma = {0.1}, .passes = 1, .search = 15, .group = 20}},
            Setting{"deep_choice", {.sigma = {0.004}, .passes = 1, .search = 15, .group = 20}},
            Setting{
                "beyond_white", {.sigma = {0.5}, .passes = 1, .search = 15, .group = 20}, Colour::gray, 30}),
        ::testing::ValuesIn(devices)),
    [](const auto& of) {
      return std::string(std::get<0>(of.param).name) +
             (std::get<1>(of.param) == Device::Kind::cuda ? "_on_cuda" : "_on_cpu");
    });

// ---- noise that is not the same everywhere

void expect_agreement(const RidgeParams& params, const TestImage& in) {
  const TestImage expected = run(params, in, Device::Kind::reference);
  for (const Device::Kind device : devices) {
    if (is_missing(device)) continue;
    const Difference found = difference(run(params, in, device), expected);
    EXPECT_TRUE(found.finite);
    EXPECT_LE(found.largest, 2e-4) << found.where;
  }
}

TEST(RidgeNoise, FollowsAMap) {
  for (const Colour colour : {Colour::gray, Colour::rgb}) {
    const ImageSpec spec = floats(41, 33, colour);
    // From none at the left to much at the right; one channel or as many as the image.
    for (const int channels : {1, spec.channels}) {
      ImageSpec of_map = floats(41, 33, channels == 3 ? Colour::rgb : Colour::gray);
      TestImage map(of_map, Layout::interleaved);
      for (int y = 0; y < 33; ++y) {
        for (int x = 0; x < 41; ++x) {
          for (int c = 0; c < channels; ++c) map.set(x, y, c, std::max(0, x - 8) * 0.005 * (1 + c));
        }
      }
      RidgeParams params = whole({.passes = 3});
      params.sigma_map = std::as_const(map).view();
      expect_agreement(params, picture(spec));
    }
  }
}

TEST(RidgeNoise, AMapOfOneNumberIsThatSigma) {
  const ImageSpec spec = floats(41, 33);
  TestImage map(spec, Layout::interleaved);
  fill_with(map, 0.1);
  RidgeParams with_map = whole({.passes = 3, .noise_factor = 1.1});
  with_map.sigma_map = std::as_const(map).view();
  const RidgeParams with_sigma = whole({.sigma = {0.1}, .passes = 3, .noise_factor = 1.1});
  const TestImage in = picture(spec);
  for (const Device::Kind device : devices) {
    if (is_missing(device)) continue;
    const Difference found = difference(run(with_map, in, device), run(with_sigma, in, device));
    EXPECT_LE(found.largest, 1e-5) << found.where;
  }
}

TEST(RidgeNoise, FollowsAModel) {
  for (const Colour colour : {Colour::gray, Colour::rgb}) {
    const ImageSpec spec = floats(41, 33, colour);
    RidgeParams params = whole({.passes = 3});
    params.noise_model = std::make_shared<const NoiseModel>(poisson_gaussian_model(spec, 0.02, 1e-4));
    EXPECT_EQ(resolved(params, spec).start, 1);  // it is white
    expect_agreement(params, picture(spec));
    params.start = 0.3;
    expect_agreement(params, picture(spec));
  }
}

TEST(RidgeNoise, StartsFromThePilotWhereNoiseIsCoarse) {
  const ImageSpec spec = floats(41, 33);
  NoiseModel model = white_noise_model(spec, {0.1});
  for (std::size_t i = 0; i < model.channels[0].spectrum.size(); ++i)
    model.channels[0].spectrum[i] = 2.0 / (1.0 + static_cast<double>(i % 8 + i / 8));
  RidgeParams params;
  params.noise_model = std::make_shared<const NoiseModel>(model);
  EXPECT_LT(resolved(params, spec).start.value(), 0.2);
  EXPECT_LT(resolved(params, spec).passes.value(), 4);
}

// ---- what the definition promises

TEST(Ridge, AConstantComesBackExactly) {
  for (const double level : {0.0, 1.0 / 3, 0.9}) {
    TestImage in(floats(70, 50), Layout::interleaved);
    fill_with(in, level);
    for (const Device::Kind device : devices) {
      if (is_missing(device)) continue;
      EXPECT_EQ(difference(run({.sigma = {0.1}}, in, device), in).largest, 0) << level;
    }
  }
}

TEST(Ridge, AnAddedConstantComesBack) {
  const ImageSpec spec = floats(41, 33);
  const RidgeParams params = whole({.sigma = {0.1}});
  for (const Device::Kind device : devices) {
    if (is_missing(device)) continue;
    const TestImage plain = run(params, picture(spec), device);
    TestImage moved = run(params, picture(spec, 1, 0.25), device);
    for (int y = 0; y < spec.height; ++y) {
      for (int x = 0; x < spec.width; ++x) moved.set(x, y, 0, moved.at(x, y, 0) - 0.25);
    }
    const Difference found = difference(moved, plain);
    EXPECT_LE(found.largest, 1e-5) << found.where;
  }
}

TEST(Ridge, BandsGiveTheSameBits) {
  const TestImage in = picture(floats(90, 150));
  const RidgeParams params{.sigma = {0.1}, .passes = 3, .search = 15, .group = 20};
  for (const Device::Kind device : devices) {
    if (is_missing(device)) continue;
    const TestImage whole_image = run(params, in, device);
    for (const int rows : {1, 17, 64})
      EXPECT_EQ(difference(run(params, in, device, rows), whole_image).largest, 0) << rows;
  }
}

// The GPU's fast kernel for large groups, in windows of the usual size, and sums that differ by their order
// alone.
TEST(Ridge, DevicesChooseTheSameGroups) {
  if (is_missing(Device::Kind::cuda)) GTEST_SKIP() << gpu_missing();
  const TestImage in = picture(floats(150, 130));
  for (const int group : {48, 64}) {
    for (const double sigma : {0.02, 0.1}) {
      const RidgeParams params{.sigma = {sigma}, .passes = 1, .group = group};
      const Difference found =
          difference(run(params, in, Device::Kind::cuda), run(params, in, Device::Kind::cpu));
      EXPECT_LE(found.largest, 2e-4) << found.where;
    }
  }
}

// Axes shorter than a patch.
TEST(Ridge, TinyImagesOnAGpu) {
  if (is_missing(Device::Kind::cuda)) GTEST_SKIP() << gpu_missing();
  for (const auto& [width, height] : {std::pair{1, 1}, {3, 40}, {40, 2}, {6, 6}, {5, 5}, {7, 9}}) {
    const TestImage in = picture(floats(width, height));
    const RidgeParams params = whole({.sigma = {0.1}, .passes = 2});
    const Difference found =
        difference(run(params, in, Device::Kind::cuda), run(params, in, Device::Kind::reference));
    EXPECT_LE(found.largest, 2e-4) << width << " x " << height << ", " << found.where;
  }
}

// Far above bm3d on a picture whose patches repeat, and above it on any.
TEST(Ridge, IsBetterThanBm3d) {
  const ImageSpec spec = floats(160, 120);
  const Image clean = render_scene(spec);
  Image noisy(spec);
  add_noise(clean.view(), noisy.view(), {NoiseKind::gaussian, 25.0 / 255 * spec.white(), 5});
  const auto quality = [&](const MethodParams& params) {
    Image out(spec);
    Denoiser::create(params, spec, {.device = {Device::Kind::cpu}})
        .run(std::as_const(noisy).view(), out.view());
    return psnr(clean.view(), std::as_const(out).view());
  };
  const double sigma = 25.0 / 255 * spec.white();
  EXPECT_GT(quality(RidgeParams{.sigma = {sigma}}), quality(Bm3dParams{.sigma = {sigma}}) + 0.2);
}

TEST(Ridge, RefusesWhatDoesNotFit) {
  const ImageSpec spec = floats(41, 33);
  const auto message = [&](const RidgeParams& params) -> std::string {
    try {
      Denoiser::create(params, spec);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message({.sigma = {0.1}, .patch = 5, .spacing = 6}),
            "ridge: spacing takes at most the side of the patches, 5, got 6");
  EXPECT_NE(message({.sigma = {0.1}, .search = 51}).find("search"), std::string::npos);
  EXPECT_NE(message({.sigma = {0.1}, .group = 65}).find("group"), std::string::npos);
}

}  // namespace
}  // namespace ungrain::testing
